package window

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// TestSelection finds what sorting finds, for lists that defeat some choices of pivots, too.
func TestSelection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64(), rapid.Just(uint64(math.MaxUint64))), 1, 300).Draw(t, "keys")
		switch rapid.IntRange(0, 3).Draw(t, "order") {
		case 0:
			slices.Sort(keys)
		case 1:
			slices.Sort(keys)
			slices.Reverse(keys)
		case 2: // an organ pipe
			slices.Sort(keys)
			slices.Reverse(keys[len(keys)/2:])
		}
		sorted := slices.Sorted(slices.Values(keys))
		s := selection{keys: keys, known: -1}
		for range 4 {
			i := rapid.IntRange(0, len(keys)-1).Draw(t, "index")
			for _, i := range []int{i, min(i+1, len(keys)-1)} {
				if got, want := s.value(i), valueOf(sorted[i]); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
					t.Fatalf("value %d is %v, want %v", i, got, want)
				}
			}
		}
	})
}

func TestOrderOf(t *testing.T) {
	values := []float64{math.NaN(), math.Inf(-1), -math.MaxFloat64, -1, -5e-324, math.Copysign(0, -1), 0, 5e-324, 1, math.MaxFloat64, math.Inf(1)}
	for i, v := range values {
		if got := valueOf(orderOf(v)); math.Float64bits(got) != math.Float64bits(v) && !math.IsNaN(v) {
			t.Errorf("%v becomes %v", v, got)
		}
		if i > 0 && orderOf(values[i-1]) >= orderOf(v) {
			t.Errorf("%v does not come before %v", values[i-1], v)
		}
	}
}

// BenchmarkQuantile computes quantiles of 100,000 samples over windows that overlap as often as it says.
func BenchmarkQuantile(b *testing.B) {
	for _, overlaps := range []int64{1, 5, 20, 60} {
		b.Run(fmt.Sprint(overlaps), func(b *testing.B) {
			const steps, step = 360, 1000
			c := NewCells(0, step, steps, overlaps*step, 0)
			r := rand.New(rand.NewPCG(1, 2))
			s := Aggregation{Op: syntax.QuantileOverTime, Unwrap: true, Quantile: 0.99}.New(c).(*quantile)
			cursor := c.NewCursor()
			for range 100_000 {
				at := r.Int64N(steps*step) - step
				if cell, _ := cursor.Find(at); cell >= 0 {
					if err := s.Add(cell, &Sample{Time: at, Value: r.Float64() * 1000}, free); err != nil {
						b.Fatal(err)
					}
				}
			}
			samples := slices.Clone(s.samples)
			b.ReportAllocs()
			for b.Loop() {
				copy(s.samples, samples)
				s.Values(func(int, float64) {})
			}
		})
	}
}
