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

// Where the handler is to be mounted. JSON of either form is taken at both.
const (
	Path       = "/loki/api/v1/push"
	LegacyPath = "/api/prom/push"
)

// Options build a Handler.
type Options struct {
	Sink receive.Sink
	// Rules are what lines are held to; see [logs.DefaultRules].
	Rules logs.Rules
	// StreamCacheBytes is the memory for streams that were seen lately, for each form of a body; 0 stands for
	// [logs.StreamCacheBytes].
	StreamCacheBytes int
	// Registerer takes the metrics; it may be nil.
	Registerer prometheus.Registerer
}

// Handler is the endpoint of pushes. It is safe for concurrent use.
type Handler struct {
	sink   receive.Sink
	server *receive.Server
	// streams are apart by message, since each spells labels in its own way.
	streams [messages]*logs.Streams
	walkers sync.Pool
	metrics *receive.Metrics
}

// New returns a handler, to be mounted at [Path] and [LegacyPath].
func New(o Options) *Handler {
	if o.StreamCacheBytes == 0 {
		o.StreamCacheBytes = logs.StreamCacheBytes
	}
	m := newMetrics(o.Registerer)
	h := &Handler{sink: o.Sink, server: receive.New(o.Sink, body.New("push", "lines"), m), metrics: m}
	for i := range h.streams {
		h.streams[i] = logs.NewStreams(o.Rules, o.Sink.Seed(), o.StreamCacheBytes)
	}
	h.walkers.New = func() any { return new(walker) }
	return h
}

// ServeHTTP takes one request: 204 when all of it is durable; 400 with the first culprits when some lines can never be
// stored, and all others are durable; otherwise a status that says whether to send it again. docs/loki-push.md has the
// table.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	f, err := formOf(r.Header)
	res := h.server.Serve(r, err, func(req *receive.Request) (receive.Response, error) { return h.store(req, f) })
	res.WriteText(w)
	h.metrics.Observe(begin, &res, []string{f.message.String()})
}

// decode decodes a body, which may be compressed twice.
func decode(r *receive.Request, f form) error {
	if err := r.Decode(f.encoding); err != nil {
		return err
	}
	if f.message != protobuf || f.encoding == body.Snappy || !isBlock(r.Body) {
		return nil
	}
	return r.Decode(body.Snappy)
}

// store walks a body and pushes its lines.
func (h *Handler) store(r *receive.Request, f form) (receive.Response, error) {
	if err := decode(r, f); err != nil {
		return receive.Response{}, err
	}
	w := h.walkers.Get().(*walker)
	defer h.giveWalker(w)
	b := h.sink.Batch(r.Tenant, model.Logs)
	defer h.sink.Recycle(b)
	w.start(h.streams[f.message], r.Body, b, r.Reserve)
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

// report gives 204 if nothing is left out, and else 400, on which senders drop the request: all rows that can be
// stored are durable.
func report(left write.Rejections) receive.Response {
	if len(left) == 0 {
		return receive.Response{Status: http.StatusNoContent}
	}
	return receive.Response{Status: http.StatusBadRequest, Text: logs.Report(left)}
}

// maxPooled is the size in bytes beyond which a walker is left to the garbage collector.
const maxPooled = 1 << 20

func (h *Handler) giveWalker(w *walker) {
	if w.memory() > maxPooled {
		return
	}
	w.decoded, w.streams = nil, nil
	w.entries.Forget()
	h.walkers.Put(w)
}
