package logql

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Query is a query for lines.
type Query struct {
	// Tenants are whose lines are wanted, each once. If there are several, labels say whose a line is.
	Tenants []string
	// Prepared is a query for lines.
	Prepared *Prepared
	// Start is the first time that counts, End the first that does not any more, in Unix nanoseconds.
	Start, End int64
	// Limit bounds the entries of the answer; 0: only its memory does.
	Limit     int
	Direction Direction
	// Interval, if positive, is how many nanoseconds entries of the answer are apart at least, whatever their streams.
	Interval int64
	// Categorize gathers lines by the labels of their streams only.
	Categorize bool
	// Quota bounds the query and Cost tells what it read. Entries stay charged until the quota is released.
	Quota *model.Quota
	Cost  *model.Cost
}

// Lines answers a query for lines: the first ones from the end of the range that the direction says. Its errors are of the
// classes of package model; those of class invalid have Loki's texts.
func (e *Engine) Lines(ctx context.Context, q *Query) (*Lines, error) {
	began := e.now()
	if !q.Prepared.WantsLines() {
		return nil, ErrMetric
	}
	x := e.execution(q)
	before := costsOf(x.cost)
	if r, ok := rangeOf(q.Start, q.End); ok {
		if err := x.filterMetadata(ctx, e, r); err != nil {
			return nil, err
		}
	}
	entries, err := x.entries(ctx, q)
	if err != nil {
		return nil, err
	}
	r := &Lines{Streams: gather(entries, q.Tenants, q.Categorize)}
	r.Stats.fill(x, before)
	r.Stats.Entries = int64(len(entries))
	r.Stats.Exec = e.now().Sub(began)
	r.Filtered = r.Stats.Passed
	return r, nil
}

func (e *Engine) execution(q *Query) *execution {
	p := q.Prepared.program
	x := &execution{
		selectText: e.selectText, direction: q.Direction, program: p, workers: e.workers, now: e.now().UnixNano(),
		mergeBytes: defaultMergeBytes,
		filtered:   p.textFilter != nil,
		quota:      q.Quota, cost: q.Cost,
	}
	if x.quota == nil {
		x.quota = new(model.Quota)
	}
	if x.cost == nil {
		x.cost = new(model.Cost)
	}
	x.portionBytes = portionOf(x.quota)
	chosen, matchers := selectors(q.Prepared.log.Matchers, q.Tenants)
	for i, t := range q.Tenants {
		if !slices.Contains(chosen, t) {
			continue
		}
		x.requests = append(x.requests, model.Request{
			Tenant: t, Signal: model.Logs, Family: model.Text, Matchers: matchers, TextFilter: p.textFilter,
			Quota: x.quota, Cost: x.cost,
		})
		x.tenants = append(x.tenants, int32(i))
	}
	return x
}

// entries returns the entries of the answer in their order.
func (x *execution) entries(ctx context.Context, q *Query) ([]found, error) {
	left, ok := rangeOf(q.Start, q.End)
	if !ok {
		return nil, nil
	}
	if q.Interval <= 0 {
		x.top = newTop(q.Direction, q.Limit, x.quota)
		err := x.run(ctx, left)
		return x.top.take(), err
	}
	return x.thinned(ctx, q, left)
}

// rangeOf returns the closed range of the times from start to before end, and whether there is one.
func rangeOf(start, end int64) (model.TimeRange, bool) {
	if end <= start {
		return model.TimeRange{}, false
	}
	return model.TimeRange{Min: start, Max: end - 1}, true
}
