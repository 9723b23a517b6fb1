package model

import "encoding/binary"

// NormalizeAs sorts rows that were appended in order of arrival into the order of the file format, and
// removes duplicates. Samples are a function of time, and rows of other families a set.
func (r *Rows) NormalizeAs(f Family) {
	if f == Samples {
		r.Normalize()
	} else {
		r.NormalizeSet()
	}
}

// NormalizeFrom is NormalizeAs for the rows from n on, in place.
func (r *Rows) NormalizeFrom(n int, f Family) {
	tail := Rows{Times: r.Times[n:], Values: r.Values[n:], Bytes: r.Bytes} // Values refer to it
	if len(r.Starts) > 0 {
		tail.Starts = r.Starts[n:]
	}
	if len(r.Kinds) > 0 {
		tail.Kinds = r.Kinds[n:]
	}
	tail.NormalizeAs(f)
	r.Truncate(n + tail.Len())
}

// Normalize sorts samples by time and keeps one row for each time: the last one, except that a value takes
// precedence over a stale marker. It works in place, and takes one pass if the rows are sorted, as they
// nearly always are.
func (r *Rows) Normalize() {
	if r.ascend() {
		return
	}
	r.sortStable()
	out := 0
	for i := 1; i < len(r.Times); i++ {
		if r.Times[i] != r.Times[out] {
			out++
			r.move(out, i)
			continue
		}
		if r.IsStale(i) && !r.IsStale(out) {
			continue
		}
		r.move(out, i)
	}
	r.Truncate(out + 1)
}

// ascend reports whether every row is later than the one before.
func (r *Rows) ascend() bool {
	i, n := 1, len(r.Times)
	for i < n && r.Times[i-1] < r.Times[i] {
		i++
	}
	return i >= n
}

// NormalizeSet sorts events by time, and those with equal times by arrival. Of rows that are equal in time
// and value it keeps the first.
func (r *Rows) NormalizeSet() {
	if r.ascend() {
		return
	}
	r.sortStable()
	out, group := 0, 0 // rows [group, out) have the time of row i
	var seen map[string]struct{}
	for i := range r.Times {
		if out > 0 && r.Times[i] != r.Times[out-1] {
			group, seen = out, nil
		}
		if r.isIn(group, out, i, &seen) {
			continue
		}
		r.move(out, i)
		out++
	}
	r.Truncate(out)
}

// fewEqual is the number of rows with the same time that are compared one by one. More are looked up in a
// table: a sender may give all its rows the same time.
const fewEqual = 16

// isIn reports whether row i equals one of the rows [from, to), which have its time. The table holds them if
// there are many.
func (r *Rows) isIn(from, to, i int, table *map[string]struct{}) bool {
	if to-from < fewEqual {
		for j := from; j < to; j++ {
			if r.Same(i, r, j) {
				return true
			}
		}
		return false
	}
	if *table == nil {
		*table = make(map[string]struct{}, 2*fewEqual)
		for j := from; j < to; j++ {
			(*table)[r.identity(j)] = struct{}{}
		}
	}
	id := r.identity(i)
	if _, found := (*table)[id]; found {
		return true
	}
	(*table)[id] = struct{}{}
	return false
}

// identity is equal for two rows if Same holds for them.
func (r *Rows) identity(i int) string {
	k := r.Kind(i)
	if k == KindFloat {
		return string(binary.BigEndian.AppendUint64([]byte{byte(k)}, r.Values[i]))
	}
	return string(append([]byte{byte(k)}, r.Blob(i)...))
}

// sortStable sorts the rows by time and keeps the order of arrival for equal times. Short disorder, the usual
// case, is sorted by insertion. Otherwise it merges the ascending intervals, such as the rows from each of
// several parts.
func (r *Rows) sortStable() {
	const short = 64
	if len(r.Times) > short {
		r.mergeRuns()
		return
	}
	for i := 1; i < len(r.Times); i++ {
		for j := i; j > 0 && r.Times[j] < r.Times[j-1]; j-- {
			r.swap(j, j-1)
		}
	}
}

func (r *Rows) swap(i, j int) {
	r.Times[i], r.Times[j] = r.Times[j], r.Times[i]
	r.Values[i], r.Values[j] = r.Values[j], r.Values[i]
	if len(r.Starts) > 0 {
		r.Starts[i], r.Starts[j] = r.Starts[j], r.Starts[i]
	}
	if len(r.Kinds) > 0 {
		r.Kinds[i], r.Kinds[j] = r.Kinds[j], r.Kinds[i]
	}
}
