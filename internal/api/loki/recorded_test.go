package loki

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/api/loki/lokitest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/readtest"
)

// A Loki 3.7 that is empty, with auth_enabled and querier.multi_tenant_queries_enabled, and without
// discover_log_levels and discover_service_name in its limits_config.
var lokiURL = flag.String("loki", "", "a Loki whose responses are to be recorded")

// recordings are the requests by the names of suites.
var recordings = map[string]func(begin int64) []*lokitest.Request{
	"loki.json":         recordedRequests,
	"loki_numbers.json": recordedNumbers,
	"detected.json":     detectedRequests,
}

// recordedRequests are the requests without their responses.
func recordedRequests(begin int64) (all []*lokitest.Request) {
	add := func(path string, pairs ...string) *lokitest.Request {
		r := &lokitest.Request{Path: path, Params: url.Values{}}
		for i := 0; i < len(pairs); i += 2 {
			r.Params.Add(pairs[i], pairs[i+1])
		}
		all = append(all, r)
		return r
	}
	start, end := fmt.Sprint(begin-10), fmt.Sprint(begin+60)
	lines := func(query string, pairs ...string) *lokitest.Request {
		return add(queryPath, append([]string{"query", query, "start", start, "end", end}, pairs...)...)
	}
	for _, q := range []string{`{app="a"}`, `{app=~".+"}`, `{app="none"}`, `{app="a"} |= "second"`, `{app="a"} | json`, `{app="a"} | logfmt`, `{app="a"} | json | level="error"`,
		`{app="a"} | trace="t1"`, `{app="a"} | label_format x=app`, `{app="a"} | line_format "{{.app}}"`, `{app="a"} | json | drop app`, `{app="a"} | keep app`,
		`{app="a"} | drop trace`, `{app="a"} | decolorize`, `{app="a"} | json x="n.x"`, `{app="a"} | pattern "<x> of <y>"`} {
		lines(q)
		lines(q).Categorize = true
		lines(q, "direction", "forward")
		lines(q, "limit", "2")
		lines(q, "limit", "3", "direction", "FORWARD").Categorize = true
		add(legacy+"query", "query", q, "start", start, "end", end)
		add(legacy+"query", "query", q, "start", start, "end", end).Categorize = true
		lines(q).Tenant = "t1|t2"
		r := lines(q)
		r.Tenant, r.Categorize = "t2|t1", true
	}
	lines(`{app="a",__tenant_id__="t1"}`).Tenant = "t1|t2"
	for _, pairs := range [][]string{{"interval", "2"}, {"interval", "2s", "direction", "forward"}, {"step", "5"}, {"limit", "5000"}} {
		lines(`{app="a"}`, pairs...)
	}
	add(queryPath, "query", `{app="a"}`, "start", fmt.Sprint(begin), "end", fmt.Sprint(begin+3))
	add(queryPath, "query", `{app="a"}`, "start", fmt.Sprintf("%d.5", begin), "end", time.Unix(begin+3, 1).UTC().Format(time.RFC3339Nano))
	add(queryPath, "query", `{app="a"}`, "since", "5s", "end", fmt.Sprint(begin+5))
	for _, q := range []string{"", "{}", `{app="a"`, `{app=~".*"}`, `{app="a"} |= `, `{app="a"} |~ "("`, `{app=~"("}`, `rate({app="a"}`, `rate({app="a"}[1m])`, `{app="a"} | line_format "{{"`,
		`{app="a"} | pattern "x"`, `{app="a"} |= ip("x")`, `{app="a"} | json x="["`, `{app="a"} | regexp "x"`, `{app="a"} | status >= `, `{app="a"} soup`, `{app="a"} | json | x > 5x`} {
		if !strings.HasPrefix(q, `rate({app="a"}[`) {
			lines(q)
		}
		add(current+"format_query", "query", q)
		add(current+"query", "query", q)
		add(current+"labels", "query", q, "start", start, "end", end)
		add(current+"series", "match[]", q, "start", start, "end", end)
		add(current+"index/stats", "query", q, "start", start, "end", end)
		add(current+"tail", "query", q)
		add(legacy+"query", "query", q, "start", start, "end", end)
		add(legacy+"query", "query", q, "regexp", "x", "start", start, "end", end)
	}
	for _, p := range [][2]string{{"limit", "x"}, {"limit", "0"}, {"limit", "-1"}, {"limit", "5001"}, {"direction", "up"}, {"start", "x"}, {"end", "x"}, {"since", "x"}, {"end", "5"}, {"step", "0"},
		{"step", "x"}, {"step", "-1"}, {"step", "0.001"}, {"step", "1e300"}, {"interval", "x"}, {"interval", "-1"}, {"start", "1.2.3"}, {"start", "2023-11-14"}, {"delay_for", "6"}, {"delay_for", "x"}} {
		for _, path := range []string{queryPath, current + "query", current + "labels", current + "tail", legacy + "query"} {
			r := add(path, "query", `{app="a"}`, "start", start, "end", end)
			r.Params.Set(p[0], p[1])
		}
	}
	add(legacy+"query", "query", `{app="a"}`, "regexp", "second", "start", start, "end", end)
	add(legacy+"query", "query", `{app="a"}`, "regexp", "(", "start", start, "end", end)
	for _, path := range []string{"labels", "label", "label/app/values", "label/none/values", "series"} {
		add(current+path, "start", start, "end", end)
		add(current+path, "start", start, "end", end, "query", `{app="b"}`)
		add(current+path, "start", start, "end", end).Tenant = "t1|t2"
		add(current+path, "start", "1000", "end", "2000")
		if path != "labels" {
			add(legacy+path, "start", start, "end", end)
		}
	}
	add(current+"label/__tenant_id__/values", "start", start, "end", end).Tenant = "t2|t1"
	for _, match := range [][]string{{`{app="a"}`}, {`{}`}, {`{ }`}, {`{}`, `{app="a"}`}, {`{app="none"}`}, {`{app="a"} |= "x"`}, {`{app="a"}`, `{host="1"}`}} {
		r := add(current+"series", "start", start, "end", end)
		r.Params["match"] = match
	}
	add(current+"index/stats", "query", `{app="a"}`, "start", start, "end", end)
	for _, tenant := range []string{"a b", "a/b", "..", ".", strings.Repeat("x", 151), "t1|", "|t1", "t1||t2", "nobody"} {
		add(current+"labels", "start", start, "end", end).Tenant = tenant
	}
	for _, tenant := range []string{"t1|", "t1||t2", "t3|t1"} {
		add(current+"label/__tenant_id__/values", "start", start, "end", end).Tenant = tenant
		lines(`{app="a"} |= "second"`).Tenant = tenant
		add(current+"label/original___tenant_id__/values", "start", start, "end", end).Tenant = tenant
		lines(`{original___tenant_id__="own"}`).Tenant = tenant
	}
	add(current+"tail", "query", `{app="a"}`).Tenant = "a|b"
	for _, q := range []string{`{app="a"}|="x"|json|status>=500`, `sum by(app)(rate({app="a"}|json[1m]))>5`, `1+1`, `vector(1)`, `{app="a"} | json | line_format "{{.x}}" | a="b" or c>5 and d<10ms`,
		`topk(5,sum by (a) (count_over_time({app="a"} |= "x" or "y" [5m] offset 1h))) / on(a) group_left sum(rate({b="c"}[1m]))`} {
		add(current+"format_query", "query", q)
	}
	add(current+"query", "query", "vector(1)+vector(1)", "time", fmt.Sprintf("%d.5", begin))
	add(current + "nosuch")
	return all
}

