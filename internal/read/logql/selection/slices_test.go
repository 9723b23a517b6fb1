package selection

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

// TestTimeSlices: slices cover the range, share nothing, and come in the order of the direction. They are
// few.
func TestTimeSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edge := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0}), rapid.Int64Range(-1e15, 1e15))
		a, b := edge.Draw(t, "a"), edge.Draw(t, "b")
		r := model.TimeRange{Min: min(a, b), Max: max(a, b)}
		d := Direction(rapid.IntRange(0, 1).Draw(t, "direction"))
		x := &Execution{
			Plan: Plan{Now: edge.Draw(t, "now"), Program: &Program{KeepsAll: rapid.Bool().Draw(t, "keeps all")}},
			sink: &someSink{limit: rapid.IntRange(0, 1).Draw(t, "limit")},
		}
		left := r
		s := newTimeSlices(d, r, x)
		for n := 0; ; n++ {
			got, ok := s.next()
			if !ok {
				t.Fatalf("%d to %d are left of %d to %d", left.Min, left.Max, r.Min, r.Max)
			}
			if got.Min > got.Max || n > 40 {
				t.Fatalf("slice %d: %d to %d", n, got.Min, got.Max)
			}
			if d == Backward {
				if got.Max != left.Max || got.Min < left.Min {
					t.Fatalf("%+v of %+v", got, left)
				}
				if got.Min == left.Min {
					break
				}
				left.Max = got.Min - 1
				continue
			}
			if got.Min != left.Min || got.Max > left.Max {
				t.Fatalf("%+v of %+v", got, left)
			}
			if got.Max == left.Max {
				break
			}
			left.Min = got.Max + 1
		}
		if got, ok := s.next(); ok {
			t.Fatalf("one more: %+v", got)
		}
	})
}
