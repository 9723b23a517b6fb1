package graphite

import (
	"errors"
	"slices"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/graphite/policy"
)

// errConflict says that a slot has a rollup and points.
var errConflict = errors.New("a slot has a rollup and points")

// lateWarning is for values that were made of a rollup and of points that came after it.
const lateWarning = "points came late for slots whose other points are gone; a point that came again counts twice"

// read returns the series of a selection that have rows, given the names that are known of it. Names whose
// windows are best read from the same rollups are read together.
func (l *layout) read(s selection, known map[string]map[string]string) ([]fetched, error) {
	groups := make(map[int64]map[string]map[string]string)
	for name := range known {
		p, err := l.plan(name)
		if err != nil {
			return nil, err
		}
		if p.kept && groups[p.rollup] == nil {
			groups[p.rollup] = make(map[string]map[string]string)
		}
		if p.kept {
			groups[p.rollup][name] = nil
		}
	}
	var all []fetched
	for _, step := range sortedSteps(groups) {
		names := groups[step]
		within, err := l.span(names)
		if err != nil {
			return nil, err
		}
		one := s
		if s.glob != "" && len(groups) > 1 {
			one.matchers = []model.Matcher{namesMatcher(s.glob, sortedKeys(names))}
		}
		found, err := l.group(one, within, step)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func sortedSteps[V any](groups map[int64]V) []int64 {
	steps := make([]int64, 0, len(groups))
	for step := range groups {
		steps = append(steps, step)
	}
	slices.Sort(steps)
	return steps
}

// group reads the names of a group: from rollups if it can, and once more from the rows where points have
// come since the rollups were made. Each reading sees one state of the store.
func (l *layout) group(s selection, within model.TimeRange, step int64) ([]fetched, error) {
	if step == 0 {
		return l.rows(s, within, step, nil)
	}
	before := l.q.Quota.Charged()
	want := &model.RollupRequest{Step: step * nanosPerSecond, Policies: l.rollups}
	found, err := l.rows(s, within, step, want)
	if !errors.Is(err, errConflict) {
		return found, err
	}
	l.q.Quota.Revert(before)
	want.Raw = true
	return l.rows(s, within, step, want)
}

// rowsPool holds rows of a series between renders: a year of them has megabytes.
var rowsPool = sync.Pool{New: func() any { return new(model.Rows) }}

// mostKept is the most bytes of values and of times that a kept set of rows has.
const mostKept = 8 << 20

func keepRows(rows *model.Rows) {
	if cap(rows.Bytes) <= mostKept && 8*cap(rows.Times) <= mostKept {
		rowsPool.Put(rows)
	}
}

// rows returns the series of a selection that have rows in a range and are read from rollups of a step.
func (l *layout) rows(s selection, within model.TimeRange, step int64, rollup *model.RollupRequest) ([]fetched, error) {
	var all []fetched
	rows := rowsPool.Get().(*model.Rows)
	defer keepRows(rows)
	err := l.walk(l.w, s, within, false, rollup, func(set *read.SeriesSet) error {
		name, tags := nameOf(set.Labels())
		p, err := l.plan(name)
		if err != nil {
			return err
		}
		rows.Reset()
		if p.rollup == step {
			if err := set.AppendRows(l.w, rows); err != nil {
				return err
			}
		}
		if rows.Len() == 0 {
			return l.q.Quota.TakeBytes(-set.Charged())
		}
		if rollup != nil && policy.Conflicts(rows) {
			if !rollup.Raw {
				return errConflict
			}
			l.q.Cost.Warnings.Add(lateWarning)
		}
		return l.add(&all, name, tags, rows)
	})
	return all, err
}
