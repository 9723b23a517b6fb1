package series

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/store/part/file"
)

func TestRankRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const series = 300
		draw := func(name string) (rankRuns, []bool) {
			u := rankUnion{series: series, memory: new(scratch)}
			in := make([]bool, series)
			longest := rapid.SampledFrom([]int{3, series}).Draw(rt, "longest") // short runs are many
			for range rapid.IntRange(0, 4*fewRuns).Draw(rt, name) {
				from := rapid.IntRange(0, series-1).Draw(rt, "from")
				to := rapid.IntRange(from+1, min(from+longest, series)).Draw(rt, "to")
				u.add(uint32(from), uint32(to))
				for k := from; k < to; k++ {
					in[k] = true
				}
			}
			union, err := u.result()
			if err != nil {
				rt.Fatal(err)
			}
			return union, in
		}
		a, inA := draw("a")
		b, inB := draw("b")
		set := newRankSet(series, b)
		check := func(what string, got rankRuns, want func(k int) bool) {
			var ranks file.Ranks
			for k := range series {
				if want(k) {
					ranks = append(ranks, uint32(k))
				}
			}
			if !slices.Equal(got.ranks(0), ranks) || got.count() != len(ranks) {
				rt.Fatalf("%s of %v and %v is %v", what, a, b, got)
			}
		}
		check("union", a, func(k int) bool { return inA[k] })
		check("intersection", a.intersect(b), func(k int) bool { return inA[k] && inB[k] })
		check("difference", a.subtract(b), func(k int) bool { return inA[k] && !inB[k] })
		for _, run := range a {
			if got := set.meets(run.from, run.to); got != slices.Contains(inB[run.from:run.to], true) {
				rt.Fatalf("%v meets %v: %t", b, run, got)
			}
		}
	})
}
