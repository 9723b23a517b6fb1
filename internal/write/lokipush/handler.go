package lokipush

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

// Where the handler is to be mounted. JSON of either form is taken at both.
const (
	Path       = "/loki/api/v1/push"
	LegacyPath = "/api/prom/push"
)

// Sink is what the handler needs of the write path.
type Sink interface {
	Seed() model.KeySeed
	Limits() write.Limits
	Admit(ctx context.Context, tenant string, bytes int64) (*write.Grant, error)
	Batch(tenant string, s model.Signal) *model.Batch
	Recycle(b *model.Batch)
	// Push makes a batch durable; afterwards nothing refers to the batch or its Source.
	Push(ctx context.Context, b *model.Batch) (write.Result, error)
	// Rejected counts rows that were left out before they came into a batch.
	Rejected(left write.Rejections)
}

var _ Sink = (*write.Path)(nil)

// Options build a Handler.
type Options struct {
	Sink Sink
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
	sink Sink
	// streams are apart by message, since each spells labels in its own way.
	streams [messages]*logs.Streams
	codec   *body.Codec
	walkers sync.Pool
	metrics *metrics
}

// New returns a handler, to be mounted at [Path] and [LegacyPath].
func New(o Options) *Handler {
	if o.StreamCacheBytes == 0 {
		o.StreamCacheBytes = logs.StreamCacheBytes
	}
	h := &Handler{
		sink: o.Sink, codec: body.New("push", "lines"), metrics: newMetrics(o.Registerer),
	}
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
	var a answer
	f, err := formOf(r.Header)
	switch {
	case r.Method != http.MethodPost:
		a = answer{status: http.StatusMethodNotAllowed, allow: http.MethodPost, text: "lines are pushed by POST"}
	case err != nil:
		a = answerOf(err)
	default:
		a = h.serve(r, f)
	}
	a.write(w)
	h.metrics.requests.WithLabelValues(f.message.String(), strconv.Itoa(a.status)).Inc()
	h.metrics.seconds.Observe(time.Since(begin).Seconds())
}

func (h *Handler) serve(r *http.Request, f form) answer {
	tenant := r.Header.Get("X-Scope-OrgID")
	if tenant == "" {
		tenant = model.DefaultTenant
	}
	if err := write.ValidTenant(tenant); err != nil {
		return answerOf(err)
	}
	in := h.codec.Take()
	defer h.codec.Give(in)
	grant, err := h.codec.Read(r, h.sink, tenant, in, h.sink.Limits().MaxBodyBytes)
	if err != nil {
		return answerOf(err)
	}
	defer grant.Release()
	h.metrics.bodyBytes.Add(float64(len(in.Bytes)))
	out := h.codec.Take()
	defer h.codec.Give(out)
	decoded, err := h.decode(f, in, out, grant.Grow)
	if err != nil {
		return answerOf(err)
	}
	return h.store(r.Context(), tenant, f.message, decoded, grant.Grow)
}

// decode returns the message of a body, which lies in one of the two buffers.
func (h *Handler) decode(f form, in, out *body.Buffer, grow func(int64) error) ([]byte, error) {
	limit := h.sink.Limits().MaxDecodedBytes
	if f.encoding == body.Plain && (limit <= 0 || int64(len(in.Bytes)) <= limit) {
		return in.Bytes, nil
	}
	if err := h.codec.Decode(f.encoding, in.Bytes, out, limit, grow); err != nil {
		return nil, err
	}
	if f.message != protobuf || f.encoding == body.Snappy || !isBlock(out.Bytes) {
		return out.Bytes, nil
	}
	if err := h.codec.Decode(body.Snappy, out.Bytes, in, limit, grow); err != nil { // the body itself is needed no more
		return nil, err
	}
	return in.Bytes, nil
}

// store walks a decoded body and pushes its lines.
func (h *Handler) store(ctx context.Context, tenant string, m message, decoded []byte, grow func(int64) error) answer {
	w := h.walkers.Get().(*walker)
	defer h.giveWalker(w)
	b := h.sink.Batch(tenant, model.Logs)
	defer h.sink.Recycle(b)
	w.start(h.streams[m], decoded, b, grow)
	if err := w.walk(m); err != nil {
		return answerOf(err)
	}
	if w.found == 0 {
		return answer{status: http.StatusUnprocessableEntity, text: "error at least one valid stream is required for ingestion"}
	}
	res, err := h.sink.Push(ctx, b)
	h.metrics.lines.Add(float64(res.ByKind.Lines))
	if err != nil {
		return answerOf(err)
	}
	left := w.entries.Left
	h.sink.Rejected(left)
	left.Merge(res.Rejected)
	return report(left)
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
