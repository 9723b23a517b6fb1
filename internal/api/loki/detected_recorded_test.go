package loki

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/readtest"
)

const detectedPath = "testdata/detected.json"

// detectedLine is a line that the endpoints of detected labels and fields see.
type detectedLine struct {
	labels, metadata model.Labels
	seconds          int64 // after the first line
	text             string
}

func detectedLines() []detectedLine {
	web := model.LabelsOf("app", "web", "host", "a1", "pod", "1", "port", "8080", "flag", "1", "id", "7d9c1f0e-1f4b-4a55-9a30-0e5f1b3c2d4e")
	other := model.LabelsOf("app", "web", "host", "a2", "pod", "2", "port", "8081", "flag", "0")
	db := model.LabelsOf("app", "db", "host", "a2", "pod", "3", "port", "9090", "one", "1", "three", "0")
	return []detectedLine{
		{web, model.LabelsOf("trace", "t1"), 0, `{"user":{"id":7,"na me":"Ann"},"ms":12.5,"ok":true,"app":"json","took":"3ms","size":"5 MB","list":[1],"none":null}`},
		{web, model.LabelsOf("trace", "t2", "host", "x"), 1, `{"user":{"id":8,"na me":"Bob","pod":"y"},"ms":12.5,"ok":false,"app":"json","took":"1500ms","size":"5000000b","a":{"b":1},"a_b":2}`},
		{web, nil, 2, `{"ms":"later","trace":"inner","":"x"," ":"y","host_extracted":"z","user":{"id_extracted":3},"9":"digit"}`},
		{web, nil, 3, `{"broken":1,"rest":`},
		{web, nil, 4, `["an","array"]`},
		{web, nil, 5, ``},
		{other, model.LabelsOf("trace", "t2"), 2, "plain text without fields"},
		{other, nil, 3, `level=warn flag="2" user_id=nine ms=5 empty= x="quoted \" value" bad"key=1 9=digit`},
		{other, nil, 4, `level=warn broken="no end`},
		{db, nil, 3, `level=info msg="slow query" ms=1300 size=1.5MB trace=t3 three=7 up=true at=12:30`},
		{db, nil, 4, `level=info msg="slow query" ms=0x10 size=10KiB trace=t4 up=T at=1h`},
		{model.LabelsOf("app", "bare", "one", "2", "three", "1"), nil, 3, `GET /login 200 12ms`},
		{model.LabelsOf("app", "bare", "one", "3", "three", "2"), nil, 3, `GET /login?user=ann 200 12ms`},
	}
}

// detectedRequests returns the requests without their responses.
func detectedRequests(begin int64) (all []*recorded) {
	add := func(path string, pairs ...string) *recorded {
		r := &recorded{Path: current + path, Params: url.Values{"start": {fmt.Sprint(begin - 10)}, "end": {fmt.Sprint(begin + 60)}}}
		for i := 0; i < len(pairs); i += 2 {
			r.Params.Set(pairs[i], pairs[i+1])
		}
		all = append(all, r)
		return r
	}
	queries := []string{
		`{app=~".+"}`, `{app="web"}`, `{app="db"}`, `{app="bare"}`, `{app="nothing"}`, `{host="a1"}`, `{app="web"} |= "Bob"`, `{app="web"} | json`, `{app=~".+"} | logfmt`,
		`{app="web"} | json name="user[\"na me\"]" | line_format "{{.name}}=x"`, `{app="web"} | label_format host=pod`, `{app="web"} | drop trace, app`,
		`{app="web"} | json | ms > 5`, `{app="web"} | line_format "{{.host}}" | logfmt`, ``, `{}`, `{app="web"`, `{app=~".*"}`, `{app="web"} |~ "("`, `rate({app="web"}[1m])`,
	}
	for _, q := range queries {
		add("detected_labels", "query", q)
		add("detected_fields", "query", q)
		for _, name := range []string{"ms", "size", "took", "trace", "user_id", "app_extracted", "level", "nothing", "__error__"} {
			add("detected_field/"+name+"/values", "query", q)
		}
	}
	add("detected_labels")
	add("detected_labels", "query", `{app="web"}`).Tenant = "t1|t2"
	add("detected_labels", "start", "1000", "end", "2000")
	add("detected_fields", "query", `{app="web"}`).Tenant = "t1|t2"
	for _, p := range [][2]string{{"line_limit", "1"}, {"line_limit", "x"}, {"line_limit", "0"}, {"line_limit", "-1"}, {"line_limit", "5001"}, {"limit", "x"}, {"limit", "0"},
		{"field_limit", "x"}, {"field_limit", "0"}, {"start", "x"}, {"end", "x"}, {"since", "x"}, {"end", "5"}, {"step", "0"}, {"step", "x"}, {"step", "0.001"}} {
		for _, path := range []string{"detected_labels", "detected_fields", "detected_field/ms/values"} {
			add(path, "query", `{app="db"}`, p[0], p[1])
		}
	}
	return all
}

