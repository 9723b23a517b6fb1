package window

import (
	"cmp"
	"math"
	"slices"
)

// quantile keeps its samples. The window is a tree of counts over all samples in the order of their values,
// to which samples are added and from which they are taken away.
type quantile struct {
	kept[quantileSample]
	q float64
}

type quantileSample struct {
	value float64
	cell  int32
	rank  int32 // in the order of values, from 1
}

const quantileSampleBytes = 16

// Add keeps a sample.
func (k *quantile) Add(cell int32, s *Sample, charge Charge) error {
	return k.keep(quantileSample{value: s.Value, cell: cell}, quantileSampleBytes, charge)
}

// Merge keeps the samples of another series.
func (k *quantile) Merge(o Series, charge Charge) error {
	return k.merge(&o.(*quantile).kept, quantileSampleBytes, charge)
}

// byValue orders samples: NaN first, -0 before 0.
func byValue(a, b quantileSample) int {
	c := cmp.Compare(a.value, b.value)
	if c == 0 && math.Signbit(a.value) != math.Signbit(b.value) && a.value == 0 {
		if math.Signbit(a.value) {
			return -1
		}
		return 1
	}
	return c
}

// Values gives the quantile of each window.
func (k *quantile) Values(give Result) {
	slices.SortFunc(k.samples, byValue)
	values := make([]float64, len(k.samples))
	for i := range k.samples {
		k.samples[i].rank = int32(i + 1)
		values[i] = k.samples[i].value
	}
	slices.SortFunc(k.samples, func(a, b quantileSample) int { return cmp.Compare(a.cell, b.cell) })
	tree := newRanks(len(values))
	from, to := 0, 0
	for step, first := range k.of.first {
		last := k.of.last[step]
		if last < first {
			continue
		}
		for ; to < len(k.samples) && k.samples[to].cell <= last; to++ {
			tree.add(k.samples[to].rank, 1)
		}
		for ; from < to && k.samples[from].cell < first; from++ {
			tree.add(k.samples[from].rank, -1)
		}
		if n := to - from; n > 0 {
			give(step, quantileOf(k.q, n, func(i int) float64 { return values[tree.find(i)] }))
		}
	}
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
	charged int64
}

// Charged returns the bytes that the series has charged.
func (k *kept[S]) Charged() int64 { return k.charged }

// grow makes room for n more samples of that size. What Values needs besides is charged with them.
func (k *kept[S]) grow(n int, size int64, charge Charge) error {
	if len(k.samples)+n <= cap(k.samples) {
		return nil
	}
	room := max(len(k.samples)+n, 2*len(k.samples), 8)
	cost := int64(room-cap(k.samples)) * 2 * size
	if err := charge(cost); err != nil {
		return err
	}
	k.charged += cost
	k.samples = append(make([]S, 0, room), k.samples...)
	return nil
}

func (k *kept[S]) keep(s S, size int64, charge Charge) error {
	if err := k.grow(1, size, charge); err != nil {
		return err
	}
	k.samples = append(k.samples, s)
	return nil
}

func (k *kept[S]) merge(o *kept[S], size int64, charge Charge) error {
	if err := k.grow(len(o.samples), size, charge); err != nil {
		return err
	}
	k.samples = append(k.samples, o.samples...)
	return nil
}
