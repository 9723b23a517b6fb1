package promql

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/slots"
)

// seriesSet reads each series whole when it is reached. The engine expands a set before it looks at any
// sample, so reading later would save nothing. Like upstream, it leaves out a series without a row in
// range.
type seriesSet struct {
	ctx        context.Context // of the Select call, which bounds the set
	rows       *read.SeriesSet
	limit      int // 0: no limit
	labelsOnly bool
	only       *projection // nil: all labels
	quota      *model.Quota
	holding    *holding // what upstream will hold for each series; nil: nothing
	shared     int64    // bytes charged for what upstream holds once for all series
	// from is where the range begins, in nanoseconds. One millisecond more is read: a selector's range is open
	// on its left, and a histogram exactly on that bound tells whether the first one in the range follows a
	// reset.
	from int64
	// rolled says that rows may stand for slots. Those with any instant from first to last are refused.
	rolled      bool
	first, last millis

	found   int
	current *series
	free    []series // for series to come
	builder labels.ScratchBuilder
	scratch model.Rows
	slab    slab
	err     error
}

func (s *seriesSet) Next() bool {
	if s.err != nil || s.limit > 0 && s.found >= s.limit {
		return s.finish()
	}
	for s.rows.Next(s.ctx) {
		var p points
		if !s.labelsOnly {
			s.scratch.Reset()
			if s.err = s.rows.AppendRows(s.ctx, &s.scratch); s.err != nil {
				return s.finish()
			}
			if s.rolled {
				if s.err = s.dropRolled(); s.err != nil {
					return s.finish()
				}
			}
			var some bool
			if p, some, s.err = s.pointsInRange(); s.err != nil {
				return s.finish()
			}
			if !some {
				// A block has the series of a day, whatever the range.
				if s.err = s.quota.TakeBytes(-s.rows.Charged()); s.err != nil {
					return s.finish()
				}
				continue
			}
			if s.err = s.charge(&p); s.err != nil {
				return s.finish()
			}
		}
		var l labels.Labels
		if s.only != nil {
			l, s.err = s.only.labels(&s.builder, s.rows.Labels())
		} else {
			l, s.err = labelsOf(&s.builder, s.rows.Labels())
		}
		if s.err != nil {
			return s.finish()
		}
		s.current = s.keep(series{labels: l, points: p})
		s.found++
		return true
	}
	s.err = s.rows.Err()
	return s.finish()
}

// charge charges what upstream will hold for a series.
func (s *seriesSet) charge(p *points) error {
	if s.holding == nil {
		return nil
	}
	kept, shared := s.holding.series(p, len(s.rows.Labels()))
	more := max(0, shared-s.shared)
	s.shared += more
	return s.quota.TakeBytes(kept + more)
}

// seriesPerAllocation is how many series share an allocation. The engine keeps all series of a set as long
// as any.
const seriesPerAllocation = 64

// keep copies a series to memory that stays valid.
func (s *seriesSet) keep(one series) *series {
	if len(s.free) == 0 {
		// The first allocations are small: most queries have one series, or ten.
		s.free = make([]series, min(seriesPerAllocation, max(1, s.found)))
	}
	kept := &s.free[0]
	*kept, s.free = one, s.free[1:]
	return kept
}

// pointsInRange copies the rows in the range, if there are any.
func (s *seriesSet) pointsInRange() (p points, some bool, err error) {
	early := 0
	for early < s.scratch.Len() && s.scratch.Times[early] < s.from {
		early++
	}
	if early > 0 {
		if err := s.rows.Forget(&s.scratch, early); err != nil {
			return p, false, err
		}
	}
	if early == s.scratch.Len() {
		return p, false, nil
	}
	p = s.slab.copyRows(&s.scratch, early)
	if p.blobs != nil && early > 0 && s.scratch.Kind(early-1) == model.KindHistogram {
		p.blobs.before = slices.Clone(s.scratch.Blob(early - 1))
	}
	return p, true, nil
}

// dropRolled leaves out the rows that stand for slots, and those beyond the range.
func (s *seriesSet) dropRolled() error {
	if slots.Has(&s.scratch) {
		for i := range s.scratch.Len() {
			if slots.Is(&s.scratch, i) {
				if err := s.rows.ForgetRows(&s.scratch, i, i+1); err != nil {
					return err
				}
			}
		}
		if _, err := slots.Drop(&s.scratch, 0, s.first, s.last, string(s.rows.Labels().Get(model.NameLabel))); err != nil {
			return err
		}
	}
	n, end := s.scratch.Len(), rangeOf(s.last, s.last).Max
	for n > 0 && s.scratch.Times[n-1] > end {
		n--
	}
	if n == s.scratch.Len() {
		return nil
	}
	err := s.rows.ForgetRows(&s.scratch, n, s.scratch.Len())
	s.scratch.Truncate(n)
	return err
}

// finish unpins what the set holds and returns false. The query may go on computing for long.
func (s *seriesSet) finish() bool {
	if err := s.rows.Close(); s.err == nil {
		s.err = err
	}
	s.current = nil
	return false
}

func (s *seriesSet) close() error { return s.rows.Close() }

func (s *seriesSet) At() storage.Series { return s.current }

func (s *seriesSet) Err() error { return s.err }

func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// sorted reads a whole set and sorts it by labels.
func sorted(set *seriesSet) storage.SeriesSet {
	var all []*series
	for set.Next() {
		all = append(all, set.current)
	}
	if set.err != nil {
		return storage.ErrSeriesSet(set.err)
	}
	slices.SortFunc(all, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	return &sliceSet{all: all, index: -1}
}

type sliceSet struct {
	all   []*series
	index int
}

func (s *sliceSet) Next() bool                        { s.index++; return s.index < len(s.all) }
func (s *sliceSet) At() storage.Series                { return s.all[s.index] }
func (s *sliceSet) Err() error                        { return nil }
func (s *sliceSet) Warnings() annotations.Annotations { return nil }
