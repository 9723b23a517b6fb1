package read

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Options configure a Querier.
type Options struct {
	// Sources are asked in this order. Rows move from earlier sources to later ones (head, then archive), so
	// this order ensures that a query does not miss rows that move while it runs.
	Sources []Source
	// Retention hides older rows; 0 shows all.
	Retention time.Duration
	// Warn adds to the cost of a request what the sources lack of its range; nil: nothing.
	Warn func(*model.Request)
	// Now returns the time in Unix nanoseconds; nil means the machine's clock.
	Now        func() int64
	Registerer prometheus.Registerer
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
	r, ok := q.bound(req)
	if r.Signal == model.Logs {
		r.Family, r.LabelsOnly = model.Text, true
	}
	if !ok {
		return newSeriesSet(&r, nil, q.metrics), nil
	}
	if r.Cost.Bill != nil {
		return q.billSelect(ctx, &r)
	}
	var cursors []model.Cursor
	for _, src := range q.o.Sources {
		cs, err := src.Select(ctx, &r)
		cursors = append(cursors, cs...)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("select: %w", err), closeAll(cursors))
		}
	}
	return newSeriesSet(&r, cursors, q.metrics), nil
}

// bound returns a copy of the request with its range cut at the horizon of retention and its family, quota
// and cost set. It reports whether the range still holds an instant.
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
	if q.o.Retention > 0 {
		now := q.o.Now()
		if horizon := now - int64(q.o.Retention); horizon <= now {
			r.Range.Min = max(r.Range.Min, horizon)
		}
	}
	q.o.Warn(&r)
	return r, r.Range.Min <= r.Range.Max
}
