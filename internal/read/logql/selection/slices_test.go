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
		if d == Backward && rapid.Bool().Draw(t, "starts") {
			s.startAt(edge.Draw(t, "at"))
		}
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

// TestFoundSlices: the lines of a slice say how long the next one must be.
func TestFoundSlices(t *testing.T) {
	const unit = int64(firstSliceOfAll)
	for _, test := range []struct{ lines, missing, want int64 }{
		{0, 1000, 8 * unit}, {enoughFound - 1, 1000, 8 * unit}, {100, 200, 3 * unit}, {100, 10, unit}, {20, 10_000, 64 * unit}, {100, 2000, 30 * unit},
	} {
		x := &Execution{Plan: Plan{Now: 1e18, Program: &Program{KeepsAll: true}}, sink: &someSink{limit: 1}}
		s := newTimeSlices(Backward, model.TimeRange{Min: 0, Max: 1e18}, x)
		first, _ := s.next()
		s.found(test.lines, test.missing)
		next, _ := s.next()
		if first.Max-first.Min+1 != unit || next.Max-next.Min+1 != test.want {
			t.Errorf("%d lines, %d are missing: %d after %d", test.lines, test.missing, next.Max-next.Min+1, first.Max-first.Min+1)
		}
	}
}
