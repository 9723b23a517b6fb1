package loki

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// computed is an engine whose results of metric queries come from a test.
type computed struct {
	Engine
	numbers func(q *logql.MetricQuery) (*logql.Numbers, error)
}

func (c *computed) Numbers(_ context.Context, q *logql.MetricQuery) (*logql.Numbers, error) {
	return c.numbers(q)
}

// compute replaces the results of metric queries.
func compute(numbers func(*logql.MetricQuery) (*logql.Numbers, error)) func(*Options) {
	return func(o *Options) { o.Engine = &computed{o.Engine, numbers} }
}

// series returns a series whose values are those that are not nil.
func series(l model.Labels, values ...any) vector.Series {
	s := vector.Series{Labels: l, Values: make([]float64, len(values)), Present: vector.NewSet(len(values))}
	for i, v := range values {
		if v != nil {
			s.Values[i] = v.(float64)
			s.Present.Add(i)
		}
	}
	return s
}

// samples are the series of results, of which a request selects some by their number.
var samples = []vector.Series{
	series(nil, 0.0, 1.0, 0.1, 1e21, 1e-7, -1.5),
	series(model.LabelsOf("app", "a\"b\\c\n"), 1.0, nil, math.NaN(), nil, math.Inf(1), math.Inf(-1)),
	series(model.LabelsOf("app", "ä", "host", "1"), 123456789.0, 1.0/3, math.MaxFloat64, math.SmallestNonzeroFloat64, 9007199254740993.0, 7.0),
	series(model.LabelsOf("app", "late"), nil, nil, nil, nil, nil, 2.0),
}

// sampleResult returns a result that the text of a query describes: its kind and the series.
func sampleResult(q *logql.MetricQuery) (*logql.Numbers, error) {
	var kind string
	n := 0
	if _, err := fmt.Sscanf(q.Prepared.String(), `count_over_time({%1s="%d"}[1s])`, &kind, &n); err != nil {
		return nil, err
	}
	r := &logql.Numbers{Kind: logql.ResultKind(strings.Index("mvs", kind)), Matrix: &vector.Matrix{Steps: q.Steps}}
	for i, s := range samples {
		if n>>i&1 == 0 {
			continue
		}
		if r.Kind != logql.ResultMatrix {
			s = series(s.Labels, s.Values[0])
		}
		r.Matrix.Series = append(r.Matrix.Series, s)
	}
	if q.Partial {
		r.Warnings = []string{"a \"part\" of the result"}
	}
	return r, nil
}

// bothFormats is a request with its response in both formats, for test/logql-oracle to compare.
type bothFormats struct {
	Path     string `json:"path"`
	JSON     string `json:"json"`
	Protobuf []byte `json:"protobuf"`
}

var rewriteFormats = flag.Bool("rewrite-formats", false, "write the responses in both formats again")

// mostStats matches the statistics of a response but for the summary.
var mostStats = regexp.MustCompile(`("stats":\{"summary":\{[^}]*\}).*"shale":\{[^}]*\}\}`)

const formatsPath = "testdata/formats.json"

