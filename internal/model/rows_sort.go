package model

import "sort"

// sortStable orders the rows by time and keeps the arrival order of equal times. Short disorder, the usual case, is
// sorted by insertion; anything longer by the standard library's stable sort.
func (r *Rows) sortStable() {
	const short = 64
	if len(r.Times) > short {
		sort.Stable((*rowsByTime)(r))
		return
	}
	for i := 1; i < len(r.Times); i++ {
		for j := i; j > 0 && r.Times[j] < r.Times[j-1]; j-- {
			(*rowsByTime)(r).Swap(j, j-1)
		}
	}
}

type rowsByTime Rows

func (r *rowsByTime) Len() int           { return len(r.Times) }
func (r *rowsByTime) Less(i, j int) bool { return r.Times[i] < r.Times[j] }
func (r *rowsByTime) Swap(i, j int) {
	r.Times[i], r.Times[j] = r.Times[j], r.Times[i]
	r.Values[i], r.Values[j] = r.Values[j], r.Values[i]
	if len(r.Starts) > 0 {
		r.Starts[i], r.Starts[j] = r.Starts[j], r.Starts[i]
	}
}
