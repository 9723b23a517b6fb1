package model

import (
	"sort"
	"sync"
)

// rowMerger is the memory of a merge: the rows that were moved out of the way, and the ends of the intervals.
type rowMerger struct {
	aside Rows
	ends  []int
}

// rowMergers keeps it between merges, up to keptRows.
var rowMergers = sync.Pool{New: func() any { return new(rowMerger) }}

const keptRows = 1 << 16

// mergeRuns sorts the rows by merging neighbouring ascending intervals repeatedly, and keeps the order of
// equal times. It takes n log(intervals) steps, and fewer if the intervals interleave in long stretches.
func (r *Rows) mergeRuns() {
	m := rowMergers.Get().(*rowMerger)
	m.ends = m.ends[:0]
	for i := 1; i < len(r.Times); i++ {
		if r.Times[i] < r.Times[i-1] {
			m.ends = append(m.ends, i)
		}
	}
	m.ends = append(m.ends, len(r.Times))
	for len(m.ends) > 1 {
		begin, kept := 0, m.ends[:0]
		for i := 0; i < len(m.ends); i += 2 {
			end := m.ends[min(i+1, len(m.ends)-1)]
			if end > m.ends[i] {
				m.merge(r, begin, m.ends[i], end)
			}
			begin, kept = end, append(kept, end)
		}
		m.ends = kept
	}
	if cap(m.aside.Times) <= keptRows && cap(m.ends) <= keptRows {
		rowMergers.Put(m)
	}
}

// merge merges the ascending intervals [from, mid) and [mid, to).
func (m *rowMerger) merge(r *Rows, from, mid, to int) {
	// Rows before or after all rows of the other interval stay.
	from += upTo(r.Times[from:mid], r.Times[mid])
	to = mid + below(r.Times[mid:to], r.Times[mid-1])
	left := &m.aside
	left.Reset()
	left.Times, left.Values = append(left.Times, r.Times[from:mid]...), append(left.Values, r.Values[from:mid]...)
	if len(r.Starts) > 0 {
		left.Starts = append(left.Starts, r.Starts[from:mid]...)
	}
	if len(r.Kinds) > 0 {
		left.Kinds = append(left.Kinds, r.Kinds[from:mid]...)
	}
	// Rows [out, j) are the remaining ones of left.
	for i, j, out := 0, mid, from; i < len(left.Times); {
		n := len(left.Times) - i
		if j < to {
			n = upTo(left.Times[i:], r.Times[j])
		}
		r.copyRows(out, left, i, n)
		if i, out = i+n, out+n; i == len(left.Times) {
			return
		}
		n = below(r.Times[j:to], left.Times[i])
		r.copyRows(out, r, j, n)
		j, out = j+n, out+n
	}
}

// copyRows copies n rows of from, which has the same columns, from the i-th on over those from at on.
func (r *Rows) copyRows(at int, from *Rows, i, n int) {
	copy(r.Times[at:], from.Times[i:i+n])
	copy(r.Values[at:], from.Values[i:i+n])
	if len(r.Starts) > 0 {
		copy(r.Starts[at:], from.Starts[i:i+n])
	}
	if len(r.Kinds) > 0 {
		copy(r.Kinds[at:], from.Kinds[i:i+n])
	}
}

// upTo counts the ascending times that are at most t, and below those that are less than t. The result is
// usually small, so the search gallops from the beginning.
func upTo(times []int64, t int64) int {
	return leap(times, func(x int64) bool { return x > t })
}

func below(times []int64, t int64) int {
	return leap(times, func(x int64) bool { return x >= t })
}

func leap(times []int64, beyond func(int64) bool) int {
	lo, step := 0, 1
	for lo+step <= len(times) && !beyond(times[lo+step-1]) {
		lo, step = lo+step, 2*step
	}
	hi := min(lo+step-1, len(times))
	return lo + sort.Search(hi-lo, func(i int) bool { return beyond(times[lo+i]) })
}
