package promql

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// TestIterator walks an iterator by Next and Seek in any order and compares with a plain search.
func TestIterator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfNDistinct(rapid.Int64Range(-50, 200), 0, 60, rapid.ID[int64]).Draw(t, "times")
		slices.Sort(times)
		values := make([]uint64, len(times))
		for i := range values {
			values[i] = rapid.Uint64().Draw(t, "bits")
		}
		s := &series{points: points{times: times, values: values}}
		it := s.Iterator(nil)
		if rapid.Bool().Draw(t, "again") {
			it.Next()
			it = s.Iterator(it)
		}
		at := -1
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			var got chunkenc.ValueType
			if rapid.Bool().Draw(t, "next") {
				got = it.Next()
				at = min(at+1, len(times))
			} else {
				to := rapid.Int64Range(-60, 210).Draw(t, "seek")
				got = it.Seek(to)
				for at = max(at, 0); at < len(times) && times[at] < to; at++ {
				}
			}
			if (got == chunkenc.ValFloat) != (at < len(times)) || got != chunkenc.ValFloat && got != chunkenc.ValNone || it.Err() != nil {
				t.Fatalf("%v at %d of %d: %v", got, at, len(times), it.Err())
			}
			if got == chunkenc.ValNone {
				continue
			}
			ms, v := it.At()
			if ms != times[at] || it.AtT() != ms || math.Float64bits(v) != values[at] || it.AtST() != 0 {
				t.Fatalf("at %d: (%d, %x), want (%d, %x)", at, ms, math.Float64bits(v), times[at], values[at])
			}
		}
	})
}

// TestSlab cuts many series out of one slab: of rows in one millisecond the last stays, and no series
// changes another.
func TestSlab(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s slab
		var got, want []points
		for i := range rapid.IntRange(1, 20).Draw(t, "series") {
			var rows model.Rows
			n := rapid.OneOf(rapid.IntRange(0, 20), rapid.SampledFrom([]int{slabPoints / 4, slabPoints/4 + 1, slabPoints, slabPoints + 1})).Draw(t, "rows")
			withStarts := rapid.Bool().Draw(t, "starts")
			at := rapid.Int64Range(-5e6, 5e6).Draw(t, "first")
			step := rapid.Int64Range(1, 700_000).Draw(t, "step")
			var p points
			for j := range n {
				start := int64(0)
				if withStarts {
					start = at - 3_000_000
				}
				rows.Append(at, uint64(i)<<32|uint64(j), start)
				ms := floorMillis(at)
				if k := len(p.times); k > 0 && p.times[k-1] == ms {
					p.times, p.values = p.times[:k-1], p.values[:k-1]
					if withStarts {
						p.starts = p.starts[:k-1]
					}
				}
				p.times, p.values = append(p.times, ms), append(p.values, uint64(i)<<32|uint64(j))
				if withStarts {
					p.starts = append(p.starts, floorMillis(start))
				}
				at += step
			}
			got, want = append(got, s.copyRows(&rows, 0)), append(want, p)
		}
		for i := range got {
			if len(got[i].times) == 0 && len(want[i].times) == 0 {
				continue
			}
			if d := cmp.Diff(want[i], got[i], cmp.AllowUnexported(points{})); d != "" {
				t.Fatalf("series %d: %s", i, d)
			}
		}
	})
}

// TestValuesBitForBit: an iterator returns the stored bits, even of NaNs with a payload.
func TestValuesBitForBit(t *testing.T) {
	bits := []uint64{0, 1 << 63, 0x7ff0000000000001, 0x7ff0000000000002, 0xfff8000000000123, 0x7ff0000000000000, 1}
	var rows model.Rows
	for i, b := range bits {
		rows.Append(int64(i)*nanosPerMilli, b, 0)
	}
	var sl slab
	it := (&series{points: sl.copyRows(&rows, 0)}).Iterator(nil)
	for i, b := range bits {
		if it.Next() != chunkenc.ValFloat {
			t.Fatal("ended early")
		}
		if _, v := it.At(); math.Float64bits(v) != b {
			t.Errorf("%d: %x, want %x", i, math.Float64bits(v), b)
		}
	}
}

// TestIterationAllocatesNothing keeps the engine's inner loop off the heap.
func TestIterationAllocatesNothing(t *testing.T) {
	var rows model.Rows
	for i := range int64(1000) {
		rows.Append(i*nanosPerMilli, uint64(i), 0)
	}
	var sl slab
	s := &series{points: sl.copyRows(&rows, 0)}
	it := s.Iterator(nil)
	alloctest.AtMost(t, 0, 100, func() {
		it = s.Iterator(it)
		for to := int64(0); it.Seek(to) != chunkenc.ValNone; to += 15 {
			it.At()
		}
	})
}
