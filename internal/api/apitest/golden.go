package apitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Golden runs the files of a dialect, which hold data to load, requests, and the responses.
//
//	limits name=N ...            starts with an empty store and these limits, which the dialect names
//	load [tenant=T]              a line for each piece of data, in the notation of the dialect
//	get, post, or another method; path=P [cost] [header=(Name: value)...] [show=(Name)...]
//	                             a parameter a line: name=value, unescaped
//
// The output is the status and the body. Before them come the content type unless it is JSON, the headers of
// `show`, and with `cost` the header Shale-Cost.
type Golden struct {
	// New builds an API over an empty store, by the command limits, or with the usual ones if that is nil.
	New func(t *testing.T, limits *datadriven.TestData) *API
	// JSON is the content type of the dialect's responses, which is not shown.
	JSON string
	// Body and Cost replace the parts of a body, and of the header Shale-Cost, that differ from run to run;
	// nil: none do.
	Body func(body string, d *datadriven.TestData) string
	Cost func(cost string) string
}

// Run runs the files of a folder, each with an API of its own.
func (g *Golden) Run(t *testing.T, dir string) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		a := g.New(t, nil)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "limits":
				a = g.New(t, d)
				return ""
			case "load":
				return a.load(t, d)
			}
			return g.show(a.request(t, d), d)
		})
	})
}

func (a *API) load(t *testing.T, d *datadriven.TestData) string {
	tenant := "anonymous"
	d.MaybeScanArgs(t, "tenant", &tenant)
	for line := range strings.Lines(d.Input) {
		if err := a.store.Load(tenant, strings.TrimSpace(line)); err != nil {
			return err.Error()
		}
	}
	return ""
}

func (a *API) request(t *testing.T, d *datadriven.TestData) *httptest.ResponseRecorder {
	var path string
	d.ScanArgs(t, "path", &path)
	var headers, params []string
	for _, x := range d.CmdArgs {
		if x.Key == "header" {
			headers = append(headers, strings.Join(x.Vals, ", "))
		}
	}
	for line := range strings.Lines(d.Input) {
		params = append(params, strings.TrimSuffix(line, "\n"))
	}
	return a.Do(strings.ToUpper(d.Cmd), path, params, headers)
}

func (g *Golden) show(r *httptest.ResponseRecorder, d *datadriven.TestData) string {
	body, cost := r.Body.String(), r.Header().Get("Shale-Cost")
	if g.Body != nil {
		body = g.Body(body, d)
	}
	if g.Cost != nil {
		cost = g.Cost(cost)
	}
	out := fmt.Sprintf("%d %s\n", r.Code, body)
	if d.HasArg("cost") {
		out = "Shale-Cost: " + cost + "\n" + out
	}
	for _, x := range d.CmdArgs {
		if x.Key == "show" {
			for _, name := range x.Vals {
				out = fmt.Sprintf("%s: %s\n", name, strings.Join(r.Header().Values(name), "; ")) + out
			}
		}
	}
	if r.Code == http.StatusMethodNotAllowed {
		out = "Allow: " + r.Header().Get("Allow") + "\n" + out
	}
	// The type of a redirection is net/http's.
	if r.Code/100 != 3 && r.Header().Get("Content-Type") != g.JSON {
		out = "Content-Type: " + r.Header().Get("Content-Type") + "\n" + out
	}
	return out
}
