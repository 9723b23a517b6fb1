package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/admin"
	"github.com/shaledb/shale/internal/api/carbonlink"
	graphiteapi "github.com/shaledb/shale/internal/api/graphite"
	"github.com/shaledb/shale/internal/api/loki"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/app/conns"
	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/auth/certs"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/events"
	"github.com/shaledb/shale/internal/read/graphite/names"
	"github.com/shaledb/shale/internal/read/logql/patterns"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/graphite"
	"github.com/shaledb/shale/internal/write/promwrite"
)

// doorkeepers let clients in.
type doorkeepers struct {
	guard *auth.Guard   // nil: every request is let through
	certs *certs.Source // nil: the listeners speak no TLS
}

// servers are the listeners of the process. HTTP serves /ready and /metrics from the start; the rest is
// mounted once the store is open.
type servers struct {
	http     *listener
	graphite *graphite.Listener
	// carbonlink answers queries of the cache of carbon; nil: it is off.
	carbonlink *carbonlink.Server
	policies   *policies
	carbon     carbon
	// stopElections saves which replicas are elected; nil before the store is open.
	stopElections func()
	doorkeepers
	mounted []string // rows of the table of scopes
	failed  chan error
}

// listener is the port for all HTTP.
type listener struct {
	*conns.Connections
	server *http.Server
	mux    atomic.Pointer[http.ServeMux]
	admin  *admin.API
	engine *promEngine
	logs   *loki.Handler
	names  *names.Finder
	// stopPatterns ends the mining of patterns.
	stopPatterns func()
}

// endpoints returns the list of the page at /.
func endpoints() []admin.Listed {
	return []admin.Listed{
		{Method: "POST", Path: "/api/v1/write", Text: "Prometheus remote write 1.0 and 2.0"},
		{Method: "POST", Path: "/api/v1/write/graphite", Text: "Graphite lines"},
		{Method: "GET", Path: "/api/v1/query", Text: "PromQL at an instant (query_range: over a range; query_exemplars: exemplars)"},
		{Method: "GET", Path: "/api/v1/series", Text: "series of selectors (labels, label/<name>/values, metadata likewise)"},
		{Method: "GET", Path: "/api/v1/cardinality/metrics", Text: "what makes series, by metric (labels, values, active, unused likewise)"},
		{Method: "POST", Path: "/api/v1/read", Text: "Prometheus remote read"},
		{Method: "GET", Path: "/federate", Text: "the newest samples of selectors, for scraping"},
		{Method: "POST", Path: "/loki/api/v1/push", Text: "log lines, by the push protocol of Loki (/api/prom/push likewise)"},
		{Method: "POST", Path: "/otlp/v1/logs", Text: "log records of OpenTelemetry (/otlp/v1/metrics, also /api/v1/otlp/v1/metrics: metrics)"},
		{Method: "GET", Path: "/loki/api/v1/query_range", Text: "LogQL: log lines and numbers (query: at an instant; tail: lines as they arrive)"},
		{Method: "GET", Path: "/loki/api/v1/labels", Text: "labels of log streams (label/<name>/values, series, index/stats, index/volume, detected_labels, detected_fields, patterns likewise)"},
		{Method: "GET", Path: "/metrics/find", Text: "names of Graphite by a pattern (metrics/expand, metrics/search, metrics/index.json, functions likewise; all also below /graphite)"},
		{Method: "GET", Path: "/tags", Text: "tags of Graphite (tags/<tag>, tags/findSeries, tags/autoComplete/tags likewise)"},
		{Method: "GET", Path: "/render", Text: "series of Graphite targets"},
		{Method: "POST", Path: "/events", Text: "an event of Graphite (GET /events/get_data: events)"},
		{Method: "POST", Path: "/api/v1/admin/tsdb/delete_series", Text: "delete samples (/loki/api/v1/delete: log lines)"},
		{Method: "GET", Path: "/api/v1/format_query", Text: "an expression in its standard form (parse_query: as a tree)"},
		{Method: "GET", Path: "/api/v1/status/buildinfo", Text: "version of this program (runtimeinfo, flags, config, tsdb likewise)"},
		{Method: "GET", Path: "/api/v1/openapi.yaml", Text: "the endpoints of Prometheus as an OpenAPI document (features: what is on)"},
	}
}