// recordedNumbers are requests for numbers.
func recordedNumbers(begin int64) (all []*lokitest.Request) {
	start, end, at := fmt.Sprint(begin-10), fmt.Sprint(begin+60), fmt.Sprint(begin+30)
	add := func(path, query string, pairs ...string) *lokitest.Request {
		r := &lokitest.Request{Path: current + path, Params: url.Values{"query": {query}}}
		if path == "query" {
			r.Params.Set("time", at)
		} else {
			r.Params.Set("start", start)
			r.Params.Set("end", end)
		}
		for i := 0; i < len(pairs); i += 2 {
			r.Params.Set(pairs[i], pairs[i+1])
		}
		all = append(all, r)
		return r
	}
	for _, q := range []string{`count_over_time({app="a"}[1m])`, `sum by (app)(count_over_time({app=~".+"}[20s]))`, `sum(rate({app=~".+"} |= "of" [20s]))`, `bytes_over_time({app="b"}[1m])`,
		`topk(2, sum by (app)(bytes_rate({app=~".+"}[1m])))`, `sort_desc(sum by (app)(count_over_time({app=~".+"}[1m])))`, `absent_over_time({app="none"}[10s])`, `count_over_time({app="none"}[1m])`,
		`sum(count_over_time({app="a"} | json | status=500 [1m])) by (level)`, `max_over_time({app="a"} | logfmt | unwrap duration(dur) | __error__="" [1m])`, `count_over_time({app=~".+"}[1m]) / 0`,
		`sum(count_over_time({app="a"}[1m])) > bool 2`, `sum by (app)(count_over_time({app=~".+"}[1m])) / on() group_left sum(count_over_time({app=~".+"}[1m]))`, `vector(0.1)`, `1/3`, `2^0.5 > 1`,
		`label_replace(sum by (app)(rate({app=~".+"}[1m])), "x", "<$1>", "app", "(.*)")`, `sum_over_time({app="a"} | unwrap x [1m])`, `sum_over_time({app="a"} | json | unwrap level [1m])`,
		`count_over_time({app="a"}[1m]) + on(app) count_over_time({app="a"}[1m])`, `rate({app="a"}[1m]`, `sum(1,2)`, `quantile_over_time(0.9, {app="a"}[1m])`, `topk(0, rate({app="a"}[1m]))`} {
		add("query", q)
		add("query_range", q, "step", "7")
		add("query_range", q, "step", "1m", "direction", "forward", "limit", "6000")
		add("query", q).Tenant = "t1|t2"
	}
	for _, step := range []string{"20", "0.5", "1.0005", "0.0005", "15s", "2h", "0", "-1", "x", "0.005"} {
		add("query_range", "vector(1)", "step", step)
	}
	add("query_range", "vector(1)", "start", at, "end", at, "step", "1h")
	add("query_range", "vector(1)", "start", fmt.Sprint(begin, ".0015"), "end", fmt.Sprint(begin, ".0015"), "step", "1")
	for _, q := range []string{`{app=~".+"}`, `{}`, `{app="none"}`, `{app="a"}`, `{app="a"} |= "x"`, ``, `{app=~".*"}`, `rate({app="a"}[1m])`, `{ }`, `{app="a",__tenant_id__="t1"}`} {
		add("index/volume", q)
		add("index/volume", q, "aggregateBy", "labels")
		add("index/volume", q, "targetLabels", "host")
		add("index/volume_range", q, "step", "100")
		add("index/volume", q).Tenant = "t1|t2"
	}
	for _, p := range [][2]string{{"limit", "x"}, {"limit", "0"}, {"limit", "1"}, {"limit", "-1"}, {"aggregateBy", "x"}, {"aggregateBy", "series"}, {"direction", "up"}, {"start", "x"}, {"end", "5"}, {"step", "0"}, {"step", "x"}} {
		add("index/volume", `{app=~".+"}`, p[0], p[1])
		add("index/volume_range", `{app=~".+"}`, "step", "100", p[0], p[1])
	}
	return all
}

