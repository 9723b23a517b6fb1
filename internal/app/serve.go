package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"golang.org/x/net/netutil"

	"github.com/shaledb/shale/internal/api/admin"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/write/graphite"
	"github.com/shaledb/shale/internal/write/promwrite"
)

// servers are the listeners of the process. HTTP is there from the first moment, for /ready and /metrics; the rest is
// mounted when the store is open.
type servers struct {
	http     *listener
	graphite *graphite.Listener
	failed   chan error
}

// listener is the one port for all HTTP.
type listener struct {
	net.Listener
	server *http.Server
	mux    atomic.Pointer[http.ServeMux]
	admin  *admin.API
	engine *promql.Engine
}

var endpoints = []admin.Endpoint{
	{Method: "POST", Path: "/api/v1/write", Text: "Prometheus remote write 1.0"},
	{Method: "GET", Path: "/api/v1/query", Text: "PromQL at an instant (query_range: over a range)"},
	{Method: "GET", Path: "/api/v1/series", Text: "series of selectors (labels, label/<name>/values likewise)"},
	{Method: "GET", Path: "/api/v1/status/buildinfo", Text: "what this program is"},
}

func listen(c config.Config, registry *prometheus.Registry, log *slog.Logger, ready func() error) (*servers, error) {
	l, err := net.Listen("tcp", c.HTTPListen)
	if err != nil {
		return nil, fmt.Errorf("%w: http-listen: %v", model.ErrInvalid, err)
	}
	h := &listener{Listener: netutil.LimitListener(l, c.Limits.Connections)}
	mux := http.NewServeMux()
	h.admin = admin.New(admin.Options{Version: c.Version, Gatherer: registry, Ready: ready, Endpoints: endpoints})
	h.admin.Routes(mux)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		http.Error(w, "starting: the journal is being replayed", http.StatusServiceUnavailable)
	})
	h.mux.Store(mux)
	h.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.mux.Load().ServeHTTP(w, r) }),
		ReadHeaderTimeout: 10 * time.Second,
		// A body must come within the time that senders wait for an answer to it.
		ReadTimeout: time.Minute,
		// Queries set deadlines of their own; this one is for all else, and for clients that do not read.
		WriteTimeout:   time.Duration(c.Query.Timeout) + time.Minute,
		IdleTimeout:    5 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	s := &servers{http: h, failed: make(chan error, 2)}
	go func() {
		if err := h.server.Serve(h.Listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("%w: http: %v", model.ErrTransient, err)
		}
	}()
	return s, nil
}

// Addr returns the address on which HTTP listens.
func (l *listener) Addr() string { return l.Listener.Addr().String() }

func (s *servers) graphiteAddr() string {
	if s.graphite == nil {
		return "off"
	}
	return s.graphite.Addr().String()
}

// mount puts the protocols and the API before an open store.
func (s *servers) mount(c config.Config, e *Engine, registry *prometheus.Registry, log *slog.Logger) error {
	mux := http.NewServeMux()
	s.http.admin.Routes(mux)
	mux.Handle(promwrite.Path, promwrite.New(e.Path(), registry))
	timeout := time.Duration(c.Query.Timeout)
	s.http.engine = promql.NewEngine(promql.EngineOpts{
		Logger: log, Reg: registry, MaxSamples: maxSamples(c), Timeout: timeout,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		Parser:                   parser.NewParser(parser.Options{}),
	})
	prom.New(prom.Options{
		Engine: s.http.engine,
		Queryable: func(tenant string, q *model.Quota, cost *model.Cost) storage.Queryable {
			return &shalepromql.Queryable{Read: e.Querier(), Tenant: tenant, Quota: q, Cost: cost}
		},
		Limits: prom.Limits{
			MaxSeries: c.Query.MaxSeries, MaxSamples: c.Query.MaxSamples, MaxBytes: c.QueryBytes, PoolBytes: splitMemory(c.MemoryBytes).queries,
			MaxConcurrent: c.Query.Concurrency, Timeout: timeout,
		},
		Version: prom.Version{Version: c.Version}, Registerer: registry, Logger: log,
	}).Routes(mux)
	s.http.mux.Store(mux)
	if c.GraphiteListen == "" {
		return nil
	}
	var err error
	s.graphite, err = graphite.New(graphite.Options{
		Listen: c.GraphiteListen, Sink: e.Path(), MaxConnections: c.Limits.Connections, Registerer: registry, Logger: log,
	})
	if err != nil {
		return err
	}
	go func() {
		if err := s.graphite.Serve(); err != nil && !errors.Is(err, model.ErrClosed) {
			s.failed <- err
		}
	}()
	return nil
}

// maxSamples gives the engine its own limit, of samples held at one time, each of 16 bytes.
func maxSamples(c config.Config) int {
	n := c.QueryBytes / 16
	if c.Query.MaxSamples > 0 {
		n = min(n, c.Query.MaxSamples)
	}
	return int(n)
}

// drain stops taking requests and waits for those that are being served.
func (s *servers) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	var errs []error
	if s.graphite != nil {
		errs = append(errs, s.graphite.Close())
		s.graphite = nil
	}
	errs = append(errs, s.http.server.Shutdown(ctx))
	return errors.Join(errs...)
}

// close ends whatever is still there.
func (s *servers) close() error {
	var errs []error
	if s.graphite != nil {
		errs = append(errs, s.graphite.Close())
	}
	errs = append(errs, s.http.server.Close())
	if s.http.engine != nil {
		errs = append(errs, s.http.engine.Close())
	}
	return errors.Join(errs...)
}
