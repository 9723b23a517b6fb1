package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
)

// selector has n matchers that a series cannot satisfy all, with the pattern.
func selector(n int, pattern string) string {
	return `{a="b"` + strings.Repeat(",a=~`"+pattern+"`", n) + "}"
}

// compiling are the endpoints that compile the patterns of a parameter, and which one.
var compiling = map[string]string{
	"/api/v1/series": "match[]", "/api/v1/labels": "match[]", "/api/v1/label/a/values": "match[]", "/federate": "match[]", "/api/v1/rules": "match[]",
	"/api/v1/targets/metadata": "match_target", "/api/v1/query": "query", "/api/v1/query_range?start=0&end=1&step=1": "query",
	"/api/v1/query_exemplars?start=0&end=1": "query", "/api/v1/format_query": "query", "/api/v1/parse_query": "query",
}

func TestRegexesAreCharged(t *testing.T) {
	const budget = 16 << 20
	w := newWorld(t, func(o *prom.Options) { wired(o); o.Limits.MaxBytes = budget })
	pool := newWorld(t, func(o *prom.Options) { wired(o); o.Pool = &model.QueryPool{MaxBytes: budget} })
	for _, c := range []struct {
		name, text, words string
		code              int
		whole             bool // an expression and no selector
	}{
		{"20,000 programs", selector(20_000, ".{1000}"), "", 0, false},
		{"more than may be", selector(1001, "a|b"), "more than 1000 regular expressions", 400, false},
		{"programs", selector(900, ".{1000}"), "query.max-bytes", 422, false},
		{"programs after comments", strings.ReplaceAll(selector(900, ".{1000}"), "=~", "=~ # comment\n"), "query.max-bytes", 422, false},
		{"programs before an error", selector(900, ".{1000}") + "}}", "query.max-bytes", 422, false},
		{"negated", strings.ReplaceAll(selector(900, ".{1000}"), "=~", "!~"), "query.max-bytes", 422, false},
		{"repeats in repeats", selector(900, "((ab){30}){30}"), "query.max-bytes", 422, false},
		{"optional repeats", selector(900, "(?:a?){0,900}"), "query.max-bytes", 422, false},
		{"classes", selector(1, strings.Repeat(`\pL`, 20_000)), "query.max-bytes", 422, false},
		{"repeated classes", selector(100, `\pL{1000}`), "query.max-bytes", 422, false},
		{"nodes", selector(1, strings.Repeat("()", 50_000)), "query.max-bytes", 422, false},
		{"spaces", strings.Repeat(" ", 500_000), "the text of the query has 500000 bytes, and query.max-bytes of 16777216 is enough to parse about 246723", 422, false},
		{"functions", strings.Repeat("label_replace(x,'a','','b','.{1000}') or ", 500) + "x", "query.max-bytes", 422, true},
	} {
		for path, param := range compiling {
			if c.whole && param != "query" {
				continue
			}
			var r, again *httptest.ResponseRecorder
			n := alloctest.Bytes(func() {
				r = w.Do(http.MethodPost, path, []string{param + "=" + c.text}, nil)
				again = pool.Do(http.MethodPost, path, []string{param + "=" + c.text}, nil)
			})
			if n > 64<<20 {
				t.Errorf("%s, %s: %d bytes", c.name, path, n)
			}
			if r.Code != c.code && c.code != 0 || r.Code/100 != 4 || !strings.Contains(r.Body.String(), c.words) {
				t.Errorf("%s, %s: %.300s", c.name, path, apitest.Show(r))
			}
			// The pool has too little for one request.
			if c.code == 422 && (again.Code != 422 || !strings.Contains(again.Body.String(), "--memory")) {
				t.Errorf("%s, %s, pool: %.300s", c.name, path, apitest.Show(again))
			}
		}
	}
	if got := testutil.ToFloat64(mustGauge(t, pool, "shale_api_prom_query_bytes")); got != 0 {
		t.Errorf("%v bytes are still held", got)
	}
}

