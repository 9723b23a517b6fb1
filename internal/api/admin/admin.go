package admin

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shaledb/shale/internal/api"
)

// Options build an API.
type Options struct {
	// Version is shown on the page at /.
	Version string
	// Gatherer gives the metrics.
	Gatherer prometheus.Gatherer
	// Ready returns nil when requests can be served, and otherwise the reason why not. It is called by many
	// goroutines at once and must not block. Nil: always ready.
	Ready func() error
	// Writable returns nil when writes are accepted, and otherwise the reason why not, though queries are
	// served. It is called like Ready. Nil: always writable.
	Writable func() error
	// Profiles serves the profiles of the process below /debug/pprof/.
	Profiles bool
	// Cache returns what answers for the cache, or nil as long as the store is not open. Nil: there is none.
	Cache func() Cache
	// Usage returns what answers for the usage of tenants, as Cache does.
	Usage func() Usage
	// Listed are the other endpoints of the server, in the order in which the page at / lists them.
	Listed []Listed
	Logger *slog.Logger // nil: no log
}

// Listed is a line of the page at /.
type Listed struct {
	// Method and Path are the request, such as "POST" and "/api/v1/write".
	Method, Path string
	// Text describes the response in a few words.
	Text string
}

// API serves the endpoints. It holds no state and needs no closing.
type API struct {
	o        Options
	pipeline *api.Pipeline
	metrics  http.Handler
	// profiling is held while a profile is taken, since a second one would show the first.
	profiling sync.Mutex
}

// maxScrapes bounds the responses of /metrics at one time, since each is held in memory as a whole.
const maxScrapes = 4

// New returns an API.
func New(o Options) *API {
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	if o.Writable == nil {
		o.Writable = func() error { return nil }
	}
	common := &api.Options{Logger: o.Logger}
	common.SetDefaults()
	return &API{o: o, pipeline: api.NewPipeline(common, nil), metrics: promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
		// A collector that fails must not hide the others from an operator who looks for the cause.
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	})}
}

// Routes adds the endpoints to a mux. They need nothing: they must work when everything else is full.
func (a *API) Routes(mux api.Mux) {
	a.pipeline.Mount(mux, &api.Dialect{
		Bare: true,
		Classify: func(err error, _ bool) *api.Error {
			return &api.Error{Status: http.StatusInternalServerError, Err: err}
		},
		WriteError: func(b *api.Body, e *api.Error) { b.SendText(e.Status, e.Error()+"\n") },
	}, []api.Endpoint{
		{Pattern: "GET /{$}", Name: "index", Serve: a.index},
		{Pattern: "GET /healthz", Name: "healthz", Serve: a.healthz},
		{Pattern: "GET /ready", Name: "ready", Serve: a.ready},
		{Pattern: "GET /metrics", Name: "metrics", Serve: a.scrape},
		{Pattern: "GET /api/v1/cache", Name: "cache", Serve: a.cache},
		{Pattern: "GET /api/v1/cache/what-if", Name: "cache_what_if", Serve: a.whatIf},
		{Pattern: "GET /api/v1/cache/record", Name: "cache_record", Serve: a.record},
		{Pattern: "GET /api/v1/usage", Name: "usage", Serve: a.usage},
		{Pattern: "GET /-/healthy", Name: "healthy", Serve: a.healthy},
		{Pattern: "GET /-/ready", Name: "ready", Serve: a.ready},
		{Pattern: "/-/quit", Name: "quit", Serve: lifecycle},
		{Pattern: "/-/reload", Name: "reload", Serve: lifecycle},
		{Pattern: profilesPath, Name: "pprof", Serve: a.profile},
	})
}

// healthz answers as long as the process can answer at all: a failing check means that a restart may help.
func (a *API) healthz(r *api.Request) (*api.Response, error) {
	return text(r, http.StatusOK, "ok\n"), nil
}

// ready answers 503 while requests cannot be served, so that a load balancer waits instead of sending them.
// On a full disk queries work, and each write gets a 503 of its own.
func (a *API) ready(r *api.Request) (*api.Response, error) {
	if err := a.o.Ready(); err != nil {
		return text(r, http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n"), nil
	}
	if err := a.o.Writable(); err != nil {
		return text(r, http.StatusOK, "ready for queries; writes are refused: "+err.Error()+"\n"), nil
	}
	return text(r, http.StatusOK, "ready\n"), nil
}

func (a *API) scrape(r *api.Request) (*api.Response, error) {
	a.metrics.ServeHTTP(r.W, r.Request)
	return &api.Response{Sent: true}, nil
}

func (a *API) index(r *api.Request) (*api.Response, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Shale %s\n\n", a.o.Version)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	own := []Listed{
		{"GET", "/ready", "200 when requests can be served, 503 with the reason until then"},
		{"GET", "/healthz", "200 as long as the process lives"},
		{"GET", "/metrics", "metrics of Shale itself, for Prometheus"},
		{"GET", "/api/v1/cache", "what each tier of the cache does (what-if: what other sizes would do; record: a trace)"},
		{"GET", "/api/v1/usage", "what tenants have written, stored and read, and what it costs (format=csv: as a table)"},
		{"GET", "/-/ready", "the same as /ready, as clients of Prometheus ask it (/-/healthy likewise)"},
	}
	for _, e := range append(append([]Listed(nil), a.o.Listed...), own...) {
		fmt.Fprintf(t, "%s\t%s\t%s\n", e.Method, e.Path, e.Text)
	}
	_ = t.Flush() // a strings.Builder takes everything
	return text(r, http.StatusOK, b.String()), nil
}

// text returns a response that no cache keeps.
func text(r *api.Request, status int, s string) *api.Response {
	header := r.W.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	return &api.Response{Status: status, ContentType: "text/plain; charset=utf-8", Write: func(b *api.Body) error {
		b.Raw(s)
		return nil
	}}
}
