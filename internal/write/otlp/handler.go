package otlp

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/receive"
)

// The paths at which the handlers are mounted.
const (
	LogsPath    = "/otlp/v1/logs"
	MetricsPath = "/otlp/v1/metrics"
	// PrometheusMetricsPath is the path that Prometheus uses for metrics.
	PrometheusMetricsPath = "/api/v1/otlp/v1/metrics"
)

// Options configure a Handler.
type Options struct {
	Sink receive.Sink
	// Rules are the rules for log lines; see [logs.DefaultRules].
	Rules logs.Rules
	// RulesOf returns the rules for the lines of a tenant; nil: Rules.
	RulesOf func(tenant string) *logs.Rules
	// StreamCacheBytes is the memory for recently seen log resources. Zero means
	// [logs.StreamCacheBytes].
	StreamCacheBytes int
	// ScopeLabels gives each series the labels otel_scope_name, otel_scope_version and so on, as
	// Prometheus does with promote_scope_metadata.
	ScopeLabels bool
	// Registerer registers the metrics; it may be nil.
	Registerer prometheus.Registerer
}

// Handler has the endpoints of OTLP. It is safe for concurrent use.
type Handler struct {
	o          Options
	streams    *logs.Streams
	server     *receive.Server
	logWalkers sync.Pool
	// metricsShape is used to compute the memory for a body of metrics before it is decoded.
	metricsShape *shape
	metrics      *receive.Metrics
}

// New returns a handler.
func New(o Options) *Handler {
	if o.StreamCacheBytes == 0 {
		o.StreamCacheBytes = logs.StreamCacheBytes
	}
	if o.RulesOf == nil {
		o.RulesOf = func(string) *logs.Rules { return &o.Rules }
	}
	m := newMetrics(o.Registerer)
	h := &Handler{
		o: o, server: receive.New(o.Sink, body.New("OTLP", "records or data points"), forms, m), metrics: m, metricsShape: metricsShape(),
		streams: logs.NewStreams(o.Sink.Seed(), o.StreamCacheBytes),
	}
	h.logWalkers.New = func() any { return new(logWalker) }
	return h
}

// Logs returns the endpoint for [LogsPath].
func (h *Handler) Logs() http.Handler {
	return h.endpoint("logs", rejectedRecords, h.storeLogs)
}

// Metrics returns the endpoint for [MetricsPath] and [PrometheusMetricsPath].
func (h *Handler) Metrics() http.Handler {
	return h.endpoint("metrics", rejectedPoints, h.storeMetrics)
}

// endpoint handles requests. It responds with 200 when everything that can be stored is durable, and
// the body tells what never can; with 400 when the request cannot be read; and otherwise with a status
// that says whether to retry. docs/otlp.md has the table.
func (h *Handler) endpoint(signal, rejected string, store func(*receive.Request, form) (receive.Response, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		f, err := formOf(r.Header)
		res := h.server.Serve(r, err, func(req *receive.Request) (receive.Response, error) {
			if err := req.Decode(f.encoding); err != nil {
				return receive.Response{}, err
			}
			return store(req, f)
		})
		writeResponse(w, &res, f, rejected)
		h.metrics.Observe(begin, &res, []string{signal, f.String()}, signal)
	})
}
