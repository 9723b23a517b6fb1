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

// Where the handlers are to be mounted.
const (
	LogsPath    = "/otlp/v1/logs"
	MetricsPath = "/otlp/v1/metrics"
	// PrometheusMetricsPath is where a Prometheus takes metrics.
	PrometheusMetricsPath = "/api/v1/otlp/v1/metrics"
)

// Options build a Handler.
type Options struct {
	Sink receive.Sink
	// Rules are what log lines are held to; see [logs.DefaultRules].
	Rules logs.Rules
	// StreamCacheBytes is the memory for resources whose logs were seen lately; 0 stands for [logs.StreamCacheBytes].
	StreamCacheBytes int
	// ScopeLabels gives each series the labels otel_scope_name, otel_scope_version and the like, which Prometheus does when its
	// promote_scope_metadata is set.
	ScopeLabels bool
	// Registerer takes the metrics; it may be nil.
	Registerer prometheus.Registerer
}

// Handler has the endpoints of OTLP. It is safe for concurrent use.
type Handler struct {
	o          Options
	streams    *logs.Streams
	server     *receive.Server
	logWalkers sync.Pool
	// metricsShape is what is known of a body of metrics before it is read.
	metricsShape *shape
	metrics      *receive.Metrics
}

// New returns a handler.
func New(o Options) *Handler {
	if o.StreamCacheBytes == 0 {
		o.StreamCacheBytes = logs.StreamCacheBytes
	}
	m := newMetrics(o.Registerer)
	h := &Handler{
		o: o, server: receive.New(o.Sink, body.New("OTLP", "records or data points"), m), metrics: m, metricsShape: metricsShape(),
		streams: logs.NewStreams(o.Rules, o.Sink.Seed(), o.StreamCacheBytes),
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

// endpoint takes requests: 200 when all is durable, or when some of it can never be stored, which the response says, and
// all else is durable; 400 when nothing of it can be stored; otherwise a status that says whether to send it again.
// docs/otlp.md has the table.
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