// TestFormats compares responses in JSON and in protobuf with recorded ones. test/logql-oracle decodes the
// recorded protobuf and encodes it as JSON with Loki's own code.
func TestFormats(t *testing.T) {
	var got []bothFormats
	synctest.Test(t, func(t *testing.T) { // where requests take no time
		w := newWorld(t, compute(sampleResult))
		w.MustLoad(t, "anonymous",
			`{app="a", host="1"} 990 first of a`, `{app="a", host="1"} 991 {trace="t1", user="ä"} second of a`, `{app="b"} 995 "tab\tand \\ \" ü"`, `{app="b"} 995.001 ""`, `{app="c"} 996 {"n":1,"user":{"name":"x"}}`, `{app="c"} 997 n=2 took=3ms`)
		add := func(path string, params ...string) {
			both := bothFormats{Path: path + "?" + strings.Join(params, "&")}
			plain := w.Do("GET", current+path, params, nil)
			packed := w.Do("GET", current+path, params, []string{"Accept: " + protobufType})
			if plain.Code != 200 || packed.Code != 200 || packed.Header().Get("Content-Type") != protobufType {
				t.Errorf("%s: %s %s", both.Path, apitest.Show(plain), apitest.Show(packed))
			}
			both.JSON, both.Protobuf = mostStats.ReplaceAllString(plain.Body.String(), "$1}"), packed.Body.Bytes()
			got = append(got, both)
		}
		for _, n := range []int{0, 1, 2, 4, 8, 15} {
			add("query_range", fmt.Sprintf(`query=count_over_time({m="%d"}[1s])`, n), "start=1000", "end=1000.005", "step=0.001")
			if n&8 == 0 {
				add("query", fmt.Sprintf(`query=count_over_time({v="%d"}[1s])`, n), "time=1000.5")
			}
		}
		add("query", `query=count_over_time({s="1"}[1s])`, "time=1")
		for _, q := range []string{`{app="a"}`, `{app="b"}`, `{app=~".+"}`, `{app="none"}`, `{app="a"} | json`} {
			add("query_range", "query="+q)
			add("query_range", "query="+q, "direction=forward", "limit=1")
		}
		for _, path := range []string{"labels", "label/app/values", "label/none/values", "series", "index/stats", "index/volume"} {
			add(path, `query={app=~".+"}`)
		}
		add("index/volume_range", `query={app=~".+"}`, "step=1", "since=1m")
		add("index/volume", `query={app=~".+"}`, "aggregateBy=labels")
		for _, q := range []string{`query={app=~".+"}`, `query={app="none"}`} {
			add("detected_labels", q)
			add("detected_fields", q)
			add("detected_field/n/values", q)
		}
	})
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if *rewriteFormats {
		if err := os.WriteFile(formatsPath, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(formatsPath)
	if err != nil {
		t.Fatal(err)
	}
	var want []bothFormats
	if err := json.Unmarshal(recorded, &want); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if i >= len(want) || got[i].JSON != want[i].JSON || string(got[i].Protobuf) != string(want[i].Protobuf) {
			t.Fatalf("%s: %s", got[i].Path, got[i].JSON)
		}
	}
}

// TestSteps checks the steps of metric queries: their times are multiples of the step, as in Loki.
func TestSteps(t *testing.T) {
	const s = int64(1e9)
	for _, c := range []struct {
		start, end, step int64
		want             vector.Steps
	}{
		{1795463607 * s, 1795463667 * s, 30 * s, vector.Steps{Start: 1795463580 * s, Step: 30 * s, Count: 4}},
		{1795463607*s + 15e5, 1795463607*s + 15e5, 30 * s, vector.Steps{Start: 1795463580 * s, Step: 30 * s, Count: 2}},
		{1795463580 * s, 1795463580 * s, 30 * s, vector.Steps{Start: 1795463580 * s, Step: 30 * s, Count: 1}},
		{1795463607 * s, 1795463617 * s, s + 5e5, vector.Steps{Start: 1795463607 * s, Step: s, Count: 11}},
		{1795463607 * s, 1795472607 * s, 3600 * s, vector.Steps{Start: 1795460400 * s, Step: 3600 * s, Count: 5}},
		{-5 * s, 5 * s, 10 * s, vector.Steps{Start: -10 * s, Step: 10 * s, Count: 3}},
		{math.MaxInt64 - 1, math.MaxInt64, s, vector.Steps{Start: math.MaxInt64 / s * s, Step: s, Count: 1}},
		{math.MinInt64, math.MinInt64 + 1, s, vector.Steps{Start: math.MinInt64, Step: s, Count: 1}},
		{math.MinInt64, math.MaxInt64, 36893488 * s, vector.Steps{Start: math.MinInt64, Step: 36893488 * s, Count: 501}},
	} {
		w := window{start: c.start, end: c.end, step: c.step}
		if got, err := w.steps(); err != nil || got != c.want {
			t.Errorf("%d to %d by %d: %+v, %v; want %+v", c.start, c.end, c.step, got, err, c.want)
		}
	}
	w := window{start: 1, end: 2, step: 999_999}
	if _, err := w.steps(); err != errStep {
		t.Error(err)
	}
}

// TestMetricQuery checks what the engine is asked.
func TestMetricQuery(t *testing.T) {
	var got *logql.MetricQuery
	w := newWorld(t, func(o *Options) {
		o.Limits.MaxResultSeries = 7
		compute(func(q *logql.MetricQuery) (*logql.Numbers, error) {
			got = q
			return &logql.Numbers{Kind: logql.ResultVector, Matrix: new(vector.Matrix)}, nil
		})(o)
	})
	for _, tags := range []string{"", "Source=other", "Source=grafana-lokiexplore-app", "feature=x,source=Grafana-LokiExplore-App,a", "Source", "Source=grafana-lokiexplore-app=x"} {
		r := w.Do("GET", current+"query", []string{"query=vector(1)", "time=12.5"}, []string{"X-Query-Tags: " + tags})
		wanted := strings.Contains(strings.ToLower(tags), "source=grafana-lokiexplore-app") && !strings.HasSuffix(tags, "=x")
		if r.Code != 200 || !got.Instant || got.Partial != wanted || got.MaxSeries != 7 || got.Steps != (vector.Steps{Start: 12_500_000_000, Count: 1}) {
			t.Errorf("%q: %+v %s", tags, got, apitest.Show(r))
		}
	}
	r := w.Get(queryPath, "query=vector(1)", "start=7", "end=20", "step=5", "limit=6000")
	if r.Code != 200 || got.Instant || got.Steps != (vector.Steps{Start: 5e9, Step: 5e9, Count: 4}) {
		t.Errorf("%+v %s", got, apitest.Show(r))
	}
}

// TestProtobufIsCharged: a response that does not fit the memory of its query is refused before it is built,
// and what is charged has room for it.
func TestProtobufIsCharged(t *testing.T) {
	line := make([]byte, 40<<10)
	labels := model.LabelsOf("app", strings.Repeat("x", 300), "b", "y")
	stream := logql.Stream{Labels: labels}
	for i := range 50 {
		stream.Entries = append(stream.Entries, logql.Entry{Time: math.MaxInt64 - int64(i), Line: line, Metadata: labels, Parsed: labels})
	}
	got := &logql.Lines{Streams: []logql.Stream{stream, stream}}
	steps := vector.NewSet(3)
	steps.Add(0)
	steps.Add(2)
	result := &numbers{times: []int64{math.MinInt64, 0, math.MaxInt64}, series: []vector.Series{{Labels: labels, Values: []float64{1.5, 0, math.NaN()}, Present: steps}}}
	for name, build := range map[string]func(r *api.Request) (*api.Response, error){
		"lines": func(r *api.Request) (*api.Response, error) {
			return protobufLines(r, got, &window{}, true, newFigures(r, &got.Stats))
		},
		"numbers": func(r *api.Request) (*api.Response, error) {
			return protobufNumbers(r, result, newFigures(r, &got.Stats))
		},
		"names": func(r *api.Request) (*api.Response, error) {
			return protobufTexts(r, []string{"a", strings.Repeat("n", 200)})
		},
		"series": func(r *api.Request) (*api.Response, error) { return protobufSeries(r, []model.Labels{labels, labels}) },
	} {
		request := func(limit int64) *api.Request {
			hr := httptest.NewRequest(http.MethodGet, "/loki/api/v1/query_range", nil)
			return &api.Request{Request: hr, Quota: &model.Quota{MaxBytes: limit}, Cost: &model.Cost{}}
		}
		if _, err := build(request(50)); !errors.Is(err, model.ErrLimit) {
			t.Errorf("%s: within 50 bytes: %v", name, err)
		}
		r := request(0)
		res, err := build(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w := httptest.NewRecorder()
		b := api.NewBody(w, r.Request)
		res.Write(b)
		b.Flush(http.StatusOK, true)
		const around = 2000 // status and statistics, which do not grow
		if charged := r.Quota.Charged().Bytes(); charged < int64(w.Body.Len()-around) || charged > int64(2*w.Body.Len()) {
			t.Errorf("%s: %d bytes are charged for a response of %d", name, charged, w.Body.Len())
		}
	}
}
