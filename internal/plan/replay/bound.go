package replay

import (
	"cmp"
	"slices"

	"github.com/shaledb/shale/internal/plan/evict"
	"github.com/shaledb/shale/internal/plan/trace"
)

// NextRequests returns, by request, the index of the next request for the same key.
func NextRequests(t *trace.Trace) []uint32 {
	next, last := make([]uint32, len(t.Requests)), make([]uint32, len(t.Sizes))
	for k := range last {
		last[k] = evict.Never
	}
	for i := len(t.Requests) - 1; i >= 0; i-- {
		key := t.Requests[i].Key
		next[i], last[key] = last[key], uint32(i)
	}
	return next
}

// Bound returns, for each capacity in bytes, a number of hits among the reads that count that no cache of
// this capacity can exceed (PFOO-L of Berger, Beckmann and Harchol-Balter). For a hit, a value must stay in
// the cache from the request before. That takes its size times this interval, and all intervals together
// have the capacity times the length of the trace. So as many hits as that allows, the cheapest first, are
// a bound. Space before the end of the warm-up is free, which only raises the bound.
func Bound(t *trace.Trace, next []uint32, capacities []int64) []int64 {
	begin, _ := slices.BinarySearchFunc(t.Requests, t.WarmUp, func(r trace.Request, at int64) int { return cmp.Compare(r.At, at) })
	var costs []float64
	for i, n := range next {
		if n == evict.Never || int(n) < begin || t.Requests[n].Write {
			continue
		}
		costs = append(costs, float64(t.Sizes[t.Requests[i].Key])*float64(int(n)-max(i, begin)))
	}
	slices.Sort(costs)
	hits := make([]int64, len(capacities))
	for c, capacity := range capacities {
		room := float64(capacity) * float64(len(t.Requests)-begin)
		for _, cost := range costs {
			if room -= cost; room < 0 {
				break
			}
			hits[c]++
		}
	}
	return hits
}