func listen(c config.Config, d doorkeepers, registry *prometheus.Registry, log *slog.Logger, ready, writable func() error, open *atomic.Pointer[Engine]) (*servers, error) {
	l, err := net.Listen("tcp", c.HTTPListen)
	if err != nil {
		return nil, fmt.Errorf("%w: http-listen: %v", model.ErrInvalid, err)
	}
	h := &listener{Connections: conns.Watch(l, c.Connections, registry, log)}
	mux := newGuardedMux(d.guard)
	h.admin = admin.New(admin.Options{Version: c.Version, Gatherer: registry, Ready: ready, Writable: writable, Cache: cachesOf(open, &c), Usage: usageOf(open), Profiles: c.HTTPProfiles.On(), Listed: endpointsOf(&c), Logger: log})
	h.admin.Routes(mux)
	for _, path := range []string{"/api/", "/prometheus/", "/loki/", "/otlp/", "/federate", "/version", "/graphite/", "/functions", "/metrics/", "/tags/", "/render", "/events", "/events/"} {
		mux.ServeMux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "2")
			http.Error(w, starting(&c), http.StatusServiceUnavailable)
		})
	}
	if err := mux.unknown(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	h.mux.Store(mux.ServeMux)
	h.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.mux.Load().ServeHTTP(w, r) }),
		ReadHeaderTimeout: 10 * time.Second,
		// Senders give up after about this time, so a body must arrive within it.
		ReadTimeout: time.Minute,
		// Queries set their own deadlines. This one bounds other requests, and clients that do not read.
		WriteTimeout:   c.Query.Timeout + time.Minute,
		IdleTimeout:    5 * time.Minute,
		MaxHeaderBytes: conns.MaxHeaderBytes,
	}
	h.Serve(h.server)
	s := &servers{http: h, doorkeepers: d, failed: make(chan error, 2)}
	var accepted net.Listener = h.Connections
	if secure := httpTLS(d.certs, &c.TLS); secure != nil {
		accepted = tls.NewListener(accepted, secure)
	}
	go func() {
		if err := h.server.Serve(accepted); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("%w: http: %v", model.ErrTransient, err)
		}
	}()
	return s, nil
}

// Addr returns the address of the HTTP listener.
func (l *listener) Addr() string { return l.Listener.Addr().String() }

// graphiteAddrs returns the addresses of Graphite's listeners, for the log.
func (s *servers) graphiteAddrs() (fields []any) {
	if s.graphite == nil {
		return []any{"graphite", "off"}
	}
	text, pickle := s.graphite.SecureAddrs()
	for _, l := range []struct {
		name string
		addr net.Addr
	}{
		{"graphite", s.graphite.Addr()}, {"graphite_pickle", s.graphite.PickleAddr()},
		{"graphite_tls", text}, {"graphite_pickle_tls", pickle},
	} {
		if l.addr != nil {
			fields = append(fields, l.name, l.addr.String())
		}
	}
	return fields
}

// mount connects the receivers and the APIs to an open store.
func (s *servers) mount(c config.Config, e *Engine, registry *prometheus.Registry, log *slog.Logger) error {
	var err error
	if s.carbon, err = openCarbon(&c, carbonPlace{e.Path(), e.o.FS, e.o.DataDir}, registry, log); err != nil {
		return err
	}
	mux := newGuardedMux(s.guard)
	s.http.admin.Routes(mux)
	mux.Handle(graphite.HTTPPath, graphite.NewHTTP(e.Path(), s.carbon.rules(), registry))
	elector, stopElections, err := electReplicas(&c, e, registry, log)
	if err != nil {
		return err
	}
	s.stopElections = stopElections
	mux.Handle(promwrite.Path, promwrite.NewElecting(e.Path(), elector, registry))
	shared := s.mountProm(c, e, mux, registry, log)
	receive(c, e.Path(), e.o.Tenants, mux, registry)
	kept, stop := keepPatterns(c, e, registry)
	s.http.stopPatterns = stop
	if err := s.mountLogsAndGraphite(c, e, kept, shared, mux, registry, log); err != nil {
		return err
	}
	if err := mux.unknown(); err != nil {
		return err
	}
	s.mounted = mux.mounted
	s.http.mux.Store(mux.ServeMux)
	return s.listenGraphite(&c, e.Path(), registry, log)
}

