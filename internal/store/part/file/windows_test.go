package file

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

func TestWindowsOfTimes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := Windows{
			Start:  rapid.SampledFrom([]int64{0, -100, 1700000000e9, math.MinInt64, math.MaxInt64 - 200}).Draw(rt, "start"),
			Length: rapid.Int64Range(1, 60).Draw(rt, "length"),
			Count:  rapid.IntRange(1, MaxWindows).Draw(rt, "count"),
		}
		if !w.Valid() {
			if w.Start < math.MaxInt64-200 {
				rt.Fatalf("%+v are refused", w)
			}
			return
		}
		times := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) int64 {
			return max(w.Start, math.MinInt64+100) + rapid.Int64Range(-100, 3000).Draw(rt, "time")
		}), 0, 30).Draw(rt, "times")
		slices.Sort(times)
		want := uint64(0)
		for _, at := range times {
			k := 0
			for k < w.Count-1 && at >= w.Start && at-w.Start >= int64(k+1)*w.Length {
				k++
			}
			want |= 1 << k
			if got := w.MaskOfRange(model.TimeRange{Min: at, Max: at}); got != 1<<k {
				rt.Fatalf("%+v: window %x of %d, should be %d", w, got, at, k)
			}
		}
		if got := w.MaskOf(times); got != want {
			rt.Fatalf("%+v: windows %x of %v, should be %x", w, got, times, want)
		}
	})
}
