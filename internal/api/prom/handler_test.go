package prom_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/readtest"
)

// envelope is the shape of every response.
type envelope struct {
	Status    string
	Data      json.RawMessage
	ErrorType string
	Error     string
	Warnings  []string
	Infos     []string
}

func parse(t testing.TB, r *httptest.ResponseRecorder) envelope {
	t.Helper()
	var e envelope
	if err := json.Unmarshal(r.Body.Bytes(), &e); err != nil {
		t.Fatalf("%d %.300q: %v", r.Code, r.Body, err)
	}
	if (e.Status == "success") != (r.Code == http.StatusOK) || (e.Status == "error") != (e.ErrorType != "" && e.Error != "") {
		t.Fatalf("%d %.300q", r.Code, r.Body)
	}
	if r.Header().Get("Shale-Cost") == "" {
		t.Fatalf("no Shale-Cost with %d %.300q", r.Code, r.Body)
	}
	return e
}

func expect(t testing.TB, r *httptest.ResponseRecorder, code int, kind, words string) {
	t.Helper()
	e := parse(t, r)
	if r.Code != code || e.ErrorType != kind || !strings.Contains(e.Error, words) {
		t.Errorf("got %d %s %q, want %d %s with %q", r.Code, e.ErrorType, e.Error, code, kind, words)
	}
}

var everything = []string{"/api/v1/query?query=up", "/api/v1/query_range?query=up&start=900&end=1000&step=10", "/api/v1/series?match[]=up",
	"/api/v1/series?match[]=up&match[]={a=~\".%2B\"}", "/api/v1/labels", "/api/v1/labels?match[]=up&match[]=x", "/api/v1/label/job/values"}

func TestErrorsOfTheStore(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		kind string
	}{
		{fmt.Errorf("%w: disk is full", model.ErrTransient), 503, "unavailable"},
		{fmt.Errorf("%w: head", model.ErrClosed), 503, "unavailable"},
		{fmt.Errorf("%w: page 7", model.ErrCorrupt), 500, "internal"},
		{fmt.Errorf("%w: range of an object", model.ErrInvalid), 500, "internal"},
		{fmt.Errorf("%w: block b: %w: 812 of 4096 bytes", model.ErrCorrupt, model.ErrInvalid), 500, "internal"},
		{fmt.Errorf("%w: block b: %w: no such object", model.ErrTransient, model.ErrCorrupt), 500, "internal"},
		{fmt.Errorf("%w: block b: %w", model.ErrCorrupt, context.Canceled), 503, "canceled"},
		{fmt.Errorf("%w: query.max-x", model.ErrLimit), 422, "execution"},
		{errors.New("something else"), 422, "execution"},
		{context.Canceled, 503, "canceled"},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), 503, "timeout"},
		{promql.ErrStorage{Err: fmt.Errorf("%w: bucket", model.ErrTransient)}, 503, "unavailable"},
		{promql.ErrStorage{Err: errors.New("bug")}, 500, "internal"},
	} {
		w := newWorld(t, nil)
		w.MustLoad(t, "anonymous", `up{job="a"} 990:1`, `up{job="b"} 990:1`)
		for _, f := range []readtest.Failure{{Select: c.err, Labels: c.err}, {Next: c.err, Labels: c.err}, {Rows: c.err, Labels: c.err}} {
			w.memory.Fail(f)
			for _, path := range everything {
				if f.Rows != nil && strings.Contains(path, "/series") {
					continue // which reads no rows
				}
				r := w.Get(path)
				expect(t, r, c.code, c.kind, "")
				if (r.Header().Get("Retry-After") != "") != (c.code == 503 && c.kind != "timeout") {
					t.Errorf("%d %s: Retry-After is %q", c.code, c.kind, r.Header().Get("Retry-After"))
				}
			}
		}
	}
}

func TestPanicsAreErrors(t *testing.T) {
	var panics any
	w := newWorld(t, func(o *prom.Options) {
		o.Slots = api.NewSlots(1)
		o.Limits.MaxWait = time.Millisecond
		o.Queryable = func(string, *model.Quota, *model.Cost) storage.Queryable {
			return storage.QueryableFunc(func(int64, int64) (storage.Querier, error) { panic(panics) })
		}
	})
	var none []int
	for _, panics = range []any{"text", errors.New("an error"), recovered(func() { none[len(everything)]++ })} {
		for _, path := range everything {
			expect(t, w.Get(path), 500, "internal", "unexpected error")
		}
	}
}