// pushToLoki pushes a line.
func pushToLoki(t *testing.T, tenant string, labels, metadata model.Labels, at int64, text string) {
	object := func(l model.Labels) map[string]string {
		m := map[string]string{}
		for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
			m[string(n)] = string(v)
		}
		return m
	}
	body, err := json.Marshal(map[string]any{"streams": []any{map[string]any{
		"stream": object(labels), "values": []any{[]any{fmt.Sprint(at), text, object(metadata)}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, *lokiURL+"/loki/api/v1/push", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Scope-OrgID", tenant)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		t.Fatal(response.Status)
	}
}

// record pushes the lines to a Loki and saves its responses.
func record(t *testing.T, s *lokitest.Suite) {
	r := lokitest.Recording{At: time.Now().Unix() - 100}
	r.Requests = recordings[s.Name](r.At)
	for _, l := range s.Lines(r.At) {
		for _, tenant := range lokitest.Tenants() {
			pushToLoki(t, tenant, l.Labels, l.Metadata, l.Time, l.Text)
		}
	}
	for _, q := range r.Requests {
		var err error
		if q.Status, q.Type, q.Body, err = q.Do(*lokiURL, nil); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	// A request a line, so that a change can be seen.
	text = append(bytes.ReplaceAll(text, []byte(`{"path":`), []byte("\n"+`{"path":`)), '\n')
	if err := os.WriteFile(filepath.Join("lokitest", "testdata", s.Name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRecorded repeats the requests to a real Loki: the responses are the same, except where they differ on
// purpose. With -loki it records new responses instead.
func TestRecorded(t *testing.T) {
	for _, s := range lokitest.Suites() {
		t.Run(s.Name, func(t *testing.T) {
			if *lokiURL != "" {
				record(t, &s)
				return
			}
			all := s.Read(t)
			w := newWorld(t, func(o *Options) { o.Now = func() time.Time { return time.Unix(all.At+100, 0) } })
			for _, l := range s.Lines(all.At) {
				for _, tenant := range lokitest.Tenants() {
					w.memory.AddText(tenant, l.Labels.Key(7, model.Logs), l.Labels, readtest.Line{Time: l.Time, Text: l.Text, Metadata: l.Metadata})
				}
			}
			s.Compare(t, all, w)
		})
	}
}
