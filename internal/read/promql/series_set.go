package promql

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

// seriesSet reads each series whole when it is reached: the engine expands a set before it looks at any sample, so
// nothing would be saved by reading later. A series without a row in range is left out, as upstream leaves it out.
type seriesSet struct {
	ctx        context.Context // of the Select call, which bounds the set
	rows       *read.SeriesSet
	limit      int // 0: none
	labelsOnly bool

	found   int
	current *series
	builder labels.ScratchBuilder
	scratch model.Rows
	slab    slab
	err     error
}

func (s *seriesSet) Next() bool {
	if s.err != nil || s.limit > 0 && s.found >= s.limit {
		return s.end()
	}
	for s.rows.Next(s.ctx) {
		var p points
		if !s.labelsOnly {
			s.scratch.Reset()
			if s.err = s.rows.AppendRows(s.ctx, &s.scratch); s.err != nil {
				return s.end()
			}
			if s.scratch.Len() == 0 {
				continue
			}
			p = s.slab.take(&s.scratch)
		}
		l, err := labelsOf(&s.builder, s.rows.Labels())
		if err != nil {
			s.err = err
			return s.end()
		}
		s.current = &series{labels: l, points: p}
		s.found++
		return true
	}
	s.err = s.rows.Err()
	return s.end()
}

// end unpins what the set holds as soon as it is not needed any more; a query may still compute for long.
func (s *seriesSet) end() bool {
	if err := s.rows.Close(); s.err == nil {
		s.err = err
	}
	s.current = nil
	return false
}

func (s *seriesSet) At() storage.Series { return s.current }

func (s *seriesSet) Err() error { return s.err }

func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// sorted reads a whole set and puts it into the order of labels.
func sorted(set *seriesSet) storage.SeriesSet {
	var all []*series
	for set.Next() {
		all = append(all, set.current)
	}
	if set.err != nil {
		return storage.ErrSeriesSet(set.err)
	}
	slices.SortFunc(all, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	return &sliceSet{all: all, at: -1}
}

type sliceSet struct {
	all []*series
	at  int
}

func (s *sliceSet) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *sliceSet) At() storage.Series                { return s.all[s.at] }
func (s *sliceSet) Err() error                        { return nil }
func (s *sliceSet) Warnings() annotations.Annotations { return nil }
