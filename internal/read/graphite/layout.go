package graphite

import (
	"fmt"
	"math"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// layout puts the rows of one window on the grids of their names.
type layout struct {
	*run
	w     *function.Window
	now   int64
	plans map[string]*plan
}

// plan is the grid of a name.
type plan struct {
	policy policy.Policy
	window policy.Window
	kept   bool  // the name has an archive for the window
	rollup int64 // the step of the rollups that the window is read from, in seconds; 0: none
}

// maxPoints bounds a series: the values of 30 years at one a minute.
const maxPoints = 1 << 24

// plan returns the grid of a name.
func (l *layout) plan(name string) (*plan, error) {
	if p := l.plans[name]; p != nil {
		return p, nil
	}
	p := new(plan)
	var err error
	if p.policy, err = l.policy(name); err != nil {
		return nil, err
	}
	p.window, p.kept = p.policy.Window(l.w.From, l.w.Until, l.now)
	if p.kept && p.window.Len() > maxPoints {
		return nil, fmt.Errorf("%w: the window has %d values of %s, more than %d", model.ErrInvalid, p.window.Len(), name, maxPoints)
	}
	if p.kept && l.rollups != "" {
		p.rollup = p.policy.RollupStep(p.window)
	}
	l.plans[name] = p
	return p, nil
}

// span returns the times of the rows that the grids of some names need.
func (l *layout) span(names map[string]map[string]string) (model.TimeRange, error) {
	span := model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	for name := range names {
		p, err := l.plan(name)
		if err != nil {
			return span, err
		}
		if p.kept {
			r := p.window.Range()
			span.Min, span.Max = min(span.Min, r.Min), max(span.Max, r.Max)
		}
	}
	return span, nil
}

// add lays out the rows of a name, unless none of its archives reaches back to the window.
func (l *layout) add(all *[]fetched, name string, tags map[string]string, rows *model.Rows) error {
	p, err := l.plan(name)
	if err != nil || !p.kept {
		return err
	}
	n := p.window.Len()
	if err := l.charge(int64(n)); err != nil {
		return err
	}
	values := p.policy.Slots(p.window, p.policy.OneStep(p.window, cut(rows, p.window.Range())), make([]float64, 0, n))
	for i, v := range values {
		if math.IsNaN(v) {
			values[i] = series.Null()
		}
	}
	*all = append(*all, fetched{name: name, tags: tags, start: p.window.First, end: p.window.End, step: p.window.Step, values: values})
	return nil
}

// cut returns the rows in a range.
func cut(rows *model.Rows, within model.TimeRange) *model.Rows {
	from := sort.Search(rows.Len(), func(i int) bool { return rows.Times[i] >= within.Min })
	to := max(from, sort.Search(rows.Len(), func(i int) bool { return rows.Times[i] > within.Max }))
	if from == 0 && to == rows.Len() {
		return rows
	}
	c := &model.Rows{Times: rows.Times[from:to], Values: rows.Values[from:to], Bytes: rows.Bytes}
	if len(rows.Starts) > 0 {
		c.Starts = rows.Starts[from:to]
	}
	if len(rows.Kinds) > 0 {
		c.Kinds = rows.Kinds[from:to]
	}
	return c
}
