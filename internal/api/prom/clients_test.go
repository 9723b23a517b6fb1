package prom_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	common "github.com/prometheus/common/model"

	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/api/prom"
)

// The series that the clients find.
var fleet = []string{
	`up{job="a",instance="1"} 900:1 930:0 960:1 990:1`, `up{job="b",instance="1"} 960:1 990.5:1`, `requests{job="a"} 900:1 930:2 960:3 990:4`,
	`latency_bucket{le="+Inf"} 990:3`, `{"weird name","label with space"="x"} 995:1`,
}

// The shapes of data in responses, as Go types that they must fit.
type (
	names  []string
	series []map[string]string
	result struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Value  []any   `json:",omitempty"`
			Values [][]any `json:",omitempty"`
		}
	}
	scalar struct {
		ResultType string
		Result     []any
	}
	exemplars []struct {
		SeriesLabels map[string]string
		Exemplars    []struct {
			Labels    map[string]string
			Value     string
			Timestamp float64
		}
	}
	metadata map[string][]struct{ Type, Help, Unit string }
	groups   struct{ Groups []any }
	alerts   struct{ Alerts []any }
	build    struct{ Version, Revision, Branch, BuildUser, BuildDate, GoVersion, Application string }
	options  map[string]string
)

// A clientRequest is what a client sends: the parameters in the URL, or in the body of a POST.
type clientRequest struct {
	why          string
	method, path string
	params       string // encoded, as the client encodes them
	status       int
	shape        any // a pointer to what the data must fit into
	check        func(data any) bool
}

