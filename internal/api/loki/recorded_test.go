package loki

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/readtest"
)

// A Loki 3.7 that is empty, with auth_enabled and querier.multi_tenant_queries_enabled, and without
// discover_log_levels and discover_service_name in its limits_config.
var lokiURL = flag.String("loki", "", "a Loki whose answers are to be recorded")

// recordings are the files of Loki's responses, each with its requests.
var recordings = map[string]func(begin int64) []*recorded{
	"testdata/loki.json":         recordedRequests,
	"testdata/loki_numbers.json": recordedNumbers,
}

// recording is what a Loki said at a time, in Unix seconds: that of the first line.
type recording struct {
	At       int64       `json:"at"`
	Requests []*recorded `json:"requests"`
}

// recorded is a request with Loki's response, without statistics.
type recorded struct {
	Path   string     `json:"path"`
	Params url.Values `json:"params,omitempty"`
	// Tenant is anonymous if empty. Loki needs it in the request.
	Tenant     string `json:"tenant,omitempty"`
	Categorize bool   `json:"categorize,omitempty"`
	Status     int    `json:"status"`
	Type       string `json:"type"`
	Body       string `json:"body"`
}

func (r *recorded) name() string {
	return fmt.Sprintf("%s %s %s %v", r.Path, r.Params.Encode(), r.Tenant, r.Categorize)
}

// different are the requests whose responses differ on purpose, each with the reason.
func different(r *recorded) string {
	q := r.Params.Get("query")
	switch {
	case strings.HasPrefix(r.Path, legacy+"label") && r.Status == http.StatusOK:
		return "Loki gives another form and no values, unless its frontend.encoding is protobuf"
	case r.Path == current+"series" && strings.Contains(r.Tenant, "|") && strings.Contains(r.Body, `"__tenant_id__":"own"`):
		return "Loki shows a stream's own label of the tenant's name, and a tenant less"
	case strings.HasPrefix(r.Body, "rpc error"):
		return "Loki shows a code of gRPC before the text"
	case r.Path == current+"index/stats" && r.Status == 200:
		return "Loki does not count what it has in memory"
	case r.Path == legacy+"query" && r.Params.Has("regexp") && (strings.HasSuffix(q, `|~ "("`) || strings.Contains(q, "ip(")):
		return "of filters that follow each other Loki shows all when one is wrong"
	case strings.Contains(r.Body, `"resultType":"scalar"`):
		return "Loki takes milliseconds for seconds"
	case r.Status == http.StatusInternalServerError && strings.Contains(r.Body, "many-to-many matching not allowed"):
		return "Loki takes an error of a query for one of its own"
	case strings.HasPrefix(r.Path, current+"index/volume") && r.Status == http.StatusOK && regexp.MustCompile(`"app":("a"|"")|"host"`).MatchString(r.Body):
		return "Loki counts structured metadata, too"
	case strings.HasPrefix(r.Path, current+"index/volume") && strings.Contains(r.Tenant, "|") && (strings.Contains(q, "__tenant_id__") || q == "{}"):
		return "Loki does not show tenants in volumes"
	case r.Path == current+"tail" && r.Status == 400 && strings.HasPrefix(r.Body, "Bad Request"):
		return "Loki goes on to the websocket, and refuses behind it"
	case strings.ContainsAny(r.Tenant, " /") || strings.HasPrefix(r.Tenant, ".") || len(r.Tenant) > 100:
		return "tenants are refused in words of our own"
	case strings.Contains(r.Body, "the query time range exceeds the limit"):
		return "a range may be as long as it likes"
	}
	return ""
}

// recordedLines are the stored lines: stream, nanoseconds after the first line, text, metadata.
func recordedLines(begin int64) (all []struct {
	labels, metadata model.Labels
	at               int64
	text             string
}) {
	add := func(labels model.Labels, at int64, text string, metadata model.Labels) {
		all = append(all, struct {
			labels, metadata model.Labels
			at               int64
			text             string
		}{labels, metadata, begin*1e9 + at, text})
	}
	a1, a2, b := model.LabelsOf("app", "a", "host", "1"), model.LabelsOf("app", "a", "host", "2"), model.LabelsOf("app", "b")
	add(a1, 0, "first of a", nil)
	add(a1, 1e9, "second of a", model.LabelsOf("trace", "t1", "user", "ä<>&\n"))
	add(a1, 2e9+1, `level=info msg="hi there" dur=10ms`, nil)
	add(a2, 3e9, `{"level":"error","status":500,"app":"inner","n":{"x":1}}`, model.LabelsOf("trace", "t2"))
	add(a2, 4e9, "quoted \" \\ \n\t\x00 <b>&\u2028 end", nil)
	add(b, 5e9, "of b", nil)
	add(b, 6e9, "last of b", nil)
	add(model.LabelsOf("__tenant_id__", "own", "app", "own"), 7e9, "a label of the tenant's name", nil)
	return all
}

