package apitest

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Pipeline tests what the pipeline promises, seen through a dialect.
type Pipeline struct {
	// New returns the dialect over an empty store, with options that change has changed.
	New func(t *testing.T, change func(*api.Options)) http.Handler
	// Path is an endpoint that needs a form, a turn and the current time, with parameters that make it
	// succeed.
	Path string
	// Full is the status of a request whose turn did not come.
	Full int
}

// Run runs the suite.
func (p *Pipeline) Run(t *testing.T) {
	t.Run("panic", p.panics)
	t.Run("oversized form", p.oversizedForm)
	t.Run("full", p.full)
	t.Run("client that leaves", p.clientLeaves)
	t.Run("tenant", p.tenant)
	t.Run("preflight", p.preflight)
	t.Run("method", p.method)
}

// expect checks the status of a response, and a part of its body.
func expect(t *testing.T, r *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	if r.Code != status || !strings.Contains(r.Body.String(), text) {
		t.Errorf("got %s; want %d with %q", Show(r), status, text)
	}
	if r.Header().Get("Shale-Cost") == "" {
		t.Errorf("no Shale-Cost with %s", Show(r))
	}
}

func send(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func (p *Pipeline) get() *http.Request { return httptest.NewRequest(http.MethodGet, p.Path, nil) }

// panics: a bug is 500, is logged with its stack, and gives back its turn and its memory.
func (p *Pipeline) panics(t *testing.T) {
	broken := true
	var log bytes.Buffer
	pool := &model.QueryPool{MaxBytes: 1 << 20}
	h := p.New(t, func(o *api.Options) {
		now := o.Now
		o.Now = func() time.Time {
			if broken {
				panic("a bug")
			}
			return now()
		}
		o.Logger, o.Slots, o.Pool, o.Limits.MaxWait = slog.New(slog.NewTextHandler(&log, nil)), api.NewSlots(1), pool, time.Millisecond
	})
	expect(t, send(h, p.get()), http.StatusInternalServerError, "unexpected error: a bug")
	if s := log.String(); !strings.Contains(s, `panic="a bug"`) || !strings.Contains(s, "stack=") || !strings.Contains(s, "pipeline.go") {
		t.Errorf("the log is %q", s)
	}
	broken = false
	expect(t, send(h, p.get()), http.StatusOK, "")
	if n := pool.Used(); n != 0 {
		t.Errorf("%d bytes are still charged", n)
	}
}

// oversizedForm: a form beyond MaxBodyBytes is 413 and names the bound; one that the quota has no room for is
// refused.
func (p *Pipeline) oversizedForm(t *testing.T) {
	post := func(change func(*api.Options)) *httptest.ResponseRecorder {
		form := url.Values{"x": {strings.Repeat("y", 1000)}}.Encode()
		r := httptest.NewRequest(http.MethodPost, p.Path, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return send(p.New(t, change), r)
	}
	expect(t, post(func(o *api.Options) { o.Limits.MaxBodyBytes = 1100 }), http.StatusOK, "")
	expect(t, post(func(o *api.Options) { o.Limits.MaxBodyBytes = 100 }), http.StatusRequestEntityTooLarge, "the form is larger than 100 bytes")
	if r := post(func(o *api.Options) { o.Limits.MaxBytes = 1000 }); r.Code/100 != 4 || !strings.Contains(r.Body.String(), "query.max-bytes") {
		t.Errorf("a form beyond the quota: %s", Show(r))
	}
	r := post(func(o *api.Options) { o.Forms = &model.QueryPool{MaxBytes: 1000} })
	expect(t, r, http.StatusServiceUnavailable, "")
	if r.Header().Get("Retry-After") != "5" {
		t.Errorf("Retry-After is %q", r.Header().Get("Retry-After"))
	}
}

// occupied returns the dialect with its only turn taken, and what gives the turn back.
func (p *Pipeline) occupied(t *testing.T, wait time.Duration) (http.Handler, func()) {
	t.Helper()
	slots := api.NewSlots(1)
	g := api.NewGate(slots, time.Second, api.GateMetrics{
		Running: prometheus.NewGauge(prometheus.GaugeOpts{}), Waiting: prometheus.NewGauge(prometheus.GaugeOpts{}), Unread: prometheus.NewGauge(prometheus.GaugeOpts{}),
		Refused: prometheus.NewCounter(prometheus.CounterOpts{}),
	})
	if err := g.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p.New(t, func(o *api.Options) { o.Slots, o.Limits.MaxWait = slots, wait }), func() { g.Leave(t.Context()) }
}

// full: a request whose turn does not come is told which setting to look at, and to come back.
func (p *Pipeline) full(t *testing.T) {
	h, leave := p.occupied(t, time.Millisecond)
	r := send(h, p.get())
	expect(t, r, p.Full, "query.max-concurrent")
	if r.Header().Get("Retry-After") != "5" {
		t.Errorf("Retry-After is %q", r.Header().Get("Retry-After"))
	}
	leave()
	expect(t, send(h, p.get()), http.StatusOK, "")
}

// clientLeaves: a client that leaves while it waits is counted as 499 and not told to come back.
func (p *Pipeline) clientLeaves(t *testing.T) {
	h, leave := p.occupied(t, time.Minute)
	defer leave()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := send(h, p.get().WithContext(ctx))
	expect(t, r, api.StatusClientClosed, "")
	if again := r.Header().Get("Retry-After"); again != "" {
		t.Errorf("Retry-After is %q", again)
	}
}

// tenant: a tenant ID that is not allowed is 400.
func (p *Pipeline) tenant(t *testing.T) {
	h := p.New(t, nil)
	for _, id := range []string{"../x", "..", "a/b"} {
		r := p.get()
		r.Header.Set("X-Scope-OrgID", id)
		expect(t, send(h, r), http.StatusBadRequest, "tenant ID")
	}
}

// preflight: OPTIONS tells a page of an allowed origin what it may send, and any other page nothing.
func (p *Pipeline) preflight(t *testing.T) {
	h := p.New(t, func(o *api.Options) { o.CORSOrigin = regexp.MustCompile(`https://good`) })
	for origin, want := range map[string]string{"https://good": "https://good", "https://good.evil": "", "": ""} {
		r := httptest.NewRequest(http.MethodOptions, p.Path, nil)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := send(h, r)
		expect(t, w, http.StatusNoContent, "")
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%q: Access-Control-Allow-Origin is %q", origin, got)
		}
		if got := w.Header().Get("Access-Control-Allow-Methods"); (got == "GET, POST, OPTIONS") != (origin != "") {
			t.Errorf("%q: Access-Control-Allow-Methods is %q", origin, got)
		}
		if got := w.Header().Values("Vary"); strings.Join(got, " ") != "Accept-Encoding Origin" {
			t.Errorf("%q: Vary is %q", origin, got)
		}
	}
}

// method: a method that the endpoint does not take is 405 with those that it takes; HEAD has no body.
func (p *Pipeline) method(t *testing.T) {
	h := p.New(t, nil)
	r := send(h, httptest.NewRequest(http.MethodPut, p.Path, nil))
	expect(t, r, http.StatusMethodNotAllowed, "method PUT is not allowed")
	if got := r.Header().Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("Allow is %q", got)
	}
	r = send(h, httptest.NewRequest(http.MethodHead, p.Path, nil))
	expect(t, r, http.StatusOK, "")
	if r.Body.Len() != 0 {
		t.Errorf("HEAD has the body %q", r.Body)
	}
}
