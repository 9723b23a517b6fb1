package promql

import (
	"context"
	"errors"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/schema"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/slots"
)

// computedSet is the result of a node: series with a sample at each step that has a value. The engine takes
// them for the series of a selector.
type computedSet struct {
	ctx  context.Context // of the Select call, which bounds the set
	n    *node
	held *holding // what upstream holds for each series of the result
	q    *Queryable
	from *prefetch

	windows     *windows
	aggregation *aggregation // nil: no aggregation
	labels      model.Labels // of the last computed series
	builder     labels.ScratchBuilder
	shown       int       // groups that were returned
	summed      int64     // bytes charged for the sum of all series, if upstream adds them up
	group       result    // the current one
	collected   int64     // bytes charged for series that collect returned
	kept        *keptNode // nil: all is computed here
	querier     *querier
	current     storage.Series
	err         error
	any         bool // a series had a value
}

// compute pins what a node needs. It computes when the set is walked.
func (q *querier) compute(ctx context.Context, n *node, held *holding) storage.SeriesSet {
	var s *computedSet
	var err error
	if run := q.q.openKept(ctx, n); run != nil {
		s, err = q.pinKept(ctx, n, held, run)
	} else {
		s, err = q.pin(ctx, n, held)
	}
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	return s
}

// pin pins what a node needs that is computed as a whole.
func (q *querier) pin(ctx context.Context, n *node, held *holding) (*computedSet, error) {
	req := q.q.request(n.first, n.last, n.selector.LabelMatchers)
	from := req.Range.Min
	if req.Range.Min <= req.Range.Max {
		// As in seriesSet, a histogram directly before the range tells whether the first one follows a reset.
		req.Range.Min = rangeOf(max(n.first, math.MinInt64+1)-1, n.last).Min
	}
	req.LabelsCharged = n.aggregate != nil
	// The labels below a function may require upstream, so they are read.
	req.Unlabelled = n.oneGroup() && n.call == nil
	q.q.rolled(req, n.fits)
	rows, err := q.q.Read.Select(ctx, req)
	if err != nil {
		return nil, err
	}
	s := &computedSet{ctx: ctx, n: n, held: held, q: q.q, querier: q, from: &prefetch{set: rows, quota: q.q.Quota, from: from}, windows: newWindows(n, q.q.Quota)}
	q.open = append(q.open, s.from)
	if n.aggregate != nil {
		s.aggregation = newAggregation(n, q.q.Quota)
	}
	return s, nil
}

func (s *computedSet) Next() bool {
	if s.err != nil {
		return false
	}
	if s.kept != nil {
		return s.nextKept()
	}
	if s.aggregation != nil {
		return s.nextGroup()
	}
	if !s.advance() {
		return s.finish()
	}
	shown, err := labelsOf(&s.builder, s.labels)
	if s.err = err; err != nil || !s.setCurrent(s.n.shown(shown), len(s.labels), &s.windows.result) {
		return s.finish()
	}
	return true
}

// shown returns the labels that the result of the function has.
func (n *node) shown(l labels.Labels) labels.Labels {
	if n.dropsName {
		return l.DropReserved(schema.IsMetadataLabel)
	}
	return l
}

// nextGroup moves to the next group. The first call adds up all series.
func (s *computedSet) nextGroup() bool {
	if s.shown == 0 {
		for s.advance() {
			if s.err = s.add(); s.err != nil {
				break
			}
		}
		s.finish()
	}
	if s.err != nil || s.shown == len(s.aggregation.groups) {
		s.current = nil
		return false
	}
	g := &s.aggregation.groups[s.shown]
	s.shown++
	s.group.reset()
	s.aggregation.appendValues(g, &s.group)
	_ = s.q.Quota.TakeBytes(-s.release(g)) // giving back never fails
	return s.setCurrent(g.labels, 0, &s.group)
}

// release drops the cells of a group and returns what they held.
func (s *computedSet) release(g *group) int64 {
	bytes := s.aggregation.cellBytes()
	for i := range g.histograms {
		bytes += histogramCellBytes + g.histograms[i].held
	}
	g.cells, g.histograms = nil, nil
	return bytes
}

// add adds the last computed series to its group.
func (s *computedSet) add() error {
	s.aggregation.adding = s.from.key
	g, err := s.aggregation.groupOf(s.labels)
	if err != nil {
		return err
	}
	if len(s.windows.histograms) > 0 {
		return s.aggregation.addMixed(g, &s.windows.result, s.labels, !s.windows.reused)
	}
	s.aggregation.add(g, s.windows.at, s.windows.values)
	return nil
}