// recordedRequests are the requests without their responses.
func recordedRequests(begin int64) (all []*recorded) {
	add := func(path string, pairs ...string) *recorded {
		r := &recorded{Path: path, Params: url.Values{}}
		for i := 0; i < len(pairs); i += 2 {
			r.Params.Add(pairs[i], pairs[i+1])
		}
		all = append(all, r)
		return r
	}
	start, end := fmt.Sprint(begin-10), fmt.Sprint(begin+60)
	lines := func(query string, pairs ...string) *recorded {
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
func recordedNumbers(begin int64) (all []*recorded) {
	start, end, at := fmt.Sprint(begin-10), fmt.Sprint(begin+60), fmt.Sprint(begin+30)
	add := func(path, query string, pairs ...string) *recorded {
		r := &recorded{Path: current + path, Params: url.Values{"query": {query}}}
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

// do sends a request to a server, or to the handler if server is empty.
func (r *recorded) do(server string, h http.Handler) (status int, contentType, body string, err error) {
	request, err := http.NewRequest(http.MethodGet, server+r.Path+"?"+r.Params.Encode(), nil)
	if err != nil {
		return 0, "", "", err
	}
	if r.Tenant == "" {
		r.Tenant = model.DefaultTenant
	}
	request.Header.Set("X-Scope-OrgID", r.Tenant)
	if r.Categorize {
		request.Header.Set("X-Loki-Response-Encoding-Flags", categorizeLabels)
	}
	if h != nil {
		out := httptest.NewRecorder()
		h.ServeHTTP(out, request)
		return out.Code, out.Header().Get("Content-Type"), withoutStats(out.Body.String()), nil
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header.Get("Content-Type"), withoutStats(string(text)), err
}

// withoutStats removes the statistics from a response and sorts its unordered parts. Text stays as it is.
func withoutStats(body string) string {
	var v map[string]any
	if json.Unmarshal([]byte(body), &v) != nil {
		return body
	}
	delete(v, "stats")
	sorted := func(list any) {
		if l, ok := list.([]any); ok {
			slices.SortFunc(l, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	if data, ok := v["data"].(map[string]any); ok {
		delete(data, "stats")
		sorted(data["result"])
	}
	sorted(v["data"])
	sorted(v["streams"])
	out, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return string(out)
}

// record pushes the lines to a Loki and saves its responses.
func record(t *testing.T, path string, requests func(int64) []*recorded) {
	r := recording{At: time.Now().Unix() - 100}
	r.Requests = requests(r.At)
	for _, l := range recordedLines(r.At) {
		for _, tenant := range []string{model.DefaultTenant, "t1", "t2"} {
			pushToLoki(t, tenant, l.labels, l.metadata, l.at, l.text)
		}
	}
	r.save(t, path)
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

// save asks Loki for the responses and writes them to a file.
func (r *recording) save(t *testing.T, path string) {
	for _, q := range r.Requests {
		var err error
		if q.Status, q.Type, q.Body, err = q.do(*lokiURL, nil); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	// A request a line, so that a change can be seen.
	text = append(bytes.ReplaceAll(text, []byte(`{"path":`), []byte("\n"+`{"path":`)), '\n')
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// readRecording reads the responses of a Loki from a file.
func readRecording(t *testing.T, path string) *recording {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := &recording{}
	if err := json.Unmarshal(text, all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRecorded repeats the requests to a real Loki: the responses are the same, except where they differ on
// purpose.
func TestRecorded(t *testing.T) {
	for path, requests := range recordings {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if *lokiURL != "" {
				record(t, path, requests)
			}
			compareRecorded(t, path)
		})
	}
}

func compareRecorded(t *testing.T, path string) {
	all := readRecording(t, path)
	w := newWorld(t, func(o *Options) { o.Now = func() time.Time { return time.Unix(all.At+100, 0) } })
	for _, l := range recordedLines(all.At) {
		for _, tenant := range []string{model.DefaultTenant, "t1", "t2"} {
			w.memory.AddText(tenant, l.labels.Key(7, model.Logs), l.labels, readtest.Line{Time: l.at, Text: l.text, Metadata: l.metadata})
		}
	}
	same := 0
	for _, r := range all.Requests {
		status, contentType, body, err := r.do("", w)
		if err != nil {
			t.Fatal(err)
		}
		equal := status == r.Status && strings.EqualFold(contentType, r.Type) && body == r.Body
		switch reason := different(r); {
		case equal && reason != "":
			t.Errorf("%s: is the same, and is said to differ: %s", r.name(), reason)
		case equal:
			same++
		case reason == "":
			t.Errorf("%s: %d %s\n%s", r.name(), status, contentType, cmp.Diff(fmt.Sprintln(r.Status, r.Type, r.Body), fmt.Sprintln(status, contentType, body)))
		}
	}
	if same < len(all.Requests)*3/4 {
		t.Error(errors.New("most answers differ"))
	}
	t.Logf("%d of %d answers are the same", same, len(all.Requests))
}
