package promql

import (
	"math"
	"testing"

	upstream "github.com/prometheus/prometheus/promql"
	"pgregory.net/rapid"
)

// TestOverTime: functions of the values alone equal upstream's, bit for bit, for any values.
func TestOverTime(t *testing.T) {
	odd := []float64{0, math.Copysign(0, -1), 5e-324, -5e-324, 2.2250738585072014e-308, 1, -1, 0.1, -0.3, 1 << 53, 1e16, -1e16, 1e300, -1e300, math.MaxFloat64,
		-math.MaxFloat64, math.MaxFloat64 / 2, math.Inf(1), math.Inf(-1), math.NaN()}
	whole := 0
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SampledFrom([]string{"near", "any", "odd", "large"}).Draw(t, "kind")
		value := rapid.Custom(func(t *rapid.T) float64 {
			switch kinds {
			case "near":
				return rapid.Float64Range(-1e3, 1e3).Draw(t, "value")
			case "odd":
				return rapid.SampledFrom(odd).Draw(t, "value")
			case "large": // sums overflow and return
				return rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "value")
			}
			return math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		})
		values := rapid.SliceOfN(value, 1, 40).Draw(t, "values")
		series := upstream.Series{}
		var bits []uint64
		for i, v := range values {
			series.Floats = append(series.Floats, upstream.FPoint{T: int64(i), F: v})
			bits = append(bits, math.Float64bits(v))
		}
		if _, _, ok := addUp(bits); ok {
			whole++
		}
		for name, own := range ownOverTime {
			want, _ := upstream.FunctionCalls[name](nil, upstream.Matrix{series}, nil, &upstream.EvalNodeHelper{})
			got := own(bits)
			if len(want) != 1 || math.Float64bits(got) != math.Float64bits(want[0].F) && !(math.IsNaN(got) && math.IsNaN(want[0].F)) {
				t.Fatalf("%s of %v: got %v (%x), want %v", name, values, got, math.Float64bits(got), want)
			}
		}
	})
	if whole == 0 {
		t.Error("no sum was finite")
	}
}

func BenchmarkAverage(b *testing.B) {
	bits := make([]uint64, 60)
	v := 100.0
	for i := range bits {
		v += float64(i%7)*0.25 - 0.7
		bits[i] = math.Float64bits(v)
	}
	b.ReportAllocs()
	for b.Loop() {
		average(bits)
	}
}