// grafana is every request that the Prometheus data source of Grafana 10 to 13 makes, of its backend and of
// its front end, with GET and with POST, and those that Grafana's alerting makes of such a source.
func grafana() []clientRequest {
	hasSeries := func(n int) func(any) bool {
		return func(data any) bool { return len(data.(*result).Result) == n && data.(*result).ResultType != "" }
	}
	has := func(want ...string) func(any) bool {
		return func(data any) bool { return cmp.Equal([]string(*data.(*names)), want) }
	}
	const span = "start=600&end=1000"
	all := []clientRequest{
		{"health check", "POST", "query", "query=1%2B1&time=4", 200, new(scalar), func(data any) bool { return data.(*scalar).Result[1] == "2" }},
		{"panel, instant", "POST", "query", "query=up&time=1000.123&timeout=60s", 200, new(result), hasSeries(2)},
		{"panel, range", "POST", "query_range", "query=rate%28requests%5B1m0s%5D%29&start=600&end=1000&step=15&timeout=2m", 200, new(result), hasSeries(1)},
		{"panel, step below a second", "POST", "query_range", "query=up&start=980.5&end=1000.25&step=0.5", 200, new(result), hasSeries(2)},
		{"exemplars of a panel", "POST", "query_exemplars", "query=requests&start=600&end=1000", 200, new(exemplars), func(data any) bool {
			return len(*data.(*exemplars)) == 2
		}},
		{"are there exemplars, in milliseconds", "GET", "query_exemplars", "query=test&start=1732190000000&end=1732191800000", 200, new(exemplars), nil},
		{"annotations", "POST", "query_range", "query=up%20%3E%200&start=600&end=1020&step=60", 200, new(result), hasSeries(2)},
		{"variable: query_result", "POST", "query", "query=up&time=1000", 200, new(result), hasSeries(2)},
		{"variable: label_values(metric, label)", "GET", "label/job/values", span + "&match%5B%5D=up&limit=40000", 200, new(names), has("a", "b")},
		{"variable: label_values(label)", "GET", "label/job/values", span, 200, new(names), has("a", "b")},
		{"variable: metrics(pattern)", "GET", "label/__name__/values", span + "&limit=40000&match%5B%5D=%7B__name__%3D~%22u.%22%7D", 200, new(names), has("up")},
		{"variable: label_names()", "POST", "labels", span + "&limit=40000", 200, new(names), has("__name__", "instance", "job", "label with space", "le")},
		{"variable: label_names(pattern)", "POST", "labels", span + "&match%5B%5D=%7B__name__%3D~%22.%2Aup.%2A%22%7D", 200, new(names), has("__name__", "instance", "job")},
		{"variable: a series selector", "POST", "series", span + "&match%5B%5D=up", 200, new(series), func(data any) bool { return len(*data.(*series)) == 2 }},
		{"metric names of the editor", "GET", "label/__name__/values", span + "&limit=40000", 200, new(names), has("latency_bucket", "requests", "up", "weird name")},
		{"metric names, cut", "GET", "label/__name__/values", span + "&limit=2", 200, new(names), has("latency_bucket", "requests")},
		{"without the limit", "GET", "label/__name__/values", span + "&limit=0", 200, new(names), has("latency_bucket", "requests", "up", "weird name")},
		{"labels of the builder", "POST", "labels", span + "&match%5B%5D=up&match%5B%5D=requests", 200, new(names), has("__name__", "instance", "job")},
		{"labels of a metric in UTF-8", "POST", "labels", span + "&match%5B%5D=%7B%22weird%20name%22%7D", 200, new(names), has("__name__", "label with space")},
		{"values of a label in UTF-8", "GET", "label/U__label_20_with_20_space/values", span + "&match%5B%5D=%7B%22weird%20name%22%7D", 200, new(names), has("x")},
		{"the browser of metrics, all series", "POST", "series", span + "&match%5B%5D=%7B__name__%21%3D%22%22%7D&limit=40000", 200, new(series), func(data any) bool { return len(*data.(*series)) == 5 }},
		{"metadata", "GET", "metadata", "limit=40000", 200, new(metadata), func(data any) bool { return (*data.(*metadata))["up"][0].Type == "gauge" }},
		{"metadata, all", "GET", "metadata", "", 200, new(metadata), func(data any) bool { return len(*data.(*metadata)) == 3 }},
		{"filters of dashboards: keys", "POST", "labels", "match%5B%5D=%7Bjob%3D%22a%22%7D&" + span, 200, new(names), has("__name__", "instance", "job")},
		{"filters of dashboards: values, by POST", "POST", "label/job/values", "match%5B%5D=%7B__name__%3D~%22up%7Crequests%22%7D&" + span + "&limit=10", 200, new(names), has("a", "b")},
		{"the kind of server", "GET", "status/buildinfo", "", 200, new(build), func(data any) bool { return data.(*build).Version == "1.2.3" }},
		{"old kinds of servers", "GET", "query", "query=prometheus_build_info", 200, new(result), hasSeries(0)},
		{"alerting: rules", "GET", "rules", "", 200, new(groups), func(data any) bool { return data.(*groups).Groups != nil }},
		{"alerting: rules in pages", "GET", "rules", "group_limit=40&exclude_alerts=true&type=alert&rule_name%5B%5D=x", 200, new(groups), nil},
		{"alerting: alerts", "GET", "alerts", "", 200, new(alerts), func(data any) bool { return data.(*alerts).Alerts != nil }},
		{"alerting: flags", "GET", "status/flags", "", 200, new(options), func(data any) bool { return len(*data.(*options)) == 2 }},
		{"alerting: can rules be edited", "GET", "../../config/v1/rules/test/test", "", 404, nil, nil},
		{"search, where a server has it", "GET", "search/metric_names", span + "&limit=100&search%5B%5D=u&sort_by=score&batch_size=100&include_metadata=true", 500, nil, nil},
	}
	// Grafana sends by GET instead of POST if the data source is configured so.
	for _, c := range all {
		if c.method == "POST" {
			c.method = "GET"
			all = append(all, c)
		}
	}
	return all
}

