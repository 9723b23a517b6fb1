package promql

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// edges are times at which units overflow or cross zero.
var edges = []int64{math.MinInt64, math.MinInt64 + 1, -1_000_001, -1_000_000, -999_999, -1, 0, 1, 999_999, 1_000_000, math.MaxInt64 - 1, math.MaxInt64}

// near draws any int64, or one near an edge of either unit.
func near(t *rapid.T, label string) int64 {
	switch rapid.IntRange(0, 2).Draw(t, label+" kind") {
	case 0:
		return rapid.Int64().Draw(t, label)
	case 1:
		return rapid.SampledFrom(edges).Draw(t, label)
	}
	base := rapid.SampledFrom([]int64{math.MinInt64 / nanosPerMilli, 0, math.MaxInt64 / nanosPerMilli}).Draw(t, label+" base")
	return base + rapid.Int64Range(-3, 3).Draw(t, label)
}

// TestRangeOf: a row is in the range of nanoseconds if and only if its time, cut to milliseconds, is in the
// range of milliseconds.
func TestRangeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mint, maxt := near(t, "mint"), near(t, "maxt")
		r := rangeOf(mint, maxt)
		at := near(t, "at")
		if rapid.Bool().Draw(t, "at a bound") {
			at = rapid.SampledFrom([]int64{r.Min, r.Max}).Draw(t, "bound")
			at += rapid.Int64Range(-1, 1).Draw(t, "off") // may wrap around, which is a valid time
		}
		ms := floorMillis(at)
		if got, want := r.Contains(at), mint <= ms && ms <= maxt; got != want {
			t.Fatalf("[%d, %d] ms is %v; %d ns (%d ms) in it: %t", mint, maxt, r, at, ms, got)
		}
	})
}

func TestFloorMillis(t *testing.T) {
	for ns, want := range map[int64]int64{0: 0, 1: 0, 999_999: 0, 1_000_000: 1, -1: -1, -1_000_000: -1, -1_000_001: -2,
		math.MinInt64: -9223372036855, math.MaxInt64: 9223372036854} {
		if got := floorMillis(ns); got != want {
			t.Errorf("%d: %d, want %d", ns, got, want)
		}
	}
}
