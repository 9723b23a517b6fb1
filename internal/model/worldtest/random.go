package worldtest

import (
	"math"

	"pgregory.net/rapid"
)

// Random is a source of random numbers: a *rand.Rand, or Drawn.
type Random interface {
	// IntN and Int64N return a number in [0, n).
	IntN(n int) int
	Int64N(n int64) int64
	Uint64() uint64
	// NormFloat64 returns a normally distributed number.
	NormFloat64() float64
}

// Drawn draws numbers from rapid, which can replay and shrink them.
type Drawn struct{ T *rapid.T }

// IntN implements Random.
func (d Drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

// Int64N implements Random.
func (d Drawn) Int64N(n int64) int64 { return rapid.Int64Range(0, n-1).Draw(d.T, "n") }

// Uint64 implements Random.
func (d Drawn) Uint64() uint64 { return rapid.Uint64().Draw(d.T, "bits") }

// NormFloat64 implements Random.
func (d Drawn) NormFloat64() float64 {
	return rapid.Float64Range(-math.MaxInt32, math.MaxInt32).Draw(d.T, "number")
}