func TestGrafana(t *testing.T) {
	w := newWorld(t, wired)
	w.MustLoad(t, "anonymous", fleet...)
	for _, c := range grafana() {
		path, body := "/api/v1/"+c.path, ""
		if strings.HasPrefix(c.path, "../../") {
			path = strings.TrimPrefix(c.path, "../..")
		}
		if c.method == "POST" {
			body = c.params
		} else if c.params != "" {
			path += "?" + c.params
		}
		send := func(target, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(c.method, target, strings.NewReader(body))
			if c.method == "POST" {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			r.Header.Set("X-Grafana-Cache", "private, max-age=60")
			r.Header.Set("Accept-Encoding", "identity")
			out := httptest.NewRecorder()
			w.ServeHTTP(out, r)
			return out
		}
		checkClient(t, c, send(path, body))
		if c.method == "POST" {
			// Suggestions come as a POST whose parameters are in the URL.
			checkClient(t, c, send(path+"?"+c.params, ""))
		}
	}
}

func checkClient(t *testing.T, c clientRequest, r *httptest.ResponseRecorder) {
	t.Helper()
	if r.Code != c.status {
		t.Errorf("%s: %s %s?%s: %s", c.why, c.method, c.path, c.params, apitest.Show(r))
		return
	}
	if c.shape == nil {
		return
	}
	e := parse(t, r)
	d := json.NewDecoder(strings.NewReader(string(e.Data)))
	d.DisallowUnknownFields()
	if err := d.Decode(c.shape); err != nil || e.Status != "success" {
		t.Errorf("%s: %s %s?%s: %v: %s", c.why, c.method, c.path, c.params, err, apitest.Show(r))
		return
	}
	if c.check != nil && !c.check(c.shape) {
		t.Errorf("%s: %s %s?%s: %s", c.why, c.method, c.path, c.params, apitest.Show(r))
	}
}

// TestPromtool sends what promtool's queries and the client library that it is built on send, and reads it
// with them.
func TestPromtool(t *testing.T) {
	w := newWorld(t, wired)
	w.MustLoad(t, "anonymous", fleet...)
	s := httptest.NewServer(w)
	defer s.Close()
	defer s.Client().CloseIdleConnections()
	c, err := api.NewClient(api.Config{Address: s.URL, Client: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	a, ctx := v1.NewAPI(c), context.Background()
	begin, end := time.Unix(600, 0), time.Unix(1000, 0)
	check := func(name string, got, want any, err error) {
		t.Helper()
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
	v, _, _, err := a.Query(ctx, `up{job="a"}`, end)
	check("query", v.String(), `up{instance="1", job="a"} => 1 @[1000]`, err)
	v, _, _, err = a.Query(ctx, `up{job="a"}[1m]`, end, v1.WithTimeout(time.Second), v1.WithLimit(1), v1.WithStats("all"), v1.WithLookbackDelta(time.Minute))
	check("query", len(v.(common.Matrix)[0].Values), 2, err)
	v, _, _, err = a.QueryRange(ctx, "sum(up)", v1.Range{Start: begin, End: end, Step: 100 * time.Second})
	check("query range", v.String(), "{} =>\n1 @[900]\n2 @[1000]", err)
	sets, _, _, err := a.Series(ctx, []string{"up", `{job="b"}`}, begin, end)
	check("series", len(sets), 2, err)
	ns, _, _, err := a.LabelNames(ctx, nil, begin, end, v1.WithLimit(2))
	check("label names", ns, common.LabelNames{"__name__", "instance"}, err)
	vs, warnings, _, err := a.LabelValues(ctx, "job", []string{"up"}, begin, end, v1.WithLimit(1))
	check("label values", vs, common.LabelValues{"a"}, err)
	check("label values", warnings, v1.Warnings{"results truncated due to limit"}, nil)
	vs, _, _, err = a.LabelValues(ctx, "label with space", nil, begin, end)
	check("label values in UTF-8", vs, common.LabelValues{"x"}, err)
	ex, err := a.QueryExemplars(ctx, "requests", begin, end)
	check("exemplars", len(ex), 2, err)
	md, err := a.Metadata(ctx, "up", "")
	check("metadata", md, map[string][]v1.Metadata{"up": {{Type: "gauge", Help: "Whether a <target> is up."}}}, err)
	tm, err := a.TargetsMetadata(ctx, `{job="a"}`, "up", "")
	check("targets metadata", len(tm), 0, err)
	targets, err := a.Targets(ctx)
	check("targets", targets, v1.TargetsResult{Active: []v1.ActiveTarget{}, Dropped: []v1.DroppedTarget{}}, err)
	rules, err := a.Rules(ctx, []string{`{job="a"}`})
	check("rules", rules, v1.RulesResult{Groups: []v1.RuleGroup{}}, err)
	al, err := a.Alerts(ctx)
	check("alerts", al, v1.AlertsResult{Alerts: []v1.Alert{}}, err)
	am, err := a.AlertManagers(ctx)
	check("alertmanagers", am, v1.AlertManagersResult{Active: []v1.AlertManager{}, Dropped: []v1.AlertManager{}}, err)
	flags, err := a.Flags(ctx)
	check("flags", flags, v1.FlagsResult{"retention": "30d", "memory": "<4 GiB>"}, err)
	cfg, err := a.Config(ctx)
	check("config", cfg.YAML, "retention: 30d\nmemory: \"4GiB\"\n", err)
	info, err := a.Buildinfo(ctx)
	check("buildinfo", info.Version, "1.2.3", err)
	rt, err := a.Runtimeinfo(ctx)
	check("runtimeinfo", rt.StorageRetention, "30d", err)
	st, err := a.TSDB(ctx, v1.WithLimit(1))
	check("tsdb", st.SeriesCountByMetricName, []v1.Stat{{Name: "up", Value: 5}}, err)
	wal, err := a.WalReplay(ctx)
	check("walreplay", wal, v1.WalReplayStatus{}, err)
	text, err := a.FormatQuery(ctx, "a+b")
	check("format", text, `"a + b"`, err)
	if _, _, _, err = a.Query(ctx, "up{", end); err == nil || !strings.Contains(err.Error(), "bad_data: invalid parameter \"query\"") {
		t.Errorf("a bad query: %v", err)
	}
	if err := a.CleanTombstones(ctx); err == nil {
		t.Error("there are admin endpoints")
	}
}

// TestNothingWired asks for what the handler was not given.
func TestNothingWired(t *testing.T) {
	w := newWorld(t, nil)
	for path, want := range map[string]string{
		"metadata": `{}`, "query_exemplars?query=up": `[]`, "status/flags": `{}`, "status/config": `{"yaml":""}`,
		"status/tsdb": `{"headStats":{"numSeries":0,"numLabelPairs":0,"chunkCount":0,"minTime":0,"maxTime":0},"seriesCountByMetricName":[],` +
			`"labelValueCountByLabelName":[],"memoryInBytesByLabelName":[],"seriesCountByLabelValuePair":[]}`,
	} {
		if e := parse(t, w.Get("/api/v1/"+path)); e.Status != "success" || string(e.Data) != want {
			t.Errorf("%s: %s", path, e.Data)
		}
	}
	var info map[string]any
	e := parse(t, w.Get("/api/v1/status/runtimeinfo"))
	if err := json.Unmarshal(e.Data, &info); err != nil || len(info) != 13 {
		t.Errorf("runtimeinfo: %s %v", e.Data, err)
	}
}

func TestMultipartForm(t *testing.T) {
	w := newWorld(t, nil)
	w.MustLoad(t, "anonymous", `up{job="a"} 990:1`)
	send := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/api/v1/query?time=1000", strings.NewReader(strings.ReplaceAll(body, "\n", "\r\n")))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=bb")
		out := httptest.NewRecorder()
		w.ServeHTTP(out, r)
		return out
	}
	if r := send("--bb\nContent-Disposition: form-data; name=\"query\"\n\nup * 7\n--bb--\n"); r.Code != 200 || !strings.Contains(r.Body.String(), `"7"`) {
		t.Error(apitest.Show(r))
	}
	expect(t, send("--bb\nContent-Disposition: form-data; name=\"query\"; filename=\"x\"\n\nup\n--bb--\n"), 400, "bad_data", "no expression found")
	expect(t, send("--bb\nContent-Disposition: form-data; name=\"query\"\n\n"+strings.Repeat("x", 2<<20)+"\n--bb--\n"), 413, "bad_data", "larger than 1048576 bytes")
	expect(t, send(strings.Repeat("--bb\nContent-Disposition: form-data; name=\"q\"\n\nx\n", 5000)+"--bb--\n"), 400, "bad_data", "multipart")
}

func TestCORS(t *testing.T) {
	w := newWorld(t, func(o *prom.Options) { o.CORSOrigin = regexp.MustCompile(`https://a|https://(a|b)\.example`) })
	for origin, allowed := range map[string]string{
		"https://a.example": "https://a.example", "https://b.example": "https://b.example", "https://a.example.org": "", "http://a.example": "", "xhttps://a.example": "", "": "",
	} {
		r := w.Do("GET", "/api/v1/labels", nil, []string{"Origin: " + origin})
		if got := r.Header().Get("Access-Control-Allow-Origin"); got != allowed {
			t.Errorf("%q: %q", origin, got)
		}
		if (r.Header().Get("Access-Control-Allow-Methods") != "") != (origin != "") || r.Header().Values("Vary")[1] != "Origin" {
			t.Errorf("%q: %v", origin, r.Header())
		}
	}
}
