package worldtest

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Specials are the bits of floats that codecs and merges may treat specially: stale markers, other NaNs, both
// zeroes, infinities, and values at the limits of decimals.
var Specials = []uint64{model.StaleNaN, 0, 1 << 63, math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), 0x7ff8000000000001,
	0xfff8000000000123, 1, math.Float64bits(math.MaxFloat64), math.Float64bits(1 << 53), math.Float64bits(0.1)}

// ValueKinds is the number of kinds of Value.
const ValueKinds = 8

// Value returns the bits of value i of a series of one of ValueKinds kinds.
func Value(r Random, kind int, i int) uint64 {
	switch kind {
	case 0:
		return math.Float64bits(float64(r.IntN(100)))
	case 1:
		return math.Float64bits(float64(i * (1 + r.IntN(3))))
	case 2:
		return math.Float64bits(float64(r.IntN(200000)-100000) / 100)
	case 3:
		return r.Uint64()
	case 4:
		return math.Float64bits(r.NormFloat64())
	case 5:
		return Specials[r.IntN(len(Specials))]
	case 6:
		if r.IntN(20) == 0 {
			return Specials[r.IntN(len(Specials))]
		}
		return math.Float64bits(float64(1e6+i*100) / 1000)
	}
	return math.Float64bits(42)
}

// Floats returns up to n normalised floats of one of ValueKinds kinds. The clock is 0 for regular times, 1
// for times with jitter, 2 for irregular times and 3 for any times.
func Floats(r *rand.Rand, n, kind, clock int) model.Rows {
	var rows model.Rows
	at := []int64{0, 1700000000e9, -5e9, math.MinInt64}[r.IntN(4)]
	starts := r.IntN(4)
	for i := range n {
		switch {
		case i == 0:
		case clock == 0:
			at += 60e9
		case clock == 1:
			at += 15e9 + (r.Int64N(7)-3)*1e6
		case clock == 2:
			at += 1 + r.Int64N(1e12)
		default:
			at = int64(r.Uint64())
		}
		s := int64(0)
		if starts == 0 && i%3 > 0 {
			s = at - 1
		}
		if starts == 1 {
			s = 12345
		}
		rows.Append(at, Value(r, kind, i), s)
	}
	rows.Normalize()
	return rows
}

// SameRows compares rows bit for bit. An unknown start may be missing or zero.
func SameRows(a, b *model.Rows) bool {
	if !slices.Equal(a.Times, b.Times) {
		return false
	}
	for i := range a.Times {
		if a.Start(i) != b.Start(i) || !a.Same(i, b, i) {
			return false
		}
	}
	return true
}
