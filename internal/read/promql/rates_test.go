package promql

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestStaysPositive: the shortcut never decides differently from the division that it saves.
func TestStaysPositive(t *testing.T) {
	// Zero is 6,000 s away and the start 1 s: a shortcut that never applies would pass below.
	if e := (extrapolation{sampled: 60, toStart: 1}); !e.staysPositive(100, 1) {
		t.Error("the shortcut does not apply where it is sure")
	}
	rapid.Check(t, func(t *rapid.T) {
		odd := []float64{5e-324, 3e-308, 1e-300, 1e-160, 1, 1e160, math.MaxFloat64, math.Inf(1)}
		draw := func(name string, min, max float64) float64 {
			if rapid.IntRange(0, 4).Draw(t, name+" is odd") == 0 {
				return rapid.SampledFrom(odd).Draw(t, name)
			}
			return rapid.Float64Range(min, max).Draw(t, name)
		}
		e := extrapolation{
			sampled: float64(rapid.Int64Range(1, 1e12).Draw(t, "sampled")) / 1000,
			toStart: float64(rapid.Int64Range(-1000, 1e12).Draw(t, "to start")) / 1000,
		}
		increase, first := draw("increase", 1e-6, 1e9), draw("first", 0, 1e12)
		if rapid.Bool().Draw(t, "near") {
			first = e.toStart * increase / e.sampled * (1 + rapid.Float64Range(-2e-6, 2e-6).Draw(t, "off"))
		}
		if !(increase > 0 && first >= 0) || !e.staysPositive(first, increase) {
			return
		}
		if toZero := e.sampled * (first / increase); toZero < e.toStart {
			t.Fatalf("%g seconds to zero, %g to the start, with %g of %g in %g s", toZero, e.toStart, increase, first, e.sampled)
		}
	})
}