// advance computes the next series that has a value at any step. It returns false at the end or on an
// error.
func (s *computedSet) advance() bool {
	for {
		l, rows, early, ok := s.from.next(s.ctx)
		if !ok {
			if s.err = s.from.err; s.any && model.NeedsMoreMemory(s.err) {
				s.err = errNeedsUpstream // upstream may hold less here, but reads as much, also in other processes
			}
			return false
		}
		if s.n.dropsName && hasTypeOrUnit(l) {
			s.err = errNeedsUpstream
			return false
		}
		if s.err = s.computeRows(&rows, early); s.err != nil {
			return false
		}
		if len(s.windows.at) > 0 {
			s.labels, s.any = l, true
			return true
		}
	}
}

// computeRows computes the values of a series.
func (s *computedSet) computeRows(rows *model.Rows, early int) error {
	if s.q.Rollups != nil && slots.Has(rows) {
		if s.n.call != nil && slots.Functions[s.n.call.Func.Name] {
			return s.windows.computeRolled(s.q, rows)
		}
		var err error
		if early, err = slots.Drop(rows, early, s.n.first, s.n.last, s.n.what()); err != nil {
			return err
		}
	}
	return toUpstream(s.windows.compute(rows, early))
}

// hasTypeOrUnit reports whether the series has labels that upstream drops together with the name, so that
// two series may become equal.
func hasTypeOrUnit(l model.Labels) bool {
	for rest := l; ; {
		name, _, next, ok := rest.Next()
		if !ok || string(name) > "__unit__" {
			return false
		}
		if string(name) == "__type__" || string(name) == "__unit__" {
			return true
		}
		rest = next
	}
}

// charge charges memory that is kept until the query ends. If the quota has no room, upstream evaluates the
// query: it reports the limit, or needs less, because here a group with few values costs as much as a full
// one.
func (s *computedSet) charge(bytes int64) error { return toUpstream(s.q.Quota.TakeBytes(bytes)) }

// toUpstream replaces the error of a query that is too large: upstream may need less memory.
func toUpstream(err error) error {
	if errors.Is(err, model.ErrLimit) {
		return errNeedsUpstream
	}
	return err
}

// keptBytes estimates the cost of a series or group, apart from its labels and samples.
const keptBytes = 200

// setCurrent makes the current series. A stale marker follows each value whose next step has none, so that
// the engine does not look back.
func (s *computedSet) setCurrent(l labels.Labels, labelBytes int, r *result) bool {
	at, n := r.at, len(r.at)
	for i := range at {
		if s.gapAfter(at, i) {
			n++
		}
	}
	// The series forgets its points while the engine makes its own.
	bytes := keptBytes + int64(labelBytes) + pointBytes*int64(n-len(at))
	if len(r.histograms) == 0 {
		s.err = s.charge(bytes + s.held.results(int64(len(at)), 0, 0))
	} else {
		// Upstream would need more.
		size, largest, bounds := r.size()
		more := max(0, s.held.summed(largest, bounds)-s.summed)
		s.summed += more
		s.err = s.q.Quota.TakeBytes(bytes + 8*int64(n) + size + s.held.results(int64(len(at)), largest, bounds) + more)
	}
	if s.err != nil {
		return false
	}
	p := points{times: make([]int64, 0, n), values: make([]uint64, 0, n)}
	var histograms []*histogram.FloatHistogram
	for i, v := range r.values {
		t := s.n.start + int64(at[i])*s.n.step
		p.times, p.values = append(p.times, t), append(p.values, math.Float64bits(v))
		if len(r.histograms) > 0 {
			histograms = append(histograms, r.histograms[i])
		}
		if s.gapAfter(at, i) {
			p.times, p.values = append(p.times, t+s.n.step), append(p.values, value.StaleNaN)
			if len(r.histograms) > 0 {
				histograms = append(histograms, nil)
			}
		}
	}
	s.current = &computedSeries{series: series{labels: l, points: p}, histograms: histograms}
	return true
}

// gapAfter reports whether the step after the i-th value exists and has no value.
func (s *computedSet) gapAfter(at []int32, i int) bool {
	next := at[i] + 1
	return int(next) < s.n.steps() && (i+1 == len(at) || at[i+1] != next)
}

// finish unpins what the set holds and returns false.
func (s *computedSet) finish() bool {
	if err := s.from.close(); s.err == nil {
		s.err = err
	}
	if s.err == nil && s.any {
		s.windows.addNotes()
	}
	s.windows.release()
	s.current = nil
	return false
}

func (s *computedSet) At() storage.Series { return s.current }

func (s *computedSet) Err() error { return s.err }

// Warnings returns the warnings of the function and of the aggregation. Of two with the same text, upstream
// shows the position of the later one, and it aggregates after all functions.
func (s *computedSet) Warnings() annotations.Annotations {
	if s.aggregation == nil {
		return s.windows.notes
	}
	var all annotations.Annotations
	all.Merge(s.windows.notes)
	return all.Merge(s.aggregation.notes)
}
