package admin

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options build an API.
type Options struct {
	// Version is shown on the page at /.
	Version string
	// Gatherer gives the metrics.
	Gatherer prometheus.Gatherer
	// Ready returns nil when requests can be served, and otherwise why not. It is called by many goroutines at once and
	// must not block. Nil means always ready.
	Ready func() error
	// Endpoints are what else the server offers, in the order in which they are to be listed.
	Endpoints []Endpoint
}

// Endpoint is a line of the page at /.
type Endpoint struct {
	// Method and Path are what to ask, such as "POST" and "/api/v1/write".
	Method, Path string
	// Text says what comes back, in a few words.
	Text string
}

// API serves the endpoints. It holds no state and needs no closing.
type API struct {
	o       Options
	metrics http.Handler
}

// maxScrapes bounds how many answers of /metrics are made at one time, since each holds all of them in memory.
const maxScrapes = 4

// New returns an API.
func New(o Options) *API {
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	return &API{o: o, metrics: promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
		// One collector that fails must not hide the others from whoever looks for the cause.
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	})}
}

// Routes adds the endpoints to a mux.
func (a *API) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", a.index)
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /ready", a.ready)
	mux.Handle("GET /metrics", a.metrics)
}

// healthz answers as long as the process can answer at all: a failing check means that a restart may help.
func (a *API) healthz(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok\n") }

// ready answers 503 while requests cannot be served, so that a load balancer waits instead of sending them.
func (a *API) ready(w http.ResponseWriter, _ *http.Request) {
	if err := a.o.Ready(); err != nil {
		text(w, http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n")
		return
	}
	text(w, http.StatusOK, "ready\n")
}

func (a *API) index(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	fmt.Fprintf(&b, "Shale %s\n\n", a.o.Version)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	own := []Endpoint{
		{"GET", "/ready", "200 when requests can be served, 503 with the reason until then"},
		{"GET", "/healthz", "200 as long as the process lives"},
		{"GET", "/metrics", "metrics of Shale itself, for Prometheus"},
	}
	for _, e := range append(append([]Endpoint(nil), a.o.Endpoints...), own...) {
		fmt.Fprintf(t, "%s\t%s\t%s\n", e.Method, e.Path, e.Text)
	}
	_ = t.Flush() // a strings.Builder takes everything
	text(w, http.StatusOK, b.String())
}

func text(w http.ResponseWriter, status int, s string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, s) // the client may have gone
}
