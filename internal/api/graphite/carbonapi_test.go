package graphite_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/read/graphite/graphitetest"
)

// TestRecordedCarbonapi compares with responses of carbonapi to calls of the functions that graphite-web does
// not have. go test ./test/graphite-oracle -run TestCarbonapi -carbonapi ADDR -record writes them.
func TestRecordedCarbonapi(t *testing.T) {
	records, err := graphitetest.Load("testdata/carbonapi.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	h := serve(t, &graphitetest.NewWorld(1, 7, false).Data)
	same := 0
	for _, r := range records {
		v, err := url.ParseQuery(r.Query)
		if err != nil {
			t.Fatal(err)
		}
		target := v.Get("target")
		switch verdict, diff := graphitetest.Compare(r.Answer, graphitetest.ForCarbonapi(target, request(h, r.Query))); verdict {
		case graphitetest.Same:
			same++
		case graphitetest.Different:
			t.Errorf("%s: %s", target, diff)
		}
	}
	if same < len(records)*8/10 {
		t.Errorf("%d of %d responses are the same", same, len(records))
	}
}

// TestBaseline: a baseline is the median of timeShift, and its aberration the quotient.
func TestBaseline(t *testing.T) {
	h := serve(t, &graphitetest.NewWorld(1, 7, false).Data)
	for _, c := range []struct{ call, same string }{
		{"baseline(a.b.c,'1h',1,4)", "aggregate(group(timeShift(a.b.c,'1h'),timeShift(a.b.c,'2h'),timeShift(a.b.c,'3h')),'median')"},
		{"baseline(servers.web1.cpu.idle,'1d',0,2)", "aggregate(group(timeShift(servers.web1.cpu.idle,'1d')),'median')"},
		{"baselineAberration(servers.db1.cpu.idle,'2h',1,3)", "divideSeries(servers.db1.cpu.idle,aggregate(group(timeShift(servers.db1.cpu.idle,'2h'),timeShift(servers.db1.cpu.idle,'4h')),'median'))"},
	} {
		query := func(target string) string {
			return url.Values{"target": {"alias(" + target + ",'x')"}, "from": {"1700002800"}, "until": {"1700006400"}, "format": {"json"}}.Encode()
		}
		want := graphitetest.ForCarbonapi(c.same, request(h, query(c.same)))
		got := graphitetest.ForCarbonapi(c.call, request(h, query(c.call)))
		if verdict, diff := graphitetest.Compare(want, got); verdict != graphitetest.Same || len(got.Body) < 500 {
			t.Errorf("%s: %s %.200s", c.call, diff, got.Body)
		}
	}
	for _, c := range []struct{ call, names string }{
		{"baseline(a.b.c,'1h',1,2,0)", "[]"},           // some times have no values
		{"baseline(counter.*,'1h',1,2,100,1e9)", "[]"}, // the averages are less
	} {
		if got := request(h, url.Values{"target": {c.call}, "from": {"1700002800"}, "until": {"1700006400"}, "format": {"json"}}.Encode()); got.Body != c.names {
			t.Errorf("%s: %.200s", c.call, got.Body)
		}
	}
}

// TestCarbonapiRefused: what has no result is refused, with the bound and what was found.
func TestCarbonapiRefused(t *testing.T) {
	h := example(t)
	for target, want := range map[string]string{
		"polyfit(a.one,21)":                  "polyfit: degree must be from 1 to 20, found 21",
		"pearson(a.*,a.one,3)":               "pearson: expected two single series, found 2 and 1",
		"pearson(a.one,a.two,0)":             "pearson: expected a window of 1 or more points, found 0",
		"tukeyAbove(a.*,0,3)":                "tukeyAbove: basis must be greater than 0, found 0",
		"lowPass(a.one,101)":                 "lowPass: cutPercent must be from 0 to 100, found 101",
		"countValues(a.*,2)":                 "countValues: the series have more than 2 values",
		"baseline(a.one,'1d',0,100000)":      "baseline: expected at most 1000 windows, found 0 to 100000",
		"slo(a.one,'0s','above',1)":          "slo: expected an interval such as",
		"integralWithReset(a.one,a.*)":       "integralWithReset: the second argument must be a single series, found 2",
		"powSeriesLists(a.*,group(a.*,a.*))": "powSeriesLists: expected as many exponents as series, or one, found 4 and 2",
		"polyfit(a.one,1,'100000y')":         "",
	} {
		got := ask(h, "target", target)
		if got.Status < 400 || got.Status >= 500 || !strings.Contains(got.Body, want) {
			t.Errorf("%s: %d %s", target, got.Status, got.Body)
		}
	}
}

// TestPolynomial: values on a line are fitted exactly, also beyond the last one.
func TestPolynomial(t *testing.T) {
	got := ask(example(t), "target", "alias(round(polyfit(a.two,2,'20s'),6),'x')")
	const want = `"datapoints":[[10.0,1000],[20.0,1010],[30.0,1020],[40.0,1030],[50.0,1040],[60.0,1050],[70.0,1060],[80.0,1070]]`
	if !strings.Contains(got.Body, want) {
		t.Errorf("%s, expected %s", got.Body, want)
	}
}
