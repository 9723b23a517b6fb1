package otlp

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/logs"
)

// Where the handlers are to be mounted.
const (
	LogsPath    = "/otlp/v1/logs"
	MetricsPath = "/otlp/v1/metrics"
	// PrometheusMetricsPath is where a Prometheus takes metrics.
	PrometheusMetricsPath = "/api/v1/otlp/v1/metrics"
)

// Sink is what the handlers need of the write path.
type Sink interface {
	Seed() model.KeySeed
	Limits() write.Limits
	Now() int64
	Admit(ctx context.Context, tenant string, bytes int64) (*write.Grant, error)
	Batch(tenant string, s model.Signal) *model.Batch
	Recycle(b *model.Batch)
	// Push makes a batch durable; afterwards nothing refers to the batch or its Source.
	Push(ctx context.Context, b *model.Batch) (write.Result, error)
	// Rejected counts rows that were left out before they came into a batch.
	Rejected(left write.Rejections)
	// Metadata takes what is told of a metric family. It keeps none of the slices.
	Metadata(tenant string, family []byte, typ string, help, unit []byte)
}

var _ Sink = (*write.Path)(nil)

// Options build a Handler.
type Options struct {
	Sink Sink
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
	codec      *body.Codec
	logWalkers sync.Pool
	// metricsShape is what is known of a body of metrics before it is read.
	metricsShape *shape
	metrics      *metrics
}

// New returns a handler.
func New(o Options) *Handler {
	if o.StreamCacheBytes == 0 {
		o.StreamCacheBytes = logs.StreamCacheBytes
	}
	h := &Handler{
		o: o, codec: body.New("OTLP", "records or data points"), metrics: newMetrics(o.Registerer), metricsShape: metricsShape(),
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

// request is a body that has been read.
type request struct {
	ctx    context.Context
	tenant string
	json   bool
	body   []byte
	// reserve asks for memory before it is used.
	reserve func(bytes int64) error
}

// endpoint takes requests: 200 when all is durable, or when some of it can never be stored, which the answer says, and all
// else is durable; 400 when nothing of it can be stored; otherwise a status that says whether to send it again.
// docs/otlp.md has the table.
func (h *Handler) endpoint(signal, rejected string, store func(*request) answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		var a answer
		f, err := formOf(r.Header)
		switch {
		case r.Method != http.MethodPost:
			a = answer{status: http.StatusMethodNotAllowed, allow: http.MethodPost, text: signal + " are sent by POST"}
		case err != nil:
			a = answerOf(err)
		default:
			a = h.serve(r, f, store)
		}
		a.write(w, f, rejected)
		h.metrics.requests.WithLabelValues(signal, f.String(), strconv.Itoa(a.status)).Inc()
		h.metrics.seconds.WithLabelValues(signal).Observe(time.Since(begin).Seconds())
	})
}

func (h *Handler) serve(r *http.Request, f form, store func(*request) answer) answer {
	tenant := r.Header.Get("X-Scope-OrgID")
	if tenant == "" {
		tenant = model.DefaultTenant
	}
	if err := write.ValidTenant(tenant); err != nil {
		return answerOf(err)
	}
	limits := h.o.Sink.Limits()
	in := h.codec.Take()
	defer h.codec.Give(in)
	grant, err := h.codec.Read(r, h.o.Sink, tenant, in, limits.MaxBodyBytes)
	if err != nil {
		return answerOf(err)
	}
	defer grant.Release()
	h.metrics.bodyBytes.Add(float64(len(in.Bytes)))
	decoded := in.Bytes
	if f.encoding != body.Plain || limits.MaxDecodedBytes > 0 && int64(len(in.Bytes)) > limits.MaxDecodedBytes {
		out := h.codec.Take()
		defer h.codec.Give(out)
		if err := h.codec.Decode(f.encoding, in.Bytes, out, limits.MaxDecodedBytes, grant.Grow); err != nil {
			return answerOf(err)
		}
		decoded = out.Bytes
	}
	return store(&request{ctx: r.Context(), tenant: tenant, json: f.json, body: decoded, reserve: grant.Grow})
}
