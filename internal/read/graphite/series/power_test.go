package series

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestPow: powers of whole exponents are the nearest float of the exact value, or the one next to it.
func TestPow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		a, n := rng.NormFloat64()*math.Pow(10, float64(rng.IntN(5)-2)), rng.IntN(400)-200
		exact := big.NewFloat(1).SetPrec(300)
		for range max(n, -n) {
			exact.Mul(exact, big.NewFloat(a))
		}
		if n < 0 {
			exact.Quo(big.NewFloat(1).SetPrec(300), exact)
		}
		want, _ := exact.Float64()
		got := Pow(a, float64(n))
		if math.Abs(want) < 0x1p-1000 || math.IsInf(want, 0) {
			continue // math.Pow's result
		}
		if got != want && got != math.Nextafter(want, got) {
			t.Fatalf("%v to the power of %d is %v, want %v", a, n, got, want)
		}
	}
}

// TestPowSpecial: what is not a finite power is math.Pow's.
func TestPowSpecial(t *testing.T) {
	for _, a := range []float64{0, math.Copysign(0, -1), 1, -1, 2, -2, 0.5, math.Inf(1), math.Inf(-1), math.NaN(), 1e300, -1e300, 1e-300} {
		for _, b := range []float64{0, 1, -1, 2, 3, -2, -3, 0.5, -0.5, 2.5, -2.5, 1e3, -1e3, 1e9, -1e9, math.Inf(1), math.Inf(-1), math.NaN()} {
			if got, want := Pow(a, b), math.Pow(a, b); got != want && !(math.IsNaN(got) && math.IsNaN(want)) && math.Abs(got-want) > math.Abs(want)*1e-13 {
				t.Errorf("%v to the power of %v is %v, want %v", a, b, got, want)
			}
		}
	}
}
