package loki

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// differs matches the statistics that differ from run to run, or with the way in which the engine works, cost the statement of it, and
// statistics all of them.
var (
	differs    = regexp.MustCompile(`(Time":|PerSecond":|"totalChunks[A-Za-z]*":|"postFilterChunks":)[0-9.e-]+`)
	cost       = regexp.MustCompile(`("shale":\{"series":\d+)[^}]*\}`)
	textCost   = regexp.MustCompile(`(text-[a-z]+=)\d+`)
	statistics = regexp.MustCompile(`"stats":\{.*\}(\}\}|\})\n$`)
)

// TestAPI runs the files of testdata/api: what stands in the store, requests, and the answers.
//
//	limits max-series=N max-bytes=N max-body=N     begins anew with these limits
//	load [tenant=T]                                a line of log in each: {labels} seconds {metadata} text
//	get, post, or another method; path=P [cost] [stats] [header=(Name: value)...] [show=(Name)...]
//	                                               a parameter a line: name=value, unescaped
//
// The answer is the status and the body, before it the type unless it is Loki's for JSON, and the headers that are to be shown,
// with `cost` the header Shale-Cost. The statistics stand there only with `stats`.
func TestAPI(t *testing.T) {
	datadriven.Walk(t, "testdata/api", func(t *testing.T, path string) {
		w := newWorld(t, nil)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "limits":
				var l Limits
				d.MaybeScanArgs(t, "max-series", &l.MaxSeries)
				d.MaybeScanArgs(t, "max-bytes", &l.MaxBytes)
				d.MaybeScanArgs(t, "max-body", &l.MaxBodyBytes)
				w = newWorld(t, func(o *Options) { o.Limits = l })
				return ""
			case "load":
				tenant := "anonymous"
				d.MaybeScanArgs(t, "tenant", &tenant)
				for line := range strings.Lines(d.Input) {
					if err := w.load(tenant, strings.TrimSpace(line)); err != nil {
						return err.Error()
					}
				}
				return ""
			}
			return golden(t, w, d)
		})
	})
}

func golden(t *testing.T, w *world, d *datadriven.TestData) string {
	var path string
	d.ScanArgs(t, "path", &path)
	var headers, params []string
	for _, a := range d.CmdArgs {
		if a.Key == "header" {
			headers = append(headers, strings.Join(a.Vals, ", "))
		}
	}
	for line := range strings.Lines(d.Input) {
		params = append(params, strings.TrimSuffix(line, "\n"))
	}
	r := w.do(strings.ToUpper(d.Cmd), path, params, headers)
	body := differs.ReplaceAllString(r.Body.String(), "${1}N")
	body = cost.ReplaceAllString(body, "$1,...}")
	if !d.HasArg("stats") {
		body = statistics.ReplaceAllString(body, `"stats":STATS$1`)
	}
	out := fmt.Sprintf("%d %s\n", r.Code, strings.TrimSuffix(body, "\n"))
	if d.HasArg("cost") {
		out = "Shale-Cost: " + textCost.ReplaceAllString(r.Header().Get("Shale-Cost"), "${1}N") + "\n" + out
	}
	for _, a := range d.CmdArgs {
		if a.Key == "show" {
			for _, name := range a.Vals {
				out = fmt.Sprintf("%s: %s\n", name, strings.Join(r.Header().Values(name), "; ")) + out
			}
		}
	}
	if r.Code == http.StatusMethodNotAllowed {
		out = "Allow: " + r.Header().Get("Allow") + "\n" + out
	}
	if r.Header().Get("Content-Type") != "application/json; charset=UTF-8" {
		out = "Content-Type: " + r.Header().Get("Content-Type") + "\n" + out
	}
	return out
}
