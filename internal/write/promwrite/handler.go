package promwrite

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/receive"
)

// Path is where the handler is to be mounted.
const Path = "/api/v1/write"

// Handler is the endpoint of remote write. It is safe for concurrent use.
type Handler struct {
	sink    receive.Sink
	server  *receive.Server
	pools   *pools
	metrics *receive.Metrics
}

// New returns a handler whose metrics go to reg, which may be nil.
func New(sink receive.Sink, reg prometheus.Registerer) *Handler {
	m := newMetrics(reg)
	return &Handler{sink: sink, server: receive.New(sink, body.New("remote write", "samples"), m), pools: newPools(), metrics: m}
}

// ServeHTTP takes one request: 204 when all of it is durable; 400 with counts and culprits when some samples can never
// be stored, and all others are durable; otherwise a status that says whether to send it again. docs/remote-write.md has
// the table.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	f, err := formOf(r.Header)
	res := h.server.Serve(r, err, func(req *receive.Request) (receive.Response, error) { return h.store(req, f) })
	writeResponse(w, &res, f.version, attemptOf(r.Header))
	h.metrics.Observe(begin, &res, []string{f.version.String()})
}

// store walks a body and pushes its rows.
func (h *Handler) store(r *receive.Request, f form) (receive.Response, error) {
	if err := r.Decode(f.encoding); err != nil {
		return receive.Response{}, err
	}
	w := h.pools.takeWalker()
	defer h.pools.giveWalker(w)
	b := h.sink.Batch(r.Tenant, model.Metrics)
	defer h.sink.Recycle(b)
	w.start(f.version, r.Body, h.sink.Seed(), h.sink.Limits(), b, r.Reserve)
	if err := w.walk(); err != nil {
		return receive.Response{}, err
	}
	stored, left, err := r.Push(b, w.left)
	if err != nil {
		return receive.Response{Stored: stored}, err
	}
	for i := range w.metadata {
		m := &w.metadata[i]
		h.sink.Metadata(r.Tenant, m.family.of(r.Body), m.typ.word(), m.help.of(r.Body), m.unit.of(r.Body))
	}
	rep := report{stored: stored, left: left, empty: w.empty, emptyExample: w.emptyExample}
	return rep.response(f.version), nil
}
