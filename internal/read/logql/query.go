package logql

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/syntax"
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
	Limit int
	// Ties, if it is greater than Limit, adds lines that have the time of the last line within Limit, up to as
	// many lines together. It has no effect with an Interval, which leaves one line of a time.
	Ties      int
	Direction Direction
	// Interval, if positive, is how many nanoseconds entries of the answer are apart at least, whatever their
	// streams.
	Interval int64
	// Categorize gathers lines by the labels of their streams only.
	Categorize bool
	// Quota bounds the query and Cost tells what it read. Entries stay charged until the quota is released.
	Quota *model.Quota
	Cost  *model.Cost
}

// Lines answers a query for lines: the first ones from the end of the range that the direction says. Its
// errors are of the classes of package model; those of class invalid have Loki's texts.
func (e *Engine) Lines(ctx context.Context, q *Query) (*Lines, error) {
	began := e.now()
	if !q.Prepared.WantsLines() {
		return nil, ErrMetric
	}
	x := e.execution(q)
	before := costsOf(x.Cost)
	if r, ok := rangeOf(q.Start, q.End); ok {
		if err := e.read.TakeRange(q.Tenants, model.Logs, r, q.Quota); err != nil {
			return nil, err
		}
		if err := x.FilterMetadata(ctx, r); err != nil {
			return nil, err
		}
	}
	all, err := entries(ctx, x, q, nil)
	if err != nil {
		return nil, err
	}
	r := &Lines{Streams: gather(all, q.Tenants, q.Categorize)}
	r.Stats.add(x.Figures())
	r.Stats.addCosts(costsOf(x.Cost), before)
	r.Stats.Entries = int64(len(all))
	r.Stats.Exec = e.now().Sub(began)
	r.Filtered = r.Stats.Passed
	return r, nil
}

func (e *Engine) execution(q *Query) *selection.Execution {
	p := selection.Plan{Direction: q.Direction, Program: q.Prepared.program, Quota: q.Quota, Cost: q.Cost}
	if p.Quota == nil {
		p.Quota = new(model.Quota)
	}
	if p.Cost == nil {
		p.Cost = new(model.Cost)
	}
	if p.Cost.Bill != nil && q.Limit > 0 {
		p.Cost.Bill.EndEarly()
	}
	return e.selects(p, q.Prepared.log, q.Tenants)
}

// selects completes a plan by what a query selects of its tenants.
func (e *Engine) selects(p selection.Plan, q *syntax.LogQuery, tenants []string) *selection.Execution {
	p.Read, p.Workers, p.Now = e.read, e.workers, e.now().UnixNano()
	chosen, matchers := selectors(q.Matchers, tenants)
	for i, t := range tenants {
		if !slices.Contains(chosen, t) {
			continue
		}
		p.Requests = append(p.Requests, model.Request{
			Tenant: t, Signal: model.Logs, Family: model.Text, Matchers: matchers, TextFilter: p.Program.TextFilter,
			Quota: p.Quota, Cost: p.Cost,
		})
		p.Tenants = append(p.Tenants, int32(i))
	}
	return selection.New(p)
}

// entries returns the entries of the result in their order, with sums if there are seeds.
func entries(ctx context.Context, x *selection.Execution, q *Query, seeds *[2]maphash.Seed) ([]found, error) {
	left, ok := rangeOf(q.Start, q.End)
	if !ok {
		return nil, nil
	}
	if q.Interval <= 0 {
		t := newTop(q.Direction, q.Limit, x.Quota, seeds)
		err := x.Scan(ctx, left, t)
		all := t.take()
		if err == nil && q.Limit > 0 && q.Ties > q.Limit && len(all) == q.Limit {
			return withTies(ctx, x, q, all)
		}
		return all, err
	}
	return thinned(ctx, x, q, left)
}

// withTies replaces the entries of the last time by the lines of that time, as many as Ties allows.
func withTies(ctx context.Context, x *selection.Execution, q *Query, all []found) ([]found, error) {
	last := all[len(all)-1].time
	kept := all[:slices.IndexFunc(all, func(f found) bool { return f.time == last })]
	for i := range all[len(kept):] {
		// Giving back does not fail.
		_ = x.Quota.TakeBytes(-int64(len(all[len(kept)+i].bytes)) - foundBytes)
	}
	t := newTop(q.Direction, q.Ties-len(kept), x.Quota, nil)
	err := x.Scan(ctx, model.TimeRange{Min: last, Max: last}, t)
	return append(kept, t.take()...), err
}

// rangeOf returns the closed range of the times from start to before end, and whether there is one.
func rangeOf(start, end int64) (model.TimeRange, bool) {
	if end <= start {
		return model.TimeRange{}, false
	}
	return model.TimeRange{Min: start, Max: end - 1}, true
}

// Direction says from which end of the range lines are wanted.
type Direction = selection.Direction

// The directions, in Loki's words: backward is the newest first.
const (
	Backward = selection.Backward
	Forward  = selection.Forward
)