// detectedDifference returns the reason why a response differs from Loki's.
func detectedDifference(r *recorded) string {
	switch {
	case strings.HasPrefix(r.Body, "rpc error"):
		return "Loki shows a code of gRPC before the text"
	case strings.HasSuffix(r.Params.Get("query"), `|~ "("`) && r.Status == http.StatusOK:
		return "Loki ignores a wrong regular expression here"
	case strings.Contains(r.Body, `"10kB"`):
		return "Loki rounds a size, so that a filter with the value would not find its line"
	}
	return ""
}

// sortDetected sorts what Loki returns in any order.
func sortDetected(body string) string {
	var v map[string]any
	if json.Unmarshal([]byte(body), &v) != nil {
		return body
	}
	var walk func(any)
	walk = func(x any) {
		switch x := x.(type) {
		case map[string]any:
			for name, member := range x {
				if name != "jsonPath" {
					walk(member)
				}
			}
		case []any:
			for _, item := range x {
				walk(item)
			}
			slices.SortFunc(x, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	walk(v)
	out, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return string(out) + "\n"
}

// recordDetected pushes the lines to a Loki and saves its responses.
func recordDetected(t *testing.T) {
	r := recording{At: time.Now().Unix() - 100}
	r.Requests = detectedRequests(r.At)
	for _, l := range detectedLines() {
		for _, tenant := range []string{model.DefaultTenant, "t1", "t2"} {
			pushToLoki(t, tenant, l.labels, l.metadata, (r.At+l.seconds)*1e9, l.text)
		}
	}
	r.save(t, detectedPath)
}

// TestDetectedRecorded repeats the requests for detected labels and fields to a real Loki: the responses are
// the same, except where they differ on purpose.
func TestDetectedRecorded(t *testing.T) {
	if *lokiURL != "" {
		recordDetected(t)
	}
	all := readRecording(t, detectedPath)
	w := newWorld(t, func(o *Options) { o.Now = func() time.Time { return time.Unix(all.At+100, 0) } })
	for _, l := range detectedLines() {
		for _, tenant := range []string{model.DefaultTenant, "t1", "t2"} {
			w.memory.AddText(tenant, l.labels.Key(7, model.Logs), l.labels, readtest.Line{Time: (all.At + l.seconds) * 1e9, Text: l.text, Metadata: l.metadata})
		}
	}
	same := 0
	for _, r := range all.Requests {
		status, contentType, body, err := r.do("", w)
		if err != nil {
			t.Fatal(err)
		}
		body = sortDetected(body)
		r.Body = sortDetected(r.Body)
		equal := status == r.Status && strings.EqualFold(contentType, r.Type) && body == r.Body
		switch reason := detectedDifference(r); {
		case equal && reason != "":
			t.Errorf("%s: the response is the same, but is listed as different: %s", r.name(), reason)
		case equal:
			same++
		case reason == "":
			t.Errorf("%s: %d %s\n%s", r.name(), status, contentType, cmp.Diff(fmt.Sprintln(r.Status, r.Type, r.Body), fmt.Sprintln(status, contentType, body)))
		}
	}
	t.Logf("%d of %d responses are the same", same, len(all.Requests))
}
