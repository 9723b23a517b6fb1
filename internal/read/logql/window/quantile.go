package window

import (
	"cmp"
	"math"
	"slices"
)

// quantile keeps its samples. The values of each window lie next to each other once the samples are in the
// order of their cells. If windows overlap little, each selects its values. If they overlap much, a window is
// a tree of counts over all samples in the order of their values, to which samples are added and from which
// they are taken away.
type quantile struct {
	kept[quantileSample]
	q float64
}

type quantileSample struct {
	key  uint64 // see orderOf
	cell int32
	rank int32 // in the order of values, from 1
}

// quantileSampleBytes is half of what a sample takes while Values counts: itself, its copy and the tree.
const quantileSampleBytes = 20

// Add keeps a sample.
func (k *quantile) Add(cell int32, s *Sample, charge Charge) error {
	return k.keep(quantileSample{key: orderOf(s.Value), cell: cell}, quantileSampleBytes, charge)
}

// Merge keeps the samples of another series.
func (k *quantile) Merge(o Series, charge Charge) error {
	return k.merge(&o.(*quantile).kept, charge)
}

// orderOf returns a number that orders values: NaN first, -0 before 0.
func orderOf(v float64) uint64 {
	if math.IsNaN(v) {
		return 0
	}
	b := math.Float64bits(v)
	if b>>63 == 0 {
		return b | 1<<63
	}
	return ^b
}

// valueOf is the reverse of orderOf.
func valueOf(key uint64) float64 {
	switch {
	case key == 0:
		return math.NaN()
	case key>>63 == 0:
		return math.Float64frombits(^key)
	}
	return math.Float64frombits(key &^ (1 << 63))
}

// Values gives the quantile of each window.
func (k *quantile) Values(give Result) {
	k.sortByCell()
	looked := 0 // values of all windows
	k.eachWindow(func(_, from, to int) { looked += to - from })
	if looked/selectedTimes > len(k.samples) {
		k.slide(give)
		return
	}
	keys := make([]uint64, len(k.samples))
	for i := range k.samples {
		keys[i] = k.samples[i].key
	}
	var s selection
	k.eachWindow(func(step, from, to int) {
		// What selects a value changes the order, and the next window may begin before the end of this one.
		s.keys, s.known = append(s.keys[:0], keys[from:to]...), -1
		give(step, quantileOf(k.q, to-from, s.value))
	})
}

// selectedTimes is in how many windows a sample may lie on average, before a tree of counts costs less than
// to select from each window. BenchmarkQuantile has both sides.
const selectedTimes = 16

// eachWindow calls visit for each window that has samples, with their range. Samples must be sorted by cell.
func (k *quantile) eachWindow(visit func(step, from, to int)) {
	from, to := 0, 0
	for step, first := range k.of.first {
		last := k.of.last[step]
		if last < first {
			continue
		}
		for to < len(k.samples) && k.samples[to].cell <= last {
			to++
		}
		for from < to && k.samples[from].cell < first {
			from++
		}
		if from < to {
			visit(step, from, to)
		}
	}
}

// sortByCell sorts samples by their cells.
func (k *quantile) sortByCell() {
	byCell := func(a, b quantileSample) int { return cmp.Compare(a.cell, b.cell) }
	n := k.count()
	if n < k.of.count { // few samples are not worth a counter for each cell
		k.gather()
		slices.SortFunc(k.samples, byCell)
		return
	}
	if len(k.more) == 0 && slices.IsSortedFunc(k.samples, byCell) {
		return
	}
	lists := append(k.more, k.samples)
	ends := make([]int32, k.of.count+1) // of the cell before
	for _, list := range lists {
		for i := range list {
			ends[list[i].cell+1]++
		}
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	k.samples, k.more = make([]quantileSample, n), nil
	for _, list := range lists {
		for i := range list {
			at := &ends[list[i].cell]
			k.samples[*at] = list[i]
			*at++
		}
	}
}

// slide gives the quantile of each window by a tree of counts. Samples must be sorted by cell.
func (k *quantile) slide(give Result) {
	order := slices.Clone(k.samples)
	for i := range order {
		order[i].cell = int32(i) // of the sample, for which the rank is meant
	}
	slices.SortFunc(order, func(a, b quantileSample) int { return cmp.Compare(a.key, b.key) })
	for i := range order {
		k.samples[order[i].cell].rank = int32(i + 1)
	}
	tree := newRanks(len(order))
	value := func(i int) float64 { return valueOf(order[tree.find(i)].key) }
	added, removed := 0, 0
	k.eachWindow(func(step, from, to int) {
		for ; added < to; added++ {
			tree.add(k.samples[added].rank, 1)
		}
		for ; removed < from; removed++ {
			tree.add(k.samples[removed].rank, -1)
		}
		give(step, quantileOf(k.q, to-from, value))
	})
}

// quantileOf returns a quantile of n values, of which value gives the i-th in their order. Between two values
// it interpolates. A value that counts for nothing still makes NaN of an infinity.
func quantileOf(q float64, n int, value func(i int) float64) float64 {
	switch {
	case q < 0:
		return math.Inf(-1)
	case q > 1:
		return math.Inf(1)
	}
	rank := q * float64(n-1)
	lower := math.Floor(rank)
	upper := min(lower+1, float64(n-1))
	weight := rank - lower
	return float64(value(int(lower))*(1-weight)) + float64(value(int(upper))*weight)
}

// ranks is a multiset of ranks from 1 on: a Fenwick tree of counts.
type ranks struct {
	counts []int32
	top    int // the greatest power of two that is an index
}

func newRanks(n int) *ranks {
	r := &ranks{counts: make([]int32, n+1), top: 1}
	for 2*r.top <= n {
		r.top *= 2
	}
	return r
}

func (r *ranks) add(rank, n int32) {
	for i := int(rank); i < len(r.counts); i += i & -i {
		r.counts[i] += n
	}
}

// find returns how many ranks lie below the i-th of the set, from 0.
func (r *ranks) find(i int) int {
	left, at := int32(i), 0
	for step := r.top; step > 0; step /= 2 {
		if next := at + step; next < len(r.counts) && r.counts[next] <= left {
			at, left = next, left-r.counts[next]
		}
	}
	return at
}

// kept is a list of samples.
type kept[S any] struct {
	of      *Cells
	samples []S
	more    [][]S // of other series that were merged into this one
	charged int64
}

// Charged returns the bytes that the series has charged.
func (k *kept[S]) Charged() int64 { return k.charged }

// keep adds a sample of that size. What Values needs besides is charged with it.
func (k *kept[S]) keep(s S, size int64, charge Charge) error {
	if n := len(k.samples); n == cap(k.samples) {
		room := max(2*n, 8)
		cost := int64(room-n) * 2 * size
		if err := charge(cost); err != nil {
			return err
		}
		k.charged += cost
		k.samples = append(make([]S, 0, room), k.samples...)
	}
	k.samples = append(k.samples, s)
	return nil
}

// merge takes the samples of another series, with what they are charged.
func (k *kept[S]) merge(o *kept[S], charge Charge) error {
	if err := charge(o.charged); err != nil {
		return err
	}
	k.charged += o.charged
	k.more = append(append(k.more, o.samples), o.more...)
	return nil
}

// count returns how many samples there are.
func (k *kept[S]) count() int {
	n := len(k.samples)
	for _, more := range k.more {
		n += len(more)
	}
	return n
}

// gather makes one list of all samples.
func (k *kept[S]) gather() {
	if len(k.more) > 0 {
		k.samples = slices.Concat(append([][]S{k.samples}, k.more...)...)
		k.more = nil
	}
}
