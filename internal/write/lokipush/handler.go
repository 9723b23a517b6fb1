package lokipush

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/receive"
)

// The paths at which the handler is mounted. Both accept JSON of either form.
const (
	Path       = "/loki/api/v1/push"
	LegacyPath = "/api/prom/push"
)

// Options configure a Handler.
type Options struct {
	Sink receive.Sink
	// Rules are the rules for lines; see [logs.DefaultRules].
	Rules logs.Rules
	// RulesOf returns the rules for the lines of a tenant; nil: Rules.
	RulesOf func(tenant string) *logs.Rules
	// StreamCacheBytes is the memory for recently seen streams, for each kind of body. Zero means
	// [logs.StreamCacheBytes].
	StreamCacheBytes int
	// Registerer registers the metrics; it may be nil.
	Registerer prometheus.Registerer
}

// Handler serves pushes. It is safe for concurrent use.
type Handler struct {
	sink   receive.Sink
	rules  func(tenant string) *logs.Rules
	server *receive.Server
	// streams has one cache per kind of body, because each kind spells labels in its own way.
	streams [messages]*logs.Streams
	walkers sync.Pool
	metrics *receive.Metrics
}

// New returns a handler to be mounted at [Path] and [LegacyPath].
func New(o Options) *Handler {
	if o.StreamCacheBytes == 0 {
		o.StreamCacheBytes = logs.StreamCacheBytes
	}
	m := newMetrics(o.Registerer)
	if o.RulesOf == nil {
		o.RulesOf = func(string) *logs.Rules { return &o.Rules }
	}
	h := &Handler{sink: o.Sink, rules: o.RulesOf, server: receive.New(o.Sink, body.New("push", "lines"), forms, m), metrics: m}
	for i := range h.streams {
		h.streams[i] = logs.NewStreams(o.Sink.Seed(), o.StreamCacheBytes)
	}
	h.walkers.New = func() any { return new(walker) }
	return h
}

// ServeHTTP handles one request. It responds with 204 when all lines are durable, with 400 and the
// first rejected lines when all lines that can be stored are durable, and otherwise with a status that
// says whether to retry. docs/loki-push.md has the table.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	f, err := formOf(r.Header)
	res := h.server.Serve(r, err, func(req *receive.Request) (receive.Response, error) { return h.store(req, f) })
	res.WriteText(w)
	h.metrics.Observe(begin, &res, []string{f.message.String()})
}

// decode decompresses a body, which may be compressed twice.
func decode(r *receive.Request, f form) error {
	if err := r.Decode(f.encoding); err != nil {
		return err
	}
	if f.message != protobuf || f.encoding == body.Snappy || !isBlock(r.Body) {
		return nil
	}
	return r.Decode(body.Snappy)
}

// store parses a body and pushes its lines.
func (h *Handler) store(r *receive.Request, f form) (receive.Response, error) {
	if err := decode(r, f); err != nil {
		return receive.Response{}, err
	}
	w := h.walkers.Get().(*walker)
	defer h.giveWalker(w)
	b := h.sink.Batch(r.Tenant, model.Logs)
	defer h.sink.Recycle(b)
	w.start(h.streams[f.message], h.rules(r.Tenant), r.Body, b, r.Reserve)
	if err := w.walk(f.message); err != nil {
		return receive.Response{}, err
	}
	if w.found == 0 {
		return receive.Response{Status: http.StatusUnprocessableEntity, Text: "error at least one valid stream is required for ingestion"}, nil
	}
	_, left, err := r.Push(b, w.entries.Left)
	if err != nil {
		return receive.Response{}, err
	}
	return report(left), nil
}

// report returns 204 if no line was rejected. Otherwise it returns 400, so that the sender drops the
// request: all lines that can be stored are durable.
func report(left write.Rejections) receive.Response {
	if len(left) == 0 {
		return receive.Response{Status: http.StatusNoContent}
	}
	return receive.Response{Status: http.StatusBadRequest, Text: logs.Report(left)}
}

// maxPooled is the largest walker, in bytes, that returns to the pool.
const maxPooled = 1 << 20

func (h *Handler) giveWalker(w *walker) {
	if w.memory() > maxPooled {
		return
	}
	w.decoded, w.streams, w.rules = nil, nil, nil
	w.entries.Forget()
	h.walkers.Put(w)
}