// mountProm mounts the API of Prometheus, and returns what it shares with those of other languages.
func (s *servers) mountProm(c config.Config, e *Engine, mux api.Mux, registry *prometheus.Registry, log *slog.Logger) api.Options {
	shared := apiOptions(c, registry, log)
	if c.TenantsFile != "" {
		shared.LimitsOf = e.o.Tenants.queries
	}
	shared.Budgets = budgets(&c, e, registry)
	shared.Answers = keepAnswers(&c, e, registry)
	shared.Meter = readMeter{e.usage}
	s.http.engine = newPromEngine(c, registry, log)
	prom.New(promOptions(c, e, s.http.engine, shared)).Routes(mux)
	return shared
}

// mountLogsAndGraphite mounts the APIs of Loki and of Graphite, whose events are lines.
func (s *servers) mountLogsAndGraphite(c config.Config, e *Engine, kept *patterns.Keeper, shared api.Options, mux api.Mux, registry *prometheus.Registry, log *slog.Logger) (err error) {
	if _, err = s.rollups(&c, log); err != nil {
		return err
	}
	lines := lokiOptions(c, e, kept, shared, registry)
	s.http.logs = loki.New(lines)
	s.http.logs.Routes(mux)
	s.http.names = newFinder(&c, e, shared.Pool, registry)
	reader := &events.Reader{Lines: lines.Engine}
	engine := newGraphiteEngine(s.http.names, e, s.policies, reader)
	graphiteapi.New(graphiteOptions(s.http.names, engine, reader, shared)).Routes(mux)
	s.carbonlink, err = listenCarbonlink(&c, engine, shared.Pool, shared.Forms, registry, log)
	return err
}

// listenGraphite opens the listeners of Graphite that settings ask for.
func (s *servers) listenGraphite(c *config.Config, path *write.Path, registry *prometheus.Registry, log *slog.Logger) error {
	if c.GraphiteListen+c.GraphitePickleListen+c.GraphiteProtobufListen+c.GraphiteTLSListen+c.GraphitePickleTLSListen == "" {
		return nil
	}
	lines, err := graphite.New(graphite.Options{
		Listen: c.GraphiteListen, PickleListen: c.GraphitePickleListen, ProtobufListen: c.GraphiteProtobufListen,
		Doors: doors(c, s.certs, s.guard), ProxyProtocol: c.GraphiteProxyProtocol.On(), Sink: path, Rules: s.carbon.rules(), MaxConnections: c.Connections, Registerer: registry, Logger: log,
	})
	if err != nil {
		return err
	}
	s.graphite = lines // until it is drained, which may be before it has begun
	go func() {
		if err := lines.Serve(); err != nil && !errors.Is(err, model.ErrClosed) {
			s.failed <- err
		}
	}()
	return nil
}

// drain accepts no further requests and waits for running ones.
func (s *servers) drain() error {
	var errs []error
	if s.graphite != nil {
		errs = append(errs, s.graphite.Close())
		s.graphite = nil
	}
	if s.carbonlink != nil {
		errs = append(errs, s.carbonlink.Close())
	}
	// The server does not know the connections that follow lines.
	errs = append(errs, s.http.closeLogs())
	s.http.Drain(s.http.server)
	if s.stopElections != nil {
		s.stopElections()
	}
	if s.http.names != nil {
		errs = append(errs, s.http.names.Close())
	}
	// Lines over HTTP end with the requests.
	errs = append(errs, s.carbon.close())
	return errors.Join(errs...)
}

// close closes all that drain has not closed.
func (s *servers) close() error {
	var errs []error
	if s.graphite != nil {
		errs = append(errs, s.graphite.Close())
	}
	if s.carbonlink != nil {
		errs = append(errs, s.carbonlink.Close())
	}
	errs = append(errs, s.carbon.close(), s.http.server.Close(), s.http.closeLogs())
	if s.policies != nil {
		s.policies.close()
	}
	if s.http.engine != nil {
		errs = append(errs, s.http.engine.Close())
	}
	return errors.Join(errs...)
}
