package promwrite

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/receive"
	"github.com/shaledb/shale/internal/write/replicas"
)

// Path is the path at which the handler is mounted.
const Path = "/api/v1/write"

// Handler serves remote write. It is safe for concurrent use.
type Handler struct {
	sink    receive.Sink
	server  *receive.Server
	elector Elector // nil: all replicas are stored
	pools   *pools
	metrics *receive.Metrics
}

// New returns a handler that stores all replicas. It registers its metrics with reg, which may be nil.
func New(sink receive.Sink, reg prometheus.Registerer) *Handler { return NewElecting(sink, nil, reg) }

// NewElecting returns a handler that stores one replica of each HA pair.
func NewElecting(sink receive.Sink, elector Elector, reg prometheus.Registerer) *Handler {
	m := newMetrics(reg)
	return &Handler{elector: elector, sink: sink, server: receive.New(sink, body.New("remote write", "samples"), forms, m), pools: newPools(), metrics: m}
}

// ServeHTTP handles one request. It responds with 204 when everything is durable, with 400, counts and
// examples when everything that can be stored is durable, and otherwise with a status that says whether
// to retry. docs/remote-write.md has the table.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	f, err := formOf(r.Header)
	var due []*replicas.Cluster
	res := h.server.Serve(r, err, func(req *receive.Request) (res receive.Response, err error) {
		res, due, err = h.store(req, f, false)
		return res, err
	})
	h.takeOver(r.Context(), due)
	writeResponse(w, &res, f.version, attemptOf(r.Header))
	h.metrics.Observe(begin, &res, []string{f.version.String()})
}

// store parses a body and pushes its rows. kept says that it was kept before its replica was elected.
// It returns the clusters of which requests are due.
func (h *Handler) store(r *receive.Request, f form, kept bool) (_ receive.Response, due []*replicas.Cluster, _ error) {
	sent := r.Body
	if err := r.Decode(f.encoding); err != nil {
		return receive.Response{}, nil, err
	}
	w := h.pools.getWalker()
	defer h.pools.putWalker(w)
	b := h.sink.Batch(r.Tenant, model.Metrics)
	defer h.sink.Recycle(b)
	w.start(f.version, r.Body, h.sink.Seed(), h.sink.Limits(r.Tenant), b, r.Reserve)
	w.election.start(h.elector, r.Tenant, kept)
	if err := w.walk(); err != nil {
		return receive.Response{}, nil, err
	}
	if why := w.election.undecided; why != "" {
		return receive.Response{}, nil, &write.Refused{Status: http.StatusServiceUnavailable, Limit: "ha.deduplicate", Text: why + "; send the request again", RetryAfter: 5 * time.Second}
	}
	if h.elector != nil {
		w.cutRepeated()
	}
	stored, left, err := r.Push(b, w.left)
	// With an error, rows of known series may be stored. A leader of which all is left out shows no life: the
	// other replica may be the one that can be stored.
	if any := stored.Total() > 0; any || err == nil && w.election.repeated.Total() > 0 {
		due = w.election.stored(any, err == nil)
	}
	if err != nil {
		return receive.Response{Stored: stored}, due, err
	}
	w.election.keep(f, sent)
	for i := range w.metadata {
		m := &w.metadata[i]
		h.sink.Metadata(r.Tenant, m.family.slice(r.Body), m.typ.word(), m.help.slice(r.Body), m.unit.slice(r.Body))
	}
	rep := report{stored: stored, other: w.election.other, repeated: w.election.repeated, left: left, empty: w.empty, emptyExample: w.emptyExample}
	return rep.response(f.version), due, nil
}
