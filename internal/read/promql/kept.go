package promql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/results"
)

// errNotKept says that the values of a node are of a kind that is not kept.
var errNotKept = errors.New("promql: values of the node are not kept")

// keptNode is the value of a node in which some steps are kept.
type keptNode struct {
	run *results.Run
	// sets has a set for each piece of the run that has no value, nil for the others.
	sets []*computedSet

	values []nodeSeries // nil: they are not joined yet
	shown  int          // of the values
	// charged is what the values take.
	charged int64
	// series is the most that one piece has read. So many count towards the limit of the query, since most are
	// in every piece.
	series int64
}

// nodeSeries is a series or group of a node, with its values at some steps.
type nodeSeries struct {
	labels labels.Labels
	bytes  int64 // of the labels
	at     []int32
	values []float64
	// firsts is the least key of a series that has a value in it. Upstream has groups in that order, and so it
	// adds them up. The key may differ from step to step, as series come and go.
	firsts []firstKey
}

// firstKey is the least key at the steps from one on, up to that of the next one.
type firstKey struct {
	from int32
	key  model.Key
}

// first returns the least key at the steps [from, to).
func (s *nodeSeries) first(from, to int32) model.Key {
	i, found := slices.BinarySearchFunc(s.firsts, from, func(f firstKey, from int32) int { return cmp.Compare(f.from, from) })
	if !found && i > 0 {
		i--
	}
	least := s.firsts[i].key
	for i++; i < len(s.firsts) && s.firsts[i].from < to; i++ {
		if s.firsts[i].key.Compare(least) < 0 {
			least = s.firsts[i].key
		}
	}
	return least
}

// noteFirst notes the least key at a step, which is after those before.
func (s *nodeSeries) noteFirst(at int32, key model.Key) {
	if n := len(s.firsts); n == 0 || s.firsts[n-1].key != key {
		s.firsts = append(s.firsts, firstKey{at, key})
	}
}

// between returns which of the values are at the steps [from, to).
func (s *nodeSeries) between(from, to int32) (begin, end int) {
	begin, _ = slices.BinarySearch(s.at, from)
	end, _ = slices.BinarySearch(s.at, to)
	return begin, end
}

// nodeSeriesBytes is about what a series takes besides its labels and values, and valueBytes a value.
const (
	nodeSeriesBytes = 150
	valueBytes      = 12
)

func (s *nodeSeries) size() int64 {
	return nodeSeriesBytes + s.bytes + valueBytes*int64(len(s.at)) + 24*int64(len(s.firsts))
}

func sizeOfSeries(all []nodeSeries) (bytes int64) {
	for i := range all {
		bytes += all[i].size()
	}
	return bytes
}

// openKept looks for kept values of a node. It returns nil if the node is computed as a whole.
func (q *Queryable) openKept(ctx context.Context, n *node) *results.Run {
	if q.Results == nil || q.Rollups != nil || q.Cost.Fresh || q.Cost.Bill != nil || n.start == n.end || max(n.end, -n.start) > math.MaxInt64/2/nanosPerMilli {
		return nil
	}
	return q.Results.Open(ctx, &results.Leaf{
		Tenants: []string{q.Tenant}, Signal: model.Metrics,
		Text:   fmt.Sprintf("%s %d %d %d", n.text, n.width, n.offset, n.extent),
		Before: (n.width + n.offset) * nanosPerMilli,
		After:  -n.offset*nanosPerMilli + nanosPerMilli - 1,
	}, results.Steps{Start: n.start * nanosPerMilli, Step: n.step * nanosPerMilli, Count: n.steps()}, q.Cost.QueryID())
}

// part returns the node at some of its steps.
func (n *node) part(from, to int) *node {
	p := *n
	p.start, p.end = n.start+int64(from)*n.step, n.start+int64(to-1)*n.step
	p.first, p.last = p.start-n.offset-n.width+1, p.end-n.offset
	return &p
}