// recovered returns what a function panics with.
func recovered(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

func TestCancellation(t *testing.T) {
	w := newWorld(t, nil)
	w.MustLoad(t, "anonymous", `up{job="a"} 990:1`)
	for _, path := range everything {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r := httptest.NewRecorder()
		w.ServeHTTP(r, httptest.NewRequest("GET", path, nil).WithContext(ctx))
		expect(t, r, 499, "canceled", "")
	}
}

// TestErrorsAreShort: an error about a long text does not quote all of it.
func TestErrorsAreShort(t *testing.T) {
	w := newWorld(t, nil)
	for _, path := range []string{"/api/v1/query", "/api/v1/format_query", "/federate"} {
		r := w.Do("POST", path, []string{"query=" + strings.Repeat("9", 100_000), `match[]={__name__="` + strings.Repeat("é", 50_000)}, nil)
		if r.Code != 400 || r.Body.Len() > 10_000 || !utf8.Valid(r.Body.Bytes()) {
			t.Errorf("%s: %d, %d bytes: %.200s", path, r.Code, r.Body.Len(), r.Body)
		}
	}
}

func TestSubqueriesAreCharged(t *testing.T) {
	w := newWorld(t, func(o *prom.Options) { o.Limits.MaxBytes = 1 << 20; o.Engine = newEngine(t, 1e6, 10*time.Second) })
	for query, words := range map[string]string{
		"count_over_time(nothing[290y:])":                               "a subquery has",
		"count_over_time(nothing[1y:1ms])":                              "a subquery has",
		"count_over_time(nothing[66s:1ms])":                             "query.max-bytes",
		"count_over_time(count_over_time(nothing[50s:1ms])[50s:50s])":   "query.max-bytes",
		"count_over_time(n[40s:1ms]) + count_over_time(n[40s:1ms])":     "query.max-bytes",
		"count_over_time(count_over_time(nothing[290y:1y])[290y:290y])": "",
		"count_over_time(nothing[64s:1ms])":                             "",
	} {
		r := w.Get("/api/v1/query", "query="+query)
		if words == "" {
			expect(t, r, 200, "", "")
		} else {
			expect(t, r, 422, "execution", words)
		}
	}
	expect(t, w.Get("/api/v1/query_range", "query=count_over_time(nothing[1s:1ms])", "start=0", "end=66", "step=10"), 422, "execution", "query.max-bytes")
	expect(t, w.Get("/api/v1/query_range", "query=count_over_time(nothing[1s:])", "start=-1e300", "end=1e300", "step=9e9"), 422, "execution", "a subquery has")
	expect(t, w.Get("/api/v1/query", "query=count_over_time(nothing[1s:0.0001])"), 400, "bad_data", "1ms")
}

func TestHostileQueries(t *testing.T) {
	w := newWorld(t, nil)
	w.MustLoad(t, "anonymous", `up{job="a"} 990:1`)
	const n = 200_000
	for name, query := range map[string]string{
		"parentheses":         strings.Repeat("(", n) + "1" + strings.Repeat(")", n),
		"open parentheses":    strings.Repeat("(", n),
		"functions":           strings.Repeat("abs(", n) + "up" + strings.Repeat(")", n),
		"signs":               strings.Repeat("-", n) + "1",
		"sums":                strings.Repeat("1+", n) + "1",
		"powers":              strings.Repeat("1^", n) + "1",
		"words":               strings.Repeat("up or ", n) + "up",
		"subqueries":          "up" + strings.Repeat("[1m:]", n),
		"braces in between":   strings.Repeat(`up{a="+"}*`, n/10) + "1",
		"operators in braces": "up{" + strings.Repeat("+", n),
		"one long name":       strings.Repeat("a", 4*n) + "(",
		"one long string":     `up{a="` + strings.Repeat("x", 4*n),
		"regexp":              `up{a=~"` + strings.Repeat("(", n) + `"}`,
		"repeated regexp":     `up{a=~"((a{1000}){1000}){1000}"}`,
		"quotes":              strings.Repeat(`"`, n+1),
		"comments":            strings.Repeat("#\n", n),
		"zeros":               strings.Repeat("\x00", n),
		"not UTF-8":           strings.Repeat("\xff", n),
		"numbers":             strings.Repeat("9", n) + "x",
	} {
		began := time.Now()
		r := w.Do("POST", "/api/v1/query", []string{"query=" + query}, nil)
		e := parse(t, r)
		if r.Code != 400 && r.Code != 413 {
			t.Errorf("%s: %d %.200s", name, r.Code, r.Body)
		}
		for _, path := range []string{"/api/v1/format_query", "/api/v1/parse_query", "/api/v1/query_exemplars"} {
			if r := w.Do("POST", path, []string{"query=" + query}, nil); r.Code != 400 && r.Code != 413 {
				t.Errorf("%s: %s: %d %.200s", path, name, r.Code, r.Body)
			}
		}
		if len(e.Error) > 3_000_000 {
			t.Errorf("%s: the error has %d bytes", name, len(e.Error))
		}
		// Without their bounds these would take hours; with them and the race detector, on a busy machine,
		// some take 10 s.
		if d := time.Since(began); d > time.Minute {
			t.Errorf("%s took %s", name, d)
		}
	}
	// What real dashboards send stays far below.
	if r := w.Do("POST", "/api/v1/query", []string{"query=" + strings.Repeat("up or ", 900) + "up"}, nil); r.Code != 200 {
		t.Errorf("900 operators: %d %.200s", r.Code, r.Body)
	}
	var long []string
	for range 257 {
		long = append(long, "match[]=up")
	}
	for _, path := range []string{"/api/v1/series", "/api/v1/labels", "/api/v1/label/a/values"} {
		expect(t, w.Do("POST", path, long, nil), 400, "bad_data", "257 selectors")
		if r := w.Do("POST", path, long[1:], nil); r.Code != 200 {
			t.Errorf("%s: %d %.200s", path, r.Code, r.Body)
		}
		expect(t, w.Do("POST", path, []string{"match[]=" + strings.Repeat("{", n)}, nil), 400, "bad_data", "parse error")
	}
}

// TestFormattingIsBounded: it takes time that grows with the square of the depth, and the lines' indents take
// memory.
func TestFormattingIsBounded(t *testing.T) {
	w := newWorld(t, func(o *prom.Options) { o.Limits.MaxBytes = 128 << 20 })
	for _, c := range []struct {
		name, query string
		code        int
		words       string
	}{
		{"a long sum", strings.Repeat("1+", 1999) + "1", 400, "levels deep"},
		{"a long union", strings.Repeat(`up{job="aaaaaaaaaaaaaaaaaaaa",instance="bbbbbbbbbbb"} or `, 1000) + "up", 400, "levels deep"},
		{"deep and wide", strings.Repeat("abs(", 200) + "label_join(up" + strings.Repeat(`,"a"`, 10_000) + ")" + strings.Repeat(")", 200), 400, "levels deep"},
		{"long numbers", strings.Repeat("1e308+", 350) + "1", 400, "levels deep"},
		{"wide", "label_join(up" + strings.Repeat(`,"a"`, 50_000) + ")", 200, ""},
		{"a union of a dashboard", strings.Repeat(`up{job="aaaaaaaaaaaaaaaaaaaa",instance="bbbbbbbbbbb"} or `, 100) + "up", 200, ""},
	} {
		began := time.Now()
		expect(t, w.Do("POST", "/api/v1/format_query", []string{"query=" + c.query}, nil), c.code, map[int]string{400: "bad_data"}[c.code], c.words)
		if d := time.Since(began); d > time.Minute {
			t.Errorf("%s took %s", c.name, d)
		}
		if r := w.Do("POST", "/api/v1/parse_query", []string{"query=" + c.query}, nil); r.Code != 200 {
			t.Errorf("%s: %d %.200s", c.name, r.Code, r.Body)
		}
	}
	w = newWorld(t, func(o *prom.Options) { o.Limits.MaxBytes = 1 << 20 })
	for _, path := range []string{"/api/v1/format_query", "/api/v1/parse_query", "/api/v1/query_exemplars"} {
		expect(t, w.Do("POST", path, []string{"query=label_join(up" + strings.Repeat(`,"a"`, 10_000) + ")"}, nil), 422, "execution", "query.max-bytes")
	}
	expect(t, w.Do("POST", "/api/v1/query_exemplars", []string{"query=up" + strings.Repeat(" or up", 256)}, nil), 400, "bad_data", "257 selectors")
}

func TestLabelsDoNotExplode(t *testing.T) {
	w := newWorld(t, nil)
	w.MustLoad(t, "anonymous", `up{job="a"} 990:1`)
	nest := func(n int, begin, end string) string {
		return strings.Repeat(begin, n) + "up" + strings.Repeat(end, n)
	}
	for _, c := range []struct {
		query string
		code  int
	}{
		{nest(12, "label_join(", `, "job", "", "job", "job")`), 200},
		{nest(13, "label_join(", `, "job", "", "job", "job")`), 400},
		{nest(40, "label_join((", `), "job", "", "job", "job")`), 400},
		{nest(12, "label_replace(", `, "job", "$1$1", "job", "(.*)")`), 200},
		{nest(40, "label_replace(", `, "job", "$1${1}", "job", "(.*)")`), 400},
		{nest(40, "label_replace(", `, "job", (("$1$1")), "job", "(.*)")`), 400},
		{nest(7, "label_replace(label_join(", `, "job", "", "job", "job"), "job", "$1$1", "job", "(.*)")`), 400},
		{nest(200, "label_replace(", `, "job", "$1", "job", "(.*)")`), 200},
		{`label_replace(up, "a", "` + strings.Repeat("x", 4096) + `", "", "")`, 200},
		{`label_replace(up, "a", ("` + strings.Repeat("x", 4097) + `"), "", "")`, 400},
		{`label_join(up, "a", "` + strings.Repeat("x", 2049) + `", "job", "job", "job")`, 400},
		{`label_join(up, "job", ""` + strings.Repeat(`, "job"`, 5000) + `)`, 400},
	} {
		if r := w.Get("/api/v1/query", "query="+c.query); r.Code != c.code {
			t.Errorf("%.100s: %d %.300s", c.query, r.Code, r.Body)
		}
	}
}

func TestGzip(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 200 {
		w.MustLoad(t, "anonymous", fmt.Sprintf(`up{i="%d"} 990:%d`, i, i))
	}
	plain := w.Get("/api/v1/query?query=up")
	for accept, compressed := range map[string]bool{
		"gzip": true, "deflate, GZIP;q=0.5": true, "br;q=1, gzip": true,
		"": false, "identity": false, "gzip;q=0": false, "gzip;q=x": false, "xgzip": false,
	} {
		r := w.Do("GET", "/api/v1/query?query=up", nil, []string{"Accept-Encoding: " + accept})
		if got := r.Header().Get("Content-Encoding") == "gzip"; got != compressed {
			t.Errorf("%q: compressed is %t", accept, got)
		}
		body := r.Body.Bytes()
		if compressed {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(body, plain.Body.Bytes()) || r.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: the answer differs", accept)
		}
	}
	if r := w.Do("GET", "/api/v1/query?query=1", nil, []string{"Accept-Encoding: gzip"}); r.Header().Get("Content-Encoding") != "" {
		t.Error("a short answer was compressed")
	}
}

// TestOverTheWire sends a large response over a real connection, to a client that reads it all and to one
// that leaves.
func TestOverTheWire(t *testing.T) {
	w := newWorld(t, func(o *prom.Options) { o.Engine = newEngine(t, 1e7, time.Minute) })
	for i := range 100 {
		w.MustLoad(t, "anonymous", fmt.Sprintf(`up{i="%d"} 990:0.1234567%d`, i, i))
	}
	s := httptest.NewServer(w)
	defer s.Close()
	defer s.Client().CloseIdleConnections()
	query := s.URL + "/api/v1/query_range?" + url.Values{"query": {"up"}, "start": {"990"}, "end": {"1190"}, "step": {"0.02"}, "stats": {"all"}}.Encode()
	for range max(1, 3/racetest.Fewer) { // a million numbers each
		resp, err := s.Client().Get(query)
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Data struct{ Result []struct{ Values [][2]any } }
		}
		err = json.NewDecoder(resp.Body).Decode(&e)
		resp.Body.Close()
		if err != nil || len(e.Data.Result) != 100 || len(e.Data.Result[0].Values) != 10001 {
			t.Fatalf("%d series: %v", len(e.Data.Result), err)
		}
	}
	for range 3 {
		resp, err := s.Client().Get(query)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 1000)
		resp.Body.Close()
	}
	eventually(t, "requests of clients that left still run", func() bool {
		return testutil.ToFloat64(mustGauge(t, w, "shale_api_prom_running_requests")) == 0
	})
}
