package graphite_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/graphite"
	"github.com/shaledb/shale/internal/read/graphite/graphitetest"
)

func number(v float64) *float64 { return &v }

// example serves three series with a step of 10 s.
func example(t *testing.T) http.Handler {
	t.Helper()
	d := graphitetest.Data{Series: map[string]graphitetest.Series{
		"a.one":      {Start: 1000, Step: 10, Values: []*float64{number(1), number(2), nil, number(4), number(5.5), number(6)}},
		"a.two":      {Start: 1000, Step: 10, Values: []*float64{number(10), number(20), number(30), number(40), number(50), number(60)}},
		"t;dc=eu;h=": {},
		"t;dc=eu":    {Start: 1000, Step: 10, Values: []*float64{number(7)}},
	}}
	delete(d.Series, "t;dc=eu;h=")
	return serve(t, &d)
}

func serve(t *testing.T, d *graphitetest.Data) http.Handler {
	t.Helper()
	engine, err := graphitetest.Engine(d)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	// The memory is bounded, so that hostile targets end.
	o := api.Options{Registerer: prometheus.NewRegistry(), Limits: api.Limits{MaxBytes: 256 << 20}}
	graphite.New(graphite.Options{Options: o, Render: engine}).Routes(mux)
	return mux
}

func request(h http.Handler, query string) graphitetest.Answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/render?"+query, nil))
	return graphitetest.Answer{Status: w.Code, Body: w.Body.String()}
}

func ask(h http.Handler, pairs ...string) graphitetest.Answer {
	v := url.Values{"from": {"999"}, "until": {"1050"}, "now": {"2000"}, "format": {"json"}}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return request(h, v.Encode())
}

func TestFormats(t *testing.T) {
	h := example(t)
	for _, c := range []struct{ pairs, want string }{
		{"target=a.one", `[{"target":"a.one","tags":{"name":"a.one"},"datapoints":[[1.0,1000],[2.0,1010],[null,1020],[4.0,1030],[5.5,1040],[6.0,1050]]}]`},
		{"target=a.one&noNullPoints=1&maxDataPoints=3", `[{"target":"a.one","tags":{"name":"a.one"},"datapoints":[[2.0,1020],[4.75,1040],[6.0,1060]]}]`},
		{"target=sumSeries(a.*)&format=raw", "sumSeries(a.*),1000,1060,10|11.0,22.0,30.0,44.0,55.5,66.0\n"},
		{"target=alias(a.one,'x,y')&format=csv&until=1020&tz=Europe/Berlin", "\"x,y\",1970-01-01 01:16:40,1.0\r\n\"x,y\",1970-01-01 01:16:50,2.0\r\n\"x,y\",1970-01-01 01:17:00,\r\n"},
		{"target=a.one&format=dygraph&until=1010", `{"labels" : ["Time", "a.one"], "data" : [[1000000, 1.0], [1010000, 2.0]]}`},
		{"target=a.one&format=rickshaw&until=1010", `[{"target": "a.one", "datapoints": [{"x": 1000, "y": 1.0}, {"x": 1010, "y": 2.0}]}]`},
		{"target=nothing", "[]"},
		{"target=nothing&format=dygraph", "{}"},
		{"target=pow(scale(a.one,1e200),1)&jsonp=draw&until=1000", `draw([{"target":"pow(scale(a.one,1e+200),1)","tags":{"name":"a.one","pow":"1.0","scale":"1e+200"},"datapoints":[[1e+200,1000]]}])`},
		{"target=template(constantLine($x))&template[x]=3&until=1001", `[{"target":"3.0","tags":{"name":"3.0"},"datapoints":[[3.0,999],[3.0,1000],[3.0,1001]]}]`},
		{"target=a.one|alias('b')|limit(1)&until=1000", `[{"target":"b","tags":{"name":"a.one"},"datapoints":[[1.0,1000]]}]`},
		{"target=seriesByTag('dc=e')&until=1000", `[]`},
		{"target=seriesByTag('dc=~e')&until=1000", `[{"target":"t;dc=eu","tags":{"dc":"eu","name":"t"},"datapoints":[[7.0,1000]]}]`},
	} {
		v, err := url.ParseQuery(c.pairs)
		if err != nil {
			t.Fatal(err)
		}
		var pairs []string
		for k := range v {
			pairs = append(pairs, k, v.Get(k))
		}
		if got := ask(h, pairs...); got.Status != 200 || got.Body != c.want {
			t.Errorf("%s: %d\n%s\nwant\n%s", c.pairs, got.Status, got.Body, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	h := example(t)
	for _, c := range []struct{ name, value, want string }{
		{"target", "f(a", "position 4"},
		{"target", "nosuch(a.one)", "unknown function: nosuch"},
		{"target", "scale(a.one,'x')", "factor"},
		{"target", "scale(a.one)", "factor"},
		{"target", "scale(a.one,1,2)", "at most 2"},
		{"target", "scale(a.one,by=1)", "by"},
		{"target", "summarize(a.one,'0s')", "positive"},
		{"target", "summarize(a.one,'-1h')", "positive"},
		{"target", "grep(a.one,'(')", "regular expression"},
		{"target", "aliasSub(a.one,'a','\\9')", "group"},
		{"target", "seriesByTag('x!=1')", "non-empty"},
		{"target", "alias('x','y')", "seriesList"},
		{"target", "groupByNode(a.*,1,'nosuch')", "Unsupported"},
		{"target", "identity('" + strings.Repeat("x", 10) + "',1)", "at most 1"},
		{"target", "randomWalk('x',0)", "step"},
		{"from", "1050", "empty time range"},
		{"from", "5min", "not a day"},
		{"xFilesFactor", "x", "number"},
		{"format", "nosuch", "format"},
		{"jsonp", "alert(1)", "jsonp"},
	} {
		pairs := []string{"target", "a.one", c.name, c.value}
		if got := ask(h, pairs...); got.Status != 400 || !strings.Contains(got.Body, c.want) {
			t.Errorf("%s=%s: %d %s", c.name, c.value, got.Status, got.Body)
		}
	}
}

// Functions that repeat themselves, or make far more values than they get, end at a limit.
func TestHostileTargetsEnd(t *testing.T) {
	h := example(t)
	for _, target := range []string{
		"aliasQuery(a.one,'.*','aliasQuery(a.one,\".*\",\"a.one\",\"%d\")','%d')",
		"applyByNode(a.one,0,'applyByNode(%.one,0,\"%.one\")')",
		"movingAverage(a.one,'290y')",
		"timeStack(a.one,'1d',0,1000000)",
		"hitcount(timeShift(a.one,'200y',false),'1s')",
		"linearRegression(identity('x'),'00:00_20370101')",
	} {
		if got := ask(h, "target", target); got.Status >= 500 {
			t.Errorf("%s: %d %s", target, got.Status, got.Body)
		}
	}
}

// The responses of graphite-web to the written cases were recorded: see test/graphite-oracle.
func TestRecordedResponses(t *testing.T) {
	records, err := graphitetest.Load("testdata/render.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	h := serve(t, &graphitetest.NewWorld(1, 1, false).Data)
	count := map[graphitetest.Verdict]int{}
	for _, r := range records {
		verdict, diff := graphitetest.Compare(r.Answer, request(h, r.Query))
		if count[verdict]++; verdict == graphitetest.Different {
			v, _ := url.ParseQuery(r.Query)
			t.Errorf("%s: %s", v.Get("target"), diff)
		}
	}
	if count[graphitetest.Same] < 1500 {
		t.Errorf("%d responses are those of graphite-web, fewer than were recorded", count[graphitetest.Same])
	}
}
