package logql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/results"
)

// leastKept is the shortest range, in nanoseconds, whose volumes are kept. Over 10 GB of a week, an hour's
// volumes cost twice as much with kept intervals as counted whole, because a count reads the same index for
// few intervals as for all of them. From a few hours on, most chunks lie within the kept intervals.
const leastKept = int64(4 * time.Hour)

// open looks for kept volumes. A step of the run is an interval between two cuts: step i is interval i+1. Of
// the first and the last interval, which the range cuts, nothing is kept. It returns nil if all intervals are
// computed.
func (g *volumeGroups) open(ctx context.Context, e *Engine, sel *Selection) *results.Run {
	q := g.q
	if e.results == nil || q.Cost == nil || q.Cost.Fresh || q.Cost.Bill != nil || len(q.Cuts) < 3 || q.Range.Max-q.Range.Min < leastKept {
		return nil
	}
	var matchers []*syntax.Matcher
	if len(sel.Selectors) > 0 {
		matchers = sel.Selectors[0].matchers
	}
	step := q.Cuts[1] - q.Cuts[0]
	return e.results.Open(ctx, &results.Leaf{
		Tenants: q.Tenants, Signal: model.Logs, After: step - 1, LeastSteps: 1,
		Text: fmt.Sprintf("volume %v %q %v %v", &syntax.LogQuery{Matchers: matchers}, q.Targets, q.ByName, g.all),
	}, results.Steps{Start: q.Cuts[0], Step: step, Count: len(q.Cuts) - 1}, q.Cost.QueryID())
}

// gather counts the streams of all intervals, except for those that are kept.
func (g *volumeGroups) gather(ctx context.Context, e *Engine, sel *Selection) error {
	run := g.open(ctx, e, sel)
	if run == nil {
		return g.count(ctx, e, sel, 0, len(g.q.Cuts))
	}
	from := 0 // the first interval that has to be counted
	for i := range run.Pieces {
		p := &run.Pieces[i]
		if p.Value == nil {
			continue
		}
		if from <= p.From {
			if err := g.count(ctx, e, sel, from, p.From); err != nil {
				return err
			}
		}
		from = p.To + 1
		if err := g.addKept(p.Value.(*vector.Matrix), p.At, p.To-p.From, p.From+1); err != nil {
			return err
		}
	}
	if err := g.count(ctx, e, sel, from, len(g.q.Cuts)); err != nil {
		return err
	}
	g.keep(run)
	for _, tenant := range g.q.Tenants {
		if err := e.read.Kept(&model.Request{
			Tenant: tenant, Signal: model.Logs, Family: model.Text, Range: g.q.Range, Quota: g.q.Quota, Cost: g.q.Cost,
		}); err != nil {
			return err
		}
	}
	return nil
}

// count counts the streams of the intervals from one to another one.
func (g *volumeGroups) count(ctx context.Context, e *Engine, sel *Selection, first, last int) error {
	part := *sel
	if first > 0 {
		part.Range.Min = g.q.Cuts[first-1]
	}
	if last < len(g.q.Cuts) {
		part.Range.Max = g.q.Cuts[last] - 1
	}
	g.from = first
	cuts := g.q.Cuts[first:last]
	cells := cellsOf(cuts)
	if !g.all {
		cells.Grouped, cells.Labels = true, slices.Sorted(maps.Keys(g.names))
	}
	return e.volumes(ctx, &part, cells, cuts, g.add)
}

// addKept adds n kept intervals, from step at of them on. The first of them is interval from.
func (g *volumeGroups) addKept(m *vector.Matrix, at, n, from int) error {
	for i := range m.Series {
		s := &m.Series[i]
		var group *VolumeGroup
		for step := range n {
			if !s.Present.Has(at + step) {
				continue
			}
			if group == nil {
				var err error
				if group, err = g.group(s.Labels); err != nil {
					return err
				}
			}
			group.Values[from+step] = s.Values[at+step]
			group.Present.Add(from + step)
		}
	}
	return nil
}

// keep keeps what was counted.
func (g *volumeGroups) keep(run *results.Run) {
	all := &vector.Matrix{Steps: vector.Steps{Count: len(g.q.Cuts) + 1}}
	for _, group := range g.groups {
		all.Series = append(all.Series, group.Series)
	}
	if all.Size() > run.MaxBytes() {
		run.Refuse()
		return
	}
	for i := range run.Pieces {
		run.Keep(&run.Pieces[i], func(from, to int) (any, int64) {
			part := all.Cut(from+1, to-from)
			return part, part.Size()
		})
	}
}
