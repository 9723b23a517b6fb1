package promwrite

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	bodies "github.com/shaledb/shale/internal/write/body"
)

// Path is where the handler is to be mounted.
const Path = "/api/v1/write"

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
	// Metadata takes what is told of a metric family. It keeps none of the slices.
	Metadata(tenant string, family []byte, typ string, help, unit []byte)
}

var _ Sink = (*write.Path)(nil)

// Handler is the endpoint of remote write. It is safe for concurrent use.
type Handler struct {
	sink    Sink
	codec   *bodies.Codec
	pools   *pools
	metrics *metrics
}

// New returns a handler whose metrics go to reg, which may be nil.
func New(sink Sink, reg prometheus.Registerer) *Handler {
	return &Handler{sink: sink, codec: bodies.New("remote write", "samples"), pools: newPools(), metrics: newMetrics(reg)}
}

// ServeHTTP takes one request: 204 when all of it is durable; 400 with counts and culprits when some samples can never
// be stored, and all others are durable; otherwise a status that says whether to send it again. docs/remote-write.md has
// the table.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	f, a, ok := formOf(r.Header)
	switch {
	case r.Method != http.MethodPost:
		a = answer{status: http.StatusMethodNotAllowed, allow: http.MethodPost, text: "remote write is sent by POST"}
	case ok:
		a = h.serve(r, f)
	}
	a.write(w, f.version, attemptOf(r.Header))
	h.metrics.requests.WithLabelValues(f.version.String(), strconv.Itoa(a.status)).Inc()
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
	limits := h.sink.Limits()
	in := h.codec.Take()
	defer h.codec.Give(in)
	grant, err := h.codec.Read(r, h.sink, tenant, in, limits.MaxBodyBytes)
	if err != nil {
		return answerOf(err)
	}
	defer grant.Release()
	h.metrics.bodyBytes.Add(float64(len(in.Bytes)))
	out := h.codec.Take()
	defer h.codec.Give(out)
	if err := h.codec.Decode(f.encoding, in.Bytes, out, limits.MaxDecodedBytes, grant.Grow); err != nil {
		return answerOf(err)
	}
	return h.store(r.Context(), tenant, f.version, out.Bytes, grant.Grow)
}

// store walks a decoded body and pushes its rows.
func (h *Handler) store(ctx context.Context, tenant string, v version, decoded []byte, grow func(int64) error) answer {
	w := h.pools.takeWalker()
	defer h.pools.giveWalker(w)
	b := h.sink.Batch(tenant, model.Metrics)
	defer h.sink.Recycle(b)
	w.start(v, decoded, h.sink.Seed(), h.sink.Limits(), b, grow)
	if err := w.walk(); err != nil {
		return answerOf(err)
	}
	res, err := h.sink.Push(ctx, b)
	h.metrics.samples.Add(float64(res.ByKind.Samples + res.ByKind.Histograms))
	h.metrics.exemplars.Add(float64(res.ByKind.Exemplars))
	if err != nil {
		a := answerOf(err)
		a.written = res.ByKind
		return a
	}
	for i := range w.metadata {
		m := &w.metadata[i]
		h.sink.Metadata(tenant, m.family.of(decoded), m.typ.word(), m.help.of(decoded), m.unit.of(decoded))
	}
	h.sink.Rejected(w.left)
	w.left.Merge(res.Rejected)
	rep := report{stored: res.ByKind, left: w.left, empty: w.empty, emptyExample: w.emptyExample}
	return rep.answer(v)
}
