package read

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Options configure a Querier.
type Options struct {
	// Sources are asked in this order. Rows move from earlier sources to later ones (head, then archive), so
	// this order ensures that a query does not miss rows that move while it runs.
	Sources []Source
	// Horizon returns the time before which rows of a tenant and a signal are hidden, and what hides more of
	// some of its series; nil: nothing is hidden.
	Horizon func(tenant string, s model.Signal, now int64) (oldest int64, h *model.Horizon)
	// Warn adds to the cost of a request what the sources lack of its range; nil: nothing. It is called after
	// the sources: what they have gone past is known then.
	Warn func(*model.Request)
	// Asked is told what queries ask for of metrics; nil: nothing.
	Asked Asked
	// Now returns the time in Unix nanoseconds; nil means the machine's clock.
	Now        func() int64
	Registerer prometheus.Registerer
}

// Asked is told what queries ask for. It is safe for concurrent use, and keeps neither slices nor strings.
type Asked interface {
	// Selected is told the matchers of a selector.
	Selected(tenant string, ms []model.Matcher)
	// Named is told labels that a query names besides.
	Named(tenant string, labels ...string)
}

// Querier reads from all sources and merges their series. It is safe for concurrent use and keeps nothing
// between queries.
type Querier struct {
	o       Options
	metrics *metrics
}

// New returns a Querier.
func New(o Options) *Querier {
	if o.Warn == nil {
		o.Warn = func(*model.Request) {}
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	return &Querier{o: o, metrics: newMetrics(o.Registerer)}
}

// Select returns the series that satisfy the request, in key order. It does not keep the request. The
// caller closes the set; on an error there is no set and nothing stays open. Series of logs come without
// rows: SelectText returns their lines.
func (q *Querier) Select(ctx context.Context, req *model.Request) (*SeriesSet, error) {
	q.asks(req)
	return q.selectSeries(ctx, req)
}

// asks notes what a request asks for.
func (q *Querier) asks(req *model.Request) {
	if q.o.Asked != nil && req.Signal == model.Metrics {
		q.o.Asked.Selected(req.Tenant, req.Matchers)
	}
}

// selectSeries is Select without a note of it.
func (q *Querier) selectSeries(ctx context.Context, req *model.Request) (*SeriesSet, error) {
	r, ok := q.bound(req)
	r.Cost.Reach.AddRows(r.Signal, r.Range)
	if r.Signal == model.Logs {
		r.Family, r.LabelsOnly = model.Text, true
	}
	if !ok {
		return newSeriesSet(&r, nil, q.metrics), nil
	}
	if err := q.takeRange(&r); err != nil {
		return nil, err
	}
	if r.Cost.Bill != nil {
		return q.billSelect(ctx, &r)
	}
	var cursors []model.Cursor
	for _, src := range q.o.Sources {
		cs, err := selectSteps(ctx, src, &r)
		cursors = append(cursors, cs...)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("select: %w", err), closeAll(cursors))
		}
	}
	q.o.Warn(&r)
	return newSeriesSet(&r, cursors, q.metrics), nil
}

// bound returns a copy of the request with its range cut by retention, and its horizon, family, quota and
// cost set. It reports whether the range still holds an instant.
func (q *Querier) bound(req *model.Request) (model.Request, bool) {
	r := *req
	if r.Family == 0 {
		r.Family = model.Samples
	}
	if r.Quota == nil {
		r.Quota = new(model.Quota)
	}
	if r.Cost == nil {
		r.Cost = new(model.Cost)
	}
	now := q.o.Now()
	oldest, h := q.horizon(r.Tenant, r.Signal, now)
	if r.Rollup != nil {
		oldest, h = math.MinInt64, nil
	}
	r.Cost.Reach.Bound(holdsUntil(now, r.Range.Min, oldest, h))
	if r.Range.Min = max(r.Range.Min, oldest); h.MayHide(r.Range.Min) {
		r.Horizon = h
	}
	return r, r.Range.Min <= r.Range.Max
}

// takeRange checks the time that a query covers. Nothing was stored after now, except by clocks that are
// ahead.
func (q *Querier) takeRange(r *model.Request) error {
	if r.LabelsOnly {
		return nil
	}
	return r.Quota.TakeRange(model.TimeRange{Min: r.Range.Min, Max: min(r.Range.Max, q.o.Now())})
}

// TakeRange is for a caller that will read the rows of a range a part at a time, and may stop before its
// end: it notes the whole range, as of tenants. Its error is that of [model.Quota.TakeRange].
func (q *Querier) TakeRange(tenants []string, s model.Signal, r model.TimeRange, quota *model.Quota) error {
	if quota == nil || quota.MaxRange <= 0 {
		return nil
	}
	now := q.o.Now()
	for _, tenant := range tenants {
		oldest, _ := q.horizon(tenant, s, now)
		if err := quota.TakeRange(model.TimeRange{Min: max(r.Min, oldest), Max: min(r.Max, now)}); err != nil {
			return err
		}
	}
	return nil
}

// Kept is for a caller that has kept results and does not read the rows. It adds to the cost of the request
// what reading them would have added: what the response depends on, and what it may lack. It returns the
// error that reading them would have met at once.
func (q *Querier) Kept(req *model.Request) error {
	q.asks(req)
	r, ok := q.bound(req)
	r.Cost.Reach.AddRows(r.Signal, r.Range)
	if !ok {
		return nil
	}
	for _, src := range q.o.Sources {
		if k, ok := src.(Keeper); ok {
			k.Kept(&r)
		}
	}
	q.o.Warn(&r)
	return q.takeRange(&r)
}

// Horizon returns the time before which rows of a tenant are hidden now, and what hides more of some of its
// series.
func (q *Querier) Horizon(tenant string, s model.Signal) (oldest int64, h *model.Horizon) {
	return q.horizon(tenant, s, q.o.Now())
}

func (q *Querier) horizon(tenant string, s model.Signal, now int64) (oldest int64, h *model.Horizon) {
	if q.o.Horizon == nil {
		return math.MinInt64, nil
	}
	return q.o.Horizon(tenant, s, now)
}

// holdsUntil returns the time at which retention begins to hide rows from a time on. The horizon moves as
// fast as the clock. If it is there already, each instant has another response.
func holdsUntil(now, from, oldest int64, h *model.Horizon) int64 {
	if h != nil {
		oldest = h.Latest
	}
	switch {
	case oldest == math.MinInt64:
		return math.MaxInt64
	case from < oldest:
		return math.MinInt64
	case from-oldest < 0 || now > math.MaxInt64-(from-oldest): // beyond int64
		return math.MaxInt64
	}
	return now + (from - oldest)
}
