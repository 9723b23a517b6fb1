package prom_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/api/prom"
)

// FuzzRequest sends any parameters anywhere: the answer is always an envelope, with a status that the API knows, and
// never a panic.
func FuzzRequest(f *testing.F) {
	for _, s := range [][5]string{
		{"up", "900", "1000", "10", "2"},
		{`sum by (job) (rate(up{job=~"a|b"}[5m:10s] offset -1m)) / ignoring(x) group_left up @ end()`, "1e300", "-Inf", "NaN", "-1"},
		{`{"weird name", "l"="\xff"}`, "2020-01-01T00:00:00Z", "292277025-08-18T07:12:54.999999999Z", "1h", "x"},
		{`histogram_quantile(.9, up) or label_replace(up, "a", "$1", "b", "(.*)")`, "", "0x1p3", "1_0", "9999999999999999999"},
		{`up[290y:1ms]`, "0", "11001", "1", ""},
		{"\x00\xff", "-0", "1e-300", "0.0001", "0"},
	} {
		f.Add(s[0], s[1], s[2], s[3], s[4])
	}
	w := newWorld(f, func(o *prom.Options) {
		o.Engine = newEngine(f, 20_000, 200*time.Millisecond)
		o.Limits = prom.Limits{MaxSeries: 100, MaxSamples: 10_000, MaxBytes: 1 << 20}
	})
	w.mustLoad(f, "anonymous", `up{job="a"} 900:1 930:0 960:1 990:1`, `up{job="b"} 990.5:NaN`, `temp{room="attic"} 880:-0 1000:+Inf`)
	known := map[int]bool{200: true, 400: true, 422: true, 503: true}
	f.Fuzz(func(t *testing.T, query, start, end, step, limit string) {
		form := url.Values{"query": {query}, "match[]": {query}, "time": {start}, "start": {start}, "end": {end}, "step": {step}, "limit": {limit},
			"timeout": {step}, "lookback_delta": {step}, "stats": {limit}}.Encode()
		for _, path := range []string{"query", "query_range", "series", "labels", "label/" + url.PathEscape("x"+query) + "/values"} {
			r := httptest.NewRecorder()
			w.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/api/v1/"+path+"?"+form, nil))
			if parse(t, r); !known[r.Code] {
				t.Fatalf("%s?%s: %s", path, form, show(r))
			}
		}
	})
}