// pinKept pins what the pieces of a run need that have no value.
func (q *querier) pinKept(ctx context.Context, n *node, held *holding, run *results.Run) (*computedSet, error) {
	s := &computedSet{ctx: ctx, n: n, held: held, q: q.q, querier: q, windows: newWindows(n, q.q.Quota), kept: &keptNode{run: run}}
	for i := range run.Pieces {
		var part *computedSet
		if p := &run.Pieces[i]; p.Value == nil {
			var err error
			if part, err = q.pin(ctx, n.part(p.From, p.To), nil); err != nil {
				return nil, err
			}
			if part.aggregation != nil {
				part.aggregation.notesFirsts = true
			}
		}
		s.kept.sets = append(s.kept.sets, part)
	}
	if len(run.Pieces) > 1 || run.Pieces[0].Value != nil {
		if err := q.q.Read.Kept(q.q.request(n.first, n.last, n.selector.LabelMatchers)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// nextKept moves to the next series. The first call computes what is not kept.
func (s *computedSet) nextKept() bool {
	k := s.kept
	if k.values == nil {
		s.err = s.joinKept()
		if errors.Is(s.err, errNotKept) || model.ReadsTooMuch(s.err) && k.readsTwice() {
			return s.computeWhole()
		}
	}
	if s.err != nil || k.shown == len(k.values) {
		return s.finishKept()
	}
	v := k.values[k.shown]
	k.values[k.shown] = nodeSeries{}
	k.shown++
	r := result{at: v.at, values: v.values}
	_ = s.q.Quota.TakeBytes(-v.size()) // giving back never fails
	k.charged -= v.size()
	return s.setCurrent(v.labels, int(v.bytes), &r) || s.finishKept()
}

// readsTwice reports whether some samples may be read for several pieces: the windows of the first steps of
// one may begin before the last step of another. As a whole, the node may read less than its pieces.
func (k *keptNode) readsTwice() bool {
	read := 0
	for _, part := range k.sets {
		if part != nil {
			read++
		}
	}
	return read > 1
}

// computeWhole computes the node as if nothing was kept. What was read of it until now does not count.
func (s *computedSet) computeWhole() bool {
	s.finishKept()
	for _, part := range s.kept.sets {
		if part != nil {
			part.from.set.UncountSeries()
			part.from.set.UncountSamples()
		}
	}
	whole, err := s.querier.pin(s.ctx, s.n, s.held)
	if err != nil {
		s.err = err
		return false
	}
	*s = *whole
	return s.Next()
}

// finishKept releases what the set holds and returns false.
func (s *computedSet) finishKept() bool {
	k := s.kept
	_ = s.q.Quota.TakeBytes(-k.charged) // giving back never fails
	k.charged, k.values, k.shown = 0, []nodeSeries{}, 0
	for _, part := range k.sets {
		if part != nil {
			part.end()
		}
	}
	s.windows.release()
	s.current = nil
	return false
}

// joinKept makes series of the values of all pieces, in the order in which upstream has them.
func (s *computedSet) joinKept() error {
	k := s.kept
	at, key := make(map[string]int), []byte(nil)
	k.values = []nodeSeries{}
	for i := range k.run.Pieces {
		p := &k.run.Pieces[i]
		offset := int32(p.From) // from a step of the values to one of the node
		var values []nodeSeries
		if p.Value != nil {
			values = p.Value.([]nodeSeries)
			offset -= int32(p.At)
		} else {
			var err error
			if values, err = k.compute(p, k.sets[i]); err != nil {
				return err
			}
		}
		for j := range values {
			v := &values[j]
			begin, end := v.between(int32(p.From)-offset, int32(p.To)-offset)
			if begin == end {
				continue
			}
			key = v.labels.Bytes(key)
			n, known := at[string(key)]
			if !known {
				n = len(k.values)
				at[string(key)] = n
				k.values = append(k.values, nodeSeries{labels: v.labels, bytes: v.bytes})
			}
			if err := s.extend(&k.values[n], v, begin, end, offset); err != nil {
				return err
			}
		}
		if part := k.sets[i]; part != nil {
			part.end()
			k.series = max(k.series, part.from.set.UncountSeries())
		}
	}
	if err := s.q.Quota.TakeSeries(k.series, 0); err != nil {
		return err
	}
	slices.SortFunc(k.values, func(a, b nodeSeries) int { return a.firsts[0].key.Compare(b.firsts[0].key) })
	if s.any = len(k.values) > 0; s.any {
		s.windows.anyFloat = true
		s.windows.addNotes()
	}
	return nil
}

// extend appends some values of a piece to a series of all pieces, which has only one first key.
func (s *computedSet) extend(to, from *nodeSeries, begin, end int, offset int32) error {
	before := int64(0)
	if len(to.firsts) > 0 {
		before = to.size()
	}
	first := from.first(from.at[begin], from.at[end-1]+1)
	if len(to.firsts) == 0 {
		to.firsts = []firstKey{{key: first}}
	} else if first.Compare(to.firsts[0].key) < 0 {
		to.firsts[0].key = first
	}
	bytes := to.size() - before + valueBytes*int64(end-begin)
	if err := s.charge(bytes); err != nil {
		return err
	}
	s.kept.charged += bytes
	for _, at := range from.at[begin:end] {
		to.at = append(to.at, at+offset)
	}
	to.values = append(to.values, from.values[begin:end]...)
	return nil
}

// compute computes the values of a piece, and keeps them.
func (k *keptNode) compute(p *results.Piece, part *computedSet) ([]nodeSeries, error) {
	values, err := part.collect()
	switch {
	case errors.Is(err, errNotKept):
		k.run.Refuse()
		return nil, err
	case err != nil:
		return nil, err
	case sizeOfSeries(values) > k.run.MaxBytes():
		k.run.Refuse()
	default:
		k.run.Keep(p, func(from, to int) (any, int64) {
			cut := cutSeries(values, int32(from-p.From), int32(to-p.From))
			return cut, sizeOfSeries(cut)
		})
	}
	return values, nil
}

// cutSeries copies the values at the steps [from, to).
func cutSeries(all []nodeSeries, from, to int32) []nodeSeries {
	cut := []nodeSeries{}
	for i := range all {
		s := &all[i]
		begin, end := s.between(from, to)
		if begin == end {
			continue
		}
		c := nodeSeries{labels: s.labels, bytes: s.bytes, values: slices.Clone(s.values[begin:end])}
		c.at = make([]int32, 0, end-begin)
		for _, at := range s.at[begin:end] {
			c.at = append(c.at, at-from)
			c.noteFirst(at-from, s.first(at, at+1))
		}
		cut = append(cut, c)
	}
	return cut
}

// collect computes all series or groups of a part of a node. It returns errNotKept if they have histograms,
// or warnings besides that about the name of the metric. What it charges is released by end.
func (s *computedSet) collect() (all []nodeSeries, err error) {
	for s.advance() {
		if s.windows.sawHistograms {
			return nil, errNotKept
		}
		if s.aggregation != nil {
			s.err = s.add()
		} else {
			var series nodeSeries
			if series, s.err = s.collectSeries(); s.err == nil {
				all = append(all, series)
			}
		}
		if s.err != nil {
			break
		}
	}
	switch {
	case s.err != nil:
		return nil, s.err
	case s.windows.sawHistograms || len(s.windows.notes) > 0:
		return nil, errNotKept
	case s.aggregation == nil:
		return all, nil
	case len(s.aggregation.notes) > 0:
		return nil, errNotKept
	}
	for i := range s.aggregation.groups {
		g := &s.aggregation.groups[i]
		s.group.reset()
		s.aggregation.appendValues(g, &s.group)
		series := nodeSeries{labels: g.labels, bytes: int64(len(g.labels.Bytes(nil)))}
		if err := s.hold(&series); err != nil {
			return nil, err
		}
		for _, at := range series.at {
			series.noteFirst(at, g.firsts[at])
		}
		all = append(all, series)
	}
	return all, nil
}

// collectSeries returns the last computed series.
func (s *computedSet) collectSeries() (series nodeSeries, err error) {
	l, err := labelsOf(&s.builder, s.labels)
	if err != nil {
		return series, err
	}
	s.group.reset()
	s.group.at, s.group.values = append(s.group.at, s.windows.at...), append(s.group.values, s.windows.values...)
	series = nodeSeries{labels: s.n.shown(l), bytes: int64(len(s.labels)), firsts: []firstKey{{key: s.from.key}}}
	return series, s.hold(&series)
}

// hold charges a series, and copies the values of the current group to it.
func (s *computedSet) hold(series *nodeSeries) error {
	bytes := series.size() + valueBytes*int64(len(s.group.at))
	if err := s.charge(bytes); err != nil {
		return err
	}
	s.collected += bytes
	series.at, series.values = slices.Clone(s.group.at), slices.Clone(s.group.values)
	return nil
}

// end releases what a part of a node holds. It may be called more than once.
func (s *computedSet) end() {
	bytes := s.collected
	s.collected = 0
	if s.aggregation != nil {
		for i := range s.aggregation.groups {
			bytes += s.release(&s.aggregation.groups[i])
		}
		s.aggregation.groups = nil
	}
	_ = s.q.Quota.TakeBytes(-bytes) // giving back never fails
	_ = s.from.close()              // the querier closes it again, and returns its error
	if s.windows.matrix != nil {
		s.windows.release()
	}
}
