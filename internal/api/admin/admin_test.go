package admin

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestEndpoints(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "shale_test_total", Help: "A test."})
	reg.MustRegister(c)
	c.Add(3)
	var ready atomic.Bool
	mux := http.NewServeMux()
	New(Options{
		Version: "v1", Gatherer: reg,
		Ready: func() error {
			if ready.Load() {
				return nil
			}
			return errors.New("the journal is being read")
		},
		Listed: []Listed{{"POST", "/api/v1/write", "takes remote write"}},
	}).Routes(mux)
	get := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/healthz", 200, "ok\n"},
		{"GET", "/ready", 503, "not ready: the journal is being read\n"},
		{"GET", "/metrics", 200, "shale_test_total 3\n"},
		{"GET", "/", 200, "POST  /api/v1/write  takes remote write\n"},
		{"HEAD", "/healthz", 200, ""},
		{"POST", "/ready", 405, ""},
		{"GET", "/nothing", 404, ""},
		{"GET", "/-/healthy", 200, "Shale is Healthy.\n"},
		{"HEAD", "/-/healthy", 200, ""},
		{"GET", "/-/ready", 503, "not ready: the journal is being read\n"},
		{"HEAD", "/-/ready", 503, ""},
		{"POST", "/-/ready", 405, ""},
		{"POST", "/-/reload", 403, "Lifecycle API is not enabled."},
		{"PUT", "/-/quit", 403, "Lifecycle API is not enabled."},
		{"GET", "/-/quit", 405, "Only POST or PUT requests allowed"},
		{"GET", "/-/reload", 405, "Only POST or PUT requests allowed"},
		{"GET", "/debug/pprof/", 403, "profiles are off (http-pprof)\n"},
		{"GET", "/debug/pprof/goroutine", 403, "profiles are off (http-pprof)\n"},
	} {
		if status, body := get(c.method, c.path); status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, status, body, c.status, c.body)
		}
	}
	ready.Store(true)
	for _, path := range []string{"/ready", "/-/ready"} {
		if status, body := get("GET", path); status != 200 || body != "ready\n" {
			t.Errorf("%s when ready: %d %q", path, status, body)
		}
	}
}

// One broken collector must not take all others with it.
func TestMetricsSurviveABrokenCollector(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "good", Help: "Good."}, func() float64 { return 1 }), broken{})
	mux := http.NewServeMux()
	New(Options{Gatherer: reg}).Routes(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), "good 1\n") {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

type broken struct{}

func (broken) Describe(ch chan<- *prometheus.Desc) {
	ch <- prometheus.NewDesc("broken", "Broken.", nil, nil)
}
func (broken) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "Broken.", nil, nil), errors.New("broken"))
}

// A panic is 500 and is logged with its stack, and the other endpoints go on.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	mux := http.NewServeMux()
	New(Options{
		Gatherer: prometheus.NewRegistry(), Ready: func() error { panic("a bug") }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}).Routes(mux)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	if w := get("/ready"); w.Code != 500 || w.Body.String() != "unexpected error: a bug\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if s := log.String(); !strings.Contains(s, `handler=ready panic="a bug"`) || !strings.Contains(s, "stack=") {
		t.Errorf("the log is %q", s)
	}
	if w := get("/healthz"); w.Code != 200 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// Probes and scrapers get the headers that they always got: the pipeline adds none of its own.
func TestHeaders(t *testing.T) {
	mux := http.NewServeMux()
	New(Options{Gatherer: prometheus.NewRegistry()}).Routes(mux)
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/ready", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("Origin", "http://page")
	mux.ServeHTTP(w, r)
	want := http.Header{
		"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}, "Cache-Control": {"no-store"}, "Content-Length": {"6"},
	}
	if d := cmp.Diff(want, w.Header()); d != "" {
		t.Error(d)
	}
	for _, method := range []string{"POST", "OPTIONS"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(method, "/ready", nil))
		if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" || w.Body.String() != "Method Not Allowed\n" {
			t.Errorf("%s: %d %v %q", method, w.Code, w.Header(), w.Body)
		}
	}
}

// Profiles are served once they are switched on, one at a time.
func TestProfiles(t *testing.T) {
	mux := http.NewServeMux()
	a := New(Options{Gatherer: prometheus.NewRegistry(), Profiles: true})
	a.Routes(mux)
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	for path, want := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "TestProfiles", "/debug/pprof/cmdline": "admin", "/debug/pprof/heap?debug=1": "heap profile",
	} {
		if status, body := get(path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200q", path, status, body)
		}
	}
	if status, _ := get("/debug/pprof/nothing"); status != 404 {
		t.Errorf("an unknown profile: %d", status)
	}
	a.profiling.Lock()
	if status, _ := get("/debug/pprof/heap"); status != 503 {
		t.Errorf("a second profile at the same time: %d", status)
	}
	a.profiling.Unlock()
}