func TestUsualRegexesWork(t *testing.T) {
	w := newWorld(t, func(o *prom.Options) { wired(o); o.Limits.MaxBytes = 4 << 20 })
	w.MustLoad(t, "anonymous", `up{a="b",job="x"} 990:1`)
	hosts := make([]string, 500)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("host-%d", i)
	}
	for _, text := range []string{
		`{a="b",job=~".+"}`, `{a="b",job!~"` + strings.Join(hosts, "|") + `"}`, `{a="b",job=~"(?i)X|\\p{L}{3}|[0-9a-f]{8}"}`, "{a=~\"b\" # a comment\n}",
		`{a="b",b=".{1000}",c!="(("}`,
	} {
		for path, param := range compiling {
			if strings.HasSuffix(path, "_exemplars") || strings.Contains(text, `b=".{1000}"`) && path != "/api/v1/parse_query" {
				continue
			}
			if r := w.Do(http.MethodPost, path, []string{param + "=" + text}, nil); r.Code/100 != 2 {
				t.Errorf("%s %.60s: %.300s", path, text, apitest.Show(r))
			}
		}
	}
	// Many equal matchers are not regular expressions.
	expect(t, w.Do(http.MethodPost, "/api/v1/series", []string{"match[]={" + strings.Repeat(`a="b",`, 2000) + "}"}, nil), 200, "", "")
	expect(t, w.Get("/api/v1/series", `match[]={a=~"("}`), 400, "bad_data", "error parsing regexp")
	expect(t, w.Get("/api/v1/query", `query={a=~"("}`), 400, "bad_data", "error parsing regexp")
	expect(t, w.Get("/api/v1/rules", `match[]={a=~"("}`), 400, "bad_data", "error parsing regexp")
}

func TestRegexesOfRemoteReadAreCharged(t *testing.T) {
	w := newWorld(t, func(o *prom.Options) { o.Limits.MaxBytes = 16 << 20 })
	queries := func(n int, kind prompb.LabelMatcher_Type, pattern string) []byte {
		q := &prompb.Query{EndTimestampMs: 1e12}
		for range n {
			q.Matchers = append(q.Matchers, &prompb.LabelMatcher{Type: kind, Name: "a", Value: pattern})
		}
		return readBody(t, asSamples, q, q)
	}
	for _, kind := range []prompb.LabelMatcher_Type{prompb.LabelMatcher_RE, prompb.LabelMatcher_NRE} {
		for _, c := range []struct {
			body  []byte
			code  int
			words string
		}{
			{queries(450, kind, ".{1000}"), 422, "query.max-bytes"},
			{queries(501, kind, "a"), 400, "more than 1000 regular expressions"},
		} {
			var r *httptest.ResponseRecorder
			if n := alloctest.Bytes(func() { r = w.read(c.body) }); n > 64<<20 {
				t.Errorf("%d bytes", n)
			}
			refused(t, r, c.code, c.words)
		}
	}
	decodeSamples(t, w.read(queries(5, prompb.LabelMatcher_RE, ".{10}")))
}

// TestBodiesAreCharged sends bodies that only the pool can refuse: before a turn, and before anything is
// parsed.
func TestBodiesAreCharged(t *testing.T) {
	pool := &model.QueryPool{MaxBytes: 1 << 20}
	w := newWorld(t, func(o *prom.Options) { o.Forms = pool })
	large := "x=" + strings.Repeat("y", 400_000)
	for _, path := range []string{"/api/v1/query", "/api/v1/status/buildinfo", "/api/v1/series", "/federate"} {
		r := w.Do(http.MethodPost, path, []string{large}, nil)
		if r.Code != 503 || r.Header().Get("Retry-After") == "" || !strings.Contains(r.Body.String(), "the queries that are running hold") {
			t.Errorf("%s: %.300s", path, apitest.Show(r))
		}
		if r := w.Do(http.MethodPost, path, []string{large[:1000], "query=1", "match[]=up"}, nil); r.Code != 200 {
			t.Errorf("%s, a small one: %.300s", path, apitest.Show(r))
		}
	}
	multipart := httptest.NewRequest(http.MethodPost, "/api/v1/query",
		strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n"+large+"\r\n--b--\r\n"))
	multipart.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	out := httptest.NewRecorder()
	w.ServeHTTP(out, multipart)
	expect(t, out, 503, "unavailable", "the queries that are running hold")
	refused(t, w.read([]byte(large)), 503, "the queries that are running hold")
	decodeSamples(t, w.read(readBody(t, asSamples, of("up"))))
	refused(t, w.read(snappy.Encode(nil, []byte("hello"))), 400, "proto")
	if got := pool.Used(); got != 0 {
		t.Errorf("%d bytes are still held", got)
	}
}

// TestTSDBIsCharged counts series under the quota of the request.
func TestTSDBIsCharged(t *testing.T) {
	w := newWorld(t, func(o *prom.Options) { wired(o); o.Pool = &model.QueryPool{MaxBytes: 600} })
	expect(t, w.Get("/api/v1/status/tsdb"), 422, "execution", "--memory")
	w = newWorld(t, func(o *prom.Options) { wired(o); o.Limits.MaxSeries = 6 })
	expect(t, w.Get("/api/v1/status/tsdb"), 422, "execution", "query.max-series")
	w = newWorld(t, wired)
	if r := w.Get("/api/v1/status/tsdb"); r.Code != 200 || !strings.Contains(r.Header().Get("Shale-Cost"), "7") {
		t.Errorf("%v %s", r.Header(), apitest.Show(r))
	}
}
