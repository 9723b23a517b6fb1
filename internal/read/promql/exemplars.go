package promql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

// ExemplarQuerier returns a querier of exemplars that reads until ctx ends. The quota of the query bounds
// the series that it reads, and counts exemplars as samples.
func (q *Queryable) ExemplarQuerier(ctx context.Context) (storage.ExemplarQuerier, error) {
	return &exemplarQuerier{q: q, ctx: ctx}, nil
}

type exemplarQuerier struct {
	q   *Queryable
	ctx context.Context
}

// exemplarBytes is the cost of an exemplar in addition to the charge for its row, which covers its time,
// its value and its labels.
const exemplarBytes = 32

// Select returns the exemplars in [start, end] milliseconds of the series that satisfy all matchers of any
// of the sets, sorted by labels and by time. It leaves out series without exemplars.
func (e *exemplarQuerier) Select(start, end int64, sets ...[]*labels.Matcher) (_ []exemplar.QueryResult, err error) {
	var open []*read.SeriesSet
	defer func() {
		for _, s := range open {
			err = errors.Join(err, s.Close())
		}
	}()
	// All are opened before any is read, so that they see the store at about the same moment.
	for _, ms := range sets {
		req := e.q.request(start, end, ms)
		req.Family = model.Exemplars
		set, err := e.q.Read.Select(e.ctx, req)
		if err != nil {
			return nil, err
		}
		open = append(open, set)
	}
	w := exemplarWalk{ctx: e.ctx, quota: e.q.Quota, seen: make(map[model.Key]struct{}), found: []exemplar.QueryResult{}}
	for i, set := range open {
		w.more = i+1 < len(open)
		if err := w.walk(set); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(w.found, func(a, b exemplar.QueryResult) int { return labels.Compare(a.SeriesLabels, b.SeriesLabels) })
	return w.found, nil
}

// exemplarWalk collects the exemplars of several sets, once for each series.
type exemplarWalk struct {
	ctx   context.Context
	quota *model.Quota
	// seen holds the series that were found, unless this is the last set.
	seen    map[model.Key]struct{}
	more    bool
	found   []exemplar.QueryResult
	builder labels.ScratchBuilder
	rows    model.Rows
}

func (w *exemplarWalk) walk(set *read.SeriesSet) error {
	for set.Next(w.ctx) {
		if _, ok := w.seen[set.Key()]; ok {
			continue
		}
		w.rows.Reset()
		if err := set.AppendRows(w.ctx, &w.rows); err != nil {
			return err
		}
		if w.rows.Len() == 0 {
			continue
		}
		if w.more {
			w.seen[set.Key()] = struct{}{}
		}
		if err := w.series(set.Labels()); err != nil {
			return fmt.Errorf("series %s: %w", set.Key(), err)
		}
	}
	return set.Err()
}

// series adds the exemplars of a series.
func (w *exemplarWalk) series(l model.Labels) error {
	if err := w.quota.TakeBytes(exemplarBytes * int64(w.rows.Len())); err != nil {
		return err
	}
	name, err := labelsOf(&w.builder, l)
	if err != nil {
		return err
	}
	r := exemplar.QueryResult{SeriesLabels: name, Exemplars: make([]exemplar.Exemplar, w.rows.Len())}
	for i, t := range w.rows.Times {
		if k := w.rows.Kind(i); k != model.KindExemplar {
			return fmt.Errorf("%w: expected exemplars, got a value of kind %d", model.ErrCorrupt, k)
		}
		e, err := model.ParseExemplar(w.rows.Blob(i))
		if err != nil {
			return err
		}
		l, err := labelsOf(&w.builder, e.Labels)
		if err != nil {
			return err
		}
		r.Exemplars[i] = exemplar.Exemplar{Labels: l, Value: math.Float64frombits(e.Value), Ts: floorMillis(t), HasTs: true}
	}
	w.found = append(w.found, r)
	return nil
}
