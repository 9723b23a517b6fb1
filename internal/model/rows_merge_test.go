package model

import (
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// TestMergeRuns compares with a stable sort of the standard library, each row with what makes it that row in
// every column.
func TestMergeRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Rows
		starts, kinds := rapid.Bool().Draw(t, "starts"), rapid.Bool().Draw(t, "kinds")
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			at := rapid.Int64Range(-300, 300).Draw(t, "first")
			for range rapid.IntRange(1, 120).Draw(t, "rows") {
				n := uint64(len(r.Times))
				r.Times, r.Values = append(r.Times, at), append(r.Values, n)
				if starts {
					r.Starts = append(r.Starts, int64(n))
				}
				if kinds {
					r.Kinds = append(r.Kinds, Kind(n%2))
				}
				at += rapid.SampledFrom([]int64{-5, 0, 1, 1, 1, 2, 50}).Draw(t, "step")
			}
		}
		order := make([]int, len(r.Times))
		for i := range order {
			order[i] = i
		}
		times := slices.Clone(r.Times)
		sort.SliceStable(order, func(i, j int) bool { return times[order[i]] < times[order[j]] })
		r.mergeRuns()
		for i, was := range order {
			if r.Times[i] != times[was] || r.Values[i] != uint64(was) || starts && r.Starts[i] != int64(was) || kinds && r.Kinds[i] != Kind(was%2) {
				t.Fatalf("row %d is %d at %d, want %d at %d", i, r.Values[i], r.Times[i], was, times[was])
			}
		}
	})
}

// BenchmarkMergeRuns sorts a series that two parts have in turn, in stretches.
func BenchmarkMergeRuns(b *testing.B) {
	var mixed Rows
	for part := range int64(2) {
		for i := range int64(20) {
			for k := range int64(1000) {
				mixed.Append((2*i+part)*1000+k, 1, 0)
			}
		}
	}
	var r Rows
	for b.Loop() {
		r.Reset()
		r.AppendRows(&mixed, 0, mixed.Len())
		r.Normalize()
	}
}
