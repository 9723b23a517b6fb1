package vector

import (
	"bytes"
	"cmp"
	"iter"
	"math/bits"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Steps are the times at which a query is evaluated: Start, Start+Step, and so on, Count of them, in Unix
// nanoseconds. An instant query has one step, and its Step is 0.
type Steps struct {
	Start, Step int64
	Count       int
}

// Time returns the time of step i.
func (s Steps) Time(i int) int64 { return s.Start + int64(i)*s.Step }

// Matrix is the value of an expression at all steps of a query. Values and labels may be shared with other
// matrices, so they never change once the matrix is made.
//
// The order of series counts in an instant query that sorts. Two series of a matrix may have the same labels,
// since label_replace can make them equal.
//
// As long as a matrix is held, its [Matrix.Size] is charged to the quota of its query: series by series,
// before each is made, until [Matrix.Release].
type Matrix struct {
	Steps  Steps
	Series []Series
}

// seriesBytes is the size of a Series without what it refers to.
const seriesBytes = 3 * 24

// SeriesSize returns the memory that a series takes.
func SeriesSize(labels model.Labels, steps int) int64 {
	return seriesBytes + int64(len(labels)) + 8*int64(steps+(steps+63)/64)
}

// Size returns the memory that a matrix takes.
func (m *Matrix) Size() int64 {
	n := int64(0)
	for i := range m.Series {
		n += SeriesSize(m.Series[i].Labels, m.Steps.Count)
	}
	return n
}

// Release gives the memory of a matrix, which is not used any more, back to the quota.
func (m *Matrix) Release(quota *model.Quota) {
	_ = quota.TakeBytes(-m.Size()) // giving back does not fail
}

// SortByLabels sorts series by their labels, in the order of [CompareLabels]. Series of equal labels stay in
// their order.
func (m *Matrix) SortByLabels() {
	sorted := slices.IsSortedFunc(m.Series, func(a, b Series) int { return CompareLabels(a.Labels, b.Labels) })
	if sorted {
		return
	}
	// Mostly the first label decides. It is read once rather than for each comparison.
	type key struct {
		name, value []byte
		rest        model.Labels
		index       int
	}
	keys := make([]key, len(m.Series))
	for i := range m.Series {
		name, value, rest, _ := m.Series[i].Labels.Next()
		keys[i] = key{name, value, rest, i}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if c := bytes.Compare(a.name, b.name); c != 0 {
			return c
		}
		if c := bytes.Compare(a.value, b.value); c != 0 {
			return c
		}
		return cmp.Or(CompareLabels(a.rest, b.rest), cmp.Compare(a.index, b.index))
	})
	series := make([]Series, len(keys))
	for i := range keys {
		series[i] = m.Series[keys[i].index]
	}
	m.Series = series
}

// JoinEqual makes one series of those that have the same labels and values at different steps. Where several
// have a value at one step, the result has a series for each of these values. Series must be sorted by
// labels.
func (m *Matrix) JoinEqual(quota *model.Quota) error {
	var out []Series
	for from := 0; from < len(m.Series); {
		to := from + 1
		for to < len(m.Series) && bytes.Equal(m.Series[to].Labels, m.Series[from].Labels) {
			to++
		}
		same := m.Series[from:to]
		from = to
		if len(same) == 1 {
			out = append(out, same[0])
			continue
		}
		first := len(out)
		for _, s := range same {
			for step := range s.Present.All() {
				i := first
				for i < len(out) && out[i].Present.Has(step) {
					i++
				}
				if i == len(out) {
					joined, err := newSeries(quota, s.Labels, m.Steps.Count)
					if err != nil {
						return err
					}
					out = append(out, joined)
				}
				out[i].Values[step] = s.Values[step]
				out[i].Present.Add(step)
			}
			_ = quota.TakeBytes(-SeriesSize(s.Labels, m.Steps.Count)) // giving back does not fail
		}
	}
	m.Series = out
	return nil
}

// CompareLabels orders label sets as Loki does: by the name and value of the first label, then of the second,
// and so on. A set that is the beginning of another comes first.
func CompareLabels(a, b model.Labels) int {
	for {
		aName, aValue, aRest, aOK := a.Next()
		bName, bValue, bRest, bOK := b.Next()
		if !aOK || !bOK {
			return cmp.Compare(len(a), len(b))
		}
		if c := cmp.Or(bytes.Compare(aName, bName), bytes.Compare(aValue, bValue)); c != 0 {
			return c
		}
		a, b = aRest, bRest
	}
}

// Series is one series of a matrix. A series without any present value is not part of a matrix.
type Series struct {
	// Labels are canonical, but a value may be empty where a stage made it so.
	Labels model.Labels
	// Values has a value for each step. It counts only where Present has the step.
	Values  []float64
	Present Set
}

// Set is a set of steps, a bit each.
type Set []uint64

// NewSet returns an empty set for that many steps.
func NewSet(steps int) Set { return make(Set, (steps+63)/64) }

// Add adds step i.
func (s Set) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Remove removes step i.
func (s Set) Remove(i int) { s[i>>6] &^= 1 << (i & 63) }

// Has reports whether step i is in the set.
func (s Set) Has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }

// IsEmpty reports whether no step is in the set.
func (s Set) IsEmpty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// Len returns the number of steps in the set.
func (s Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// All returns the steps in the set, ascending.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}
