package promwrite

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/receive"
	"github.com/shaledb/shale/internal/write/replicas"
)

// takeOverFor bounds how long a request of a new leader is delayed by the requests from before its election.
// The leader's next request goes on with them.
const takeOverFor = 2 * time.Second

// spareOverhead is what a spare takes besides its body.
const spareOverhead = 256

// spare is a request of a replica that is not elected, as it was sent.
type spare struct {
	tenant string
	form   form
	body   []byte
}

// spareFor notes samples of a replica that is not elected.
func (e *election) spareFor(v *replicas.Verdict, replica []byte, times []int64) {
	if c := v.Spare; e.spare == nil {
		e.spare, e.spareReplica = c, append(e.spareReplica[:0], replica...)
	} else if e.spare != c || string(e.spareReplica) != string(replica) {
		e.mixed = true
	}
	for _, t := range times {
		e.newest = v.Reached(e.newest, t)
	}
}

// keep keeps a request whose samples are not stored, since another replica is elected. Of a request that
// mixes clusters or replicas it would not be known when to forget it.
func (e *election) keep(f form, sent []byte) {
	if e.spare == nil || e.mixed {
		return
	}
	s := spare{tenant: e.tenant, form: f, body: bytes.Clone(sent)}
	e.elector.Keep(e.spare, e.spareReplica, replicas.Spare{Request: s, Bytes: int64(cap(s.body)) + spareOverhead, Newest: e.newest})
}

// takeOver stores the requests that new leaders sent before they were elected. What cannot be stored now
// waits for the next request of the leader.
func (h *Handler) takeOver(ctx context.Context, due []*replicas.Cluster) {
	begin := time.Now()
	for _, c := range due {
		for time.Since(begin) < takeOverFor {
			if !h.takeOverOne(ctx, c) {
				break
			}
		}
	}
}

// TakeOver stores the requests that the new leader of a cluster sent before it was elected.
func (h *Handler) TakeOver(ctx context.Context, c *replicas.Cluster) {
	for ctx.Err() == nil && h.takeOverOne(ctx, c) {
	}
}

// takeOverOne stores the next request that is due, and reports whether it did.
func (h *Handler) takeOverOne(ctx context.Context, c *replicas.Cluster) bool {
	s, ok := h.elector.Due(c)
	if !ok {
		return false
	}
	if !h.storeSpare(ctx, s.Request.(spare)) {
		h.elector.PutBack(c, s)
		return false
	}
	h.elector.TookOver()
	return true
}

// storeSpare serves a request once more, and reports whether it is done with.
func (h *Handler) storeSpare(ctx context.Context, s spare) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, Path, bytes.NewReader(s.body))
	if err != nil {
		return true
	}
	r.Header.Set(model.TenantHeader, s.tenant)
	full := false
	res := h.server.Serve(r, nil, func(req *receive.Request) (res receive.Response, err error) {
		res, _, err = h.store(req, s.form, true)
		var refused *write.Refused
		full = errors.As(err, &refused) && refused.NewSeries
		return res, err
	})
	// The rows of known series are stored then, and the others would be refused again and again.
	return full || res.Status != http.StatusTooManyRequests && res.Status < http.StatusInternalServerError
}
