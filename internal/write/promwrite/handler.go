package promwrite

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
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
	Discard(reason string, samples int)
}

var _ Sink = (*write.Path)(nil)

// Handler is the endpoint of remote write. It is safe for concurrent use.
type Handler struct {
	sink    Sink
	pools   *pools
	metrics *metrics
}

// New returns a handler whose metrics go to reg, which may be nil.
func New(sink Sink, reg prometheus.Registerer) *Handler {
	return &Handler{sink: sink, pools: newPools(), metrics: newMetrics(reg)}
}

// ServeHTTP takes one request: 204 when all of it is durable; 400 with counts and culprits when some samples can never
// be stored, and all others are durable; otherwise a status that says whether to send it again.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	a := h.serve(r)
	a.write(w)
	h.metrics.requests.WithLabelValues(strconv.Itoa(a.status)).Inc()
	h.metrics.seconds.Observe(time.Since(begin).Seconds())
}

func (h *Handler) serve(r *http.Request) answer {
	if r.Method != http.MethodPost {
		return answer{status: http.StatusMethodNotAllowed, allow: http.MethodPost, text: "remote write is sent by POST"}
	}
	if a, ok := checkForm(r.Header); !ok {
		return a
	}
	tenant := r.Header.Get("X-Scope-OrgID")
	if tenant == "" {
		tenant = model.DefaultTenant
	}
	if err := write.ValidTenant(tenant); err != nil {
		return answerOf(err)
	}
	limits := h.sink.Limits()
	if limits.MaxBodyBytes <= 0 || limits.MaxBodyBytes > maxDecoded {
		limits.MaxBodyBytes = maxDecoded
	}
	if r.ContentLength > limits.MaxBodyBytes {
		return answerOf(tooLarge("body", r.ContentLength, "limits.body-bytes", limits.MaxBodyBytes))
	}
	grant, err := h.sink.Admit(r.Context(), tenant, max(r.ContentLength, 0))
	if err != nil {
		return answerOf(err)
	}
	defer grant.Release()

	in := h.pools.takeBuffer()
	defer h.pools.giveBuffer(in)
	if err := readBody(r, in, limits.MaxBodyBytes, grant.Grow); err != nil {
		return answerOf(err)
	}
	h.metrics.bodyBytes.Add(float64(len(in.bytes)))
	out := h.pools.takeBuffer()
	defer h.pools.giveBuffer(out)
	if err := decode(in.bytes, out, limits.MaxDecodedBytes, grant.Grow); err != nil {
		return answerOf(err)
	}
	return h.store(r.Context(), tenant, out.bytes, grant.Grow)
}

// store walks a decoded body and pushes its rows.
func (h *Handler) store(ctx context.Context, tenant string, decoded []byte, grow func(int64) error) answer {
	w := h.pools.takeWalker()
	defer h.pools.giveWalker(w)
	b := h.sink.Batch(tenant, model.Metrics)
	defer h.sink.Recycle(b)
	w.start(decoded, h.sink.Seed(), b, grow)
	if err := w.walk(); err != nil {
		return answerOf(err)
	}
	h.metrics.exemplars.Add(float64(w.exemplars))
	res, err := h.sink.Push(ctx, b)
	if err != nil {
		return answerOf(err)
	}
	h.metrics.samples.Add(float64(res.Stored))
	for i := range w.left {
		h.sink.Discard(w.left[i].Reason, w.left[i].Samples)
	}
	if left := append(w.left, res.Rejected...); len(left) > 0 {
		return leftOut(res.Stored, left)
	}
	return answer{status: http.StatusNoContent}
}

// answerOf turns the error of a request into its answer. What is not known to be the sender's fault is a 503, which
// senders repeat.
func answerOf(err error) answer {
	var r *write.Refused
	switch {
	case errors.As(err, &r):
		return answer{status: r.Status, text: r.Error(), retryAfter: r.RetryAfter}
	case errors.Is(err, model.ErrInvalid):
		return answer{status: http.StatusBadRequest, text: err.Error()}
	}
	return answer{status: http.StatusServiceUnavailable, text: err.Error(), retryAfter: 5 * time.Second}
}
