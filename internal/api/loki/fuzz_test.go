package loki

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
)

// FuzzRequest sends any parameters anywhere: the response is JSON or text, with a status that the API knows,
// and never a panic.
func FuzzRequest(f *testing.F) {
	for _, s := range [][5]string{
		{`{app="a"}`, "900", "1000", "10", "a|b"},
		{`{app=~".+"} |= "x" | json | level="error" | line_format "{{.msg}}"`, "1e300.", "-1", "5001", ".."},
		{`sum by (app) (rate({app="a"}[5m]))`, "2020-01-01T00:00:00Z", "9223372036854775807", "1h", ""},
		{`{`, "", "0x1p3", "1_0", "\xff"},
		{"\x00\xff", "-9223372036854775808", "1", "-1", strings.Repeat("x", 200)},
	} {
		f.Add(s[0], s[1], s[2], s[3], s[4])
	}
	w := newWorld(f, func(o *Options) {
		o.Limits = api.Limits{MaxSeries: 100, MaxBytes: 1 << 20, Timeout: time.Second}
	})
	w.MustLoad(f, "anonymous", `{app="a"} 990 {trace="t"} x`, `{app="b"} 991 {"level":"error"}`)
	known := map[int]bool{200: true, 400: true, 504: true}
	f.Fuzz(func(t *testing.T, query, start, end, limit, tenant string) {
		form := url.Values{"query": {query}, "match[]": {query}, "match": {query}, "regexp": {limit}, "time": {start}, "start": {start}, "end": {end},
			"step": {limit}, "interval": {limit}, "since": {limit}, "limit": {limit}, "direction": {limit}, "delay_for": {limit}}
		for _, path := range []string{current + "query_range", current + "query", current + "labels", current + "label/" + url.PathEscape("x"+query) + "/values",
			current + "series", current + "index/stats", current + "format_query", current + "tail", legacy + "query", legacy + "label", legacy + "series"} {
			q := httptest.NewRequest(http.MethodGet, path+"?"+form.Encode(), nil)
			q.Header["X-Scope-Orgid"] = []string{tenant}
			r := httptest.NewRecorder()
			w.ServeHTTP(r, q)
			if !known[r.Code] {
				t.Fatalf("%s: %s", q.URL, apitest.Show(r))
			}
			if strings.HasPrefix(r.Header().Get("Content-Type"), "application/json") && !json.Valid(r.Body.Bytes()) {
				t.Fatalf("%s: %s", q.URL, apitest.Show(r))
			}
		}
	})
}

// FuzzNumbers sends any parameters to the endpoints that respond with numbers: the response is JSON or
// protobuf or an error.
func FuzzNumbers(f *testing.F) {
	for _, s := range [][6]string{
		{`{app="a"}`, "900", "1000", "10", "", "app"},
		{`{}`, "900.5", "1000", "0.25", "labels", "app,host"},
		{`vector(1)`, "-9223372036854775808", "9223372036854775807", "", "series", ""},
		{`sum by (app) (count_over_time({app=~".+"}[5m]))`, "", "", "1m", "x", ",,\x00"},
		{`{app="b"}`, "9223372036854775807", "9223372036854775807", "1e-9", "", "b,a,b"},
	} {
		f.Add(s[0], s[1], s[2], s[3], s[4], s[5])
	}
	w := newWorld(f, func(o *Options) {
		o.Limits = api.Limits{MaxSeries: 100, MaxBytes: 1 << 20, Timeout: time.Second}
	})
	w.MustLoad(f, "anonymous", `{app="a", host="1"} 990 {trace="t"} x`, `{app="b"} 991 {"level":"error"}`, `{app="b"} 992 yy`)
	f.Fuzz(func(t *testing.T, query, start, end, step, by, targets string) {
		form := url.Values{
			"query": {query}, "time": {start}, "start": {start}, "end": {end}, "step": {step}, "aggregateBy": {by}, "targetLabels": {targets},
		}
		for _, path := range []string{"query_range", "query", "index/stats", "index/volume", "index/volume_range"} {
			for _, accept := range []string{"", protobufType} {
				q := httptest.NewRequest(http.MethodGet, current+path+"?"+form.Encode(), nil)
				q.Header.Set("Accept", accept)
				r := httptest.NewRecorder()
				w.ServeHTTP(r, q)
				switch body, kind := r.Body.Bytes(), r.Header().Get("Content-Type"); {
				case r.Code == http.StatusBadRequest, r.Code == http.StatusGatewayTimeout:
				case r.Code != http.StatusOK,
					accept == "" && !json.Valid(body),
					accept != "" && (kind != protobufType || !isMessage(body)):
					t.Fatalf("%s: %s", q.URL, apitest.Show(r))
				}
			}
		}
	})
}

// isMessage reports whether b is a protobuf message of whole fields.
func isMessage(b []byte) bool {
	for len(b) > 0 {
		_, _, n := protowire.ConsumeField(b)
		if n < 0 {
			return false
		}
		b = b[n:]
	}
	return true
}
