package prom_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/api/prom"
)

// FuzzRequest sends any parameters anywhere: the response is always an envelope, with a status that the API
// knows, and never a panic.
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
		wired(o)
		o.Engine = newEngine(f, 20_000, 200*time.Millisecond)
		o.Limits = api.Limits{MaxSeries: 100, MaxSamples: 10_000, MaxBytes: 1 << 20}
	})
	w.MustLoad(f, "anonymous", `up{job="a"} 900:1 930:0 960:1 990:1`, `up{job="b"} 990.5:NaN`, `temp{room="attic"} 880:-0 1000:+Inf`)
	known := map[int]bool{200: true, 204: true, 400: true, 422: true, 503: true}
	f.Fuzz(func(t *testing.T, query, start, end, step, limit string) {
		form := url.Values{"query": {query}, "match[]": {query}, "time": {start}, "start": {start}, "end": {end}, "step": {step}, "limit": {limit},
			"timeout": {step}, "lookback_delta": {step}, "stats": {limit}, "metric": {query}, "limit_per_metric": {step}, "match_target": {query}, "group_limit": {limit},
			"group_next_token": {step}, "type": {end}, "exclude_alerts": {start}}.Encode()
		for _, path := range []string{"query", "query_range", "query_exemplars", "format_query", "parse_query", "series", "labels",
			"label/" + url.PathEscape("x"+query) + "/values", "metadata", "rules", "targets/metadata", "status/tsdb"} {
			r := httptest.NewRecorder()
			w.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/api/v1/"+path+"?"+form, nil))
			if !known[r.Code] {
				t.Fatalf("%s?%s: %s", path, form, apitest.Show(r))
			}
			if r.Code != http.StatusNoContent {
				parse(t, r)
			}
		}
		r := httptest.NewRecorder()
		w.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/federate?"+form, nil))
		if !known[r.Code] {
			t.Fatalf("federate?%s: %s", form, apitest.Show(r))
		}
	})
}

// FuzzRead sends any remote read, uncompressed so that the fuzzer need not discover snappy: the response is a
// refusal, or decodes.
func FuzzRead(f *testing.F) {
	for _, kind := range []prompb.ReadRequest_ResponseType{asSamples, asChunks, 7} {
		names := of("up|temp")
		names.Hints = &prompb.ReadHints{Func: "series", StartMs: 1, EndMs: 1e9, Grouping: []string{"a"}}
		for _, body := range [][]byte{readBody(f, kind), readBody(f, kind, of("up"), of(".*")), readBody(f, kind, names), readBody(f, kind, of("("), &prompb.Query{})} {
			plain, err := snappy.Decode(nil, body)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(plain, true)
			f.Add(body, false)
		}
	}
	w := newWorld(f, func(o *prom.Options) {
		o.Limits = api.Limits{MaxSeries: 100, MaxSamples: 10_000, MaxBytes: 1 << 20, MaxBodyBytes: 1 << 16}
		o.MaxReadSamples, o.MaxReadFrameBytes = 20, 100
	})
	w.MustLoad(f, "anonymous", `up{job="a"} 900:1 930:0 960:1 990:1`, `up{job="b"} 990.5:NaN`, `temp{room="attic"} 880:-0 1000:+Inf`)
	known := map[int]bool{200: true, 400: true, 413: true, 422: true}
	f.Fuzz(func(t *testing.T, body []byte, compress bool) {
		if compress {
			body = snappy.Encode(nil, body)
		}
		r := w.read(body)
		switch {
		case !known[r.Code]:
			t.Fatalf("%x: %s", body, apitest.Show(r))
		case r.Code != http.StatusOK:
			refused(t, r, r.Code, "")
		case r.Header().Get("Content-Encoding") == "snappy":
			decodeSamples(t, r)
		default:
			decodeChunks(t, r)
		}
	})
}
