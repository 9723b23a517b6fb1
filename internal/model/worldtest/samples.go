package worldtest

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Specials are the bits of floats that codecs and merges may treat specially: stale markers, other NaNs, both
// zeroes, infinities, and values at the limits of decimals.
var Specials = []uint64{model.StaleNaN, 0, 1 << 63, math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), 0x7ff8000000000001,
	0x7ff0000000000001, 0xfff8000000000123, 0x7ff800000000beef, 1, math.Float64bits(math.MaxFloat64), math.Float64bits(1e15), math.Float64bits(1 << 53), math.Float64bits(0.1)}

// Course is a course of the values of a series.
type Course struct {
	Name string
	// Begin returns a function that gives the bits of value after value.
	Begin func(r Random) func(i int) uint64
}

// Courses are such that each codec, and each form of a column of integers, is the best for one of them.
var Courses = []Course{
	floats("constant", func(Random) func(int) float64 { return func(int) float64 { return 42 } }),
	floats("constant-irrational", func(Random) func(int) float64 { return func(int) float64 { return math.Pi } }),
	floats("counter", func(r Random) func(int) float64 {
		v := 0.0
		return func(int) float64 { v += float64(r.IntN(1000)); return v }
	}),
	floats("regular", func(Random) func(int) float64 { return func(i int) float64 { return float64(15 * i) } }),
	floats("steps", func(r Random) func(int) float64 {
		v := 0.0
		return func(int) float64 {
			if r.IntN(50) == 0 {
				v = float64(r.IntN(1 << 30))
			}
			return v
		}
	}),
	floats("bytes", func(r Random) func(int) float64 {
		return func(int) float64 { return float64(1<<34 + 4096*r.Int64N(1<<20)) }
	}),
	floats("digits", func(r Random) func(int) float64 { return func(int) float64 { return float64(r.IntN(5)) } }),
	floats("outliers", func(r Random) func(int) float64 {
		return func(i int) float64 { return float64(r.IntN(8) + i%97/96*r.IntN(1<<40)) }
	}),
	floats("decimals", func(r Random) func(int) float64 {
		return func(int) float64 { return float64(r.IntN(100_000)-50_000) / 1000 }
	}),
	floats("decimals-but-some", func(r Random) func(int) float64 {
		return func(i int) float64 {
			switch i % 40 {
			case 7:
				return math.Float64frombits(model.StaleNaN)
			case 23:
				return math.Copysign(0, -1)
			}
			return float64(r.IntN(10_000)) / 100
		}
	}),
	floats("seconds", func(r Random) func(int) float64 {
		v := 0.0
		return func(int) float64 {
			for range r.IntN(5) {
				v += float64(r.IntN(1e9)) / 1e9
			}
			return v
		}
	}),
	floats("sometimes", func(r Random) func(int) float64 {
		v := 0
		return func(int) float64 { v += r.IntN(3) / 2 * r.IntN(1<<20); return float64(v) }
	}),
	floats("smooth", func(Random) func(int) float64 {
		v := 1000.1
		return func(i int) float64 {
			if i%3 == 0 {
				v = math.Float64frombits(math.Float64bits(v) ^ uint64(i%5)<<20)
			}
			return v
		}
	}),
	floats("whole-bits", func(r Random) func(int) float64 {
		return func(int) float64 { return math.Ldexp(1+float64(r.IntN(64))/64, r.IntN(3)+300) }
	}),
	floats("walk", func(r Random) func(int) float64 {
		v := 0.0
		return func(int) float64 { v += r.NormFloat64(); return v }
	}),
	floats("normal", func(r Random) func(int) float64 { return func(int) float64 { return r.NormFloat64() } }),
	{"random", func(r Random) func(int) uint64 { return func(int) uint64 { return r.Uint64() } }},
	{"specials", func(r Random) func(int) uint64 {
		return func(int) uint64 { return Specials[r.IntN(len(Specials))] }
	}},
	{"none-but-nan", func(Random) func(int) uint64 { return func(int) uint64 { return 0x7ff8000000001234 } }},
}

func floats(name string, begin func(r Random) func(i int) float64) Course {
	return Course{name, func(r Random) func(int) uint64 {
		next := begin(r)
		return func(i int) uint64 { return math.Float64bits(next(i)) }
	}}
}

// Value returns the bits of value i of any course.
func Value(r Random, i int) uint64 { return Courses[r.IntN(len(Courses))].Begin(r)(i) }

// Clock is a course of the times of a series.
type Clock struct {
	Name string
	Next func(r Random, at int64) int64
}

// Clocks are regular and irregular scrapes.
var Clocks = []Clock{
	{"regular", func(_ Random, at int64) int64 { return at + int64(time.Second) }},
	{"jitter", func(r Random, at int64) int64 { return at + int64(time.Second) + r.Int64N(3)*int64(time.Millisecond) }},
	{"nanoseconds", func(r Random, at int64) int64 { return at + 1 + r.Int64N(int64(time.Second)) }},
	{"gaps", func(r Random, at int64) int64 { return at + int64(time.Second)*(1+r.Int64N(20)/19*r.Int64N(500)) }},
}

// Floats returns up to n normalised floats of one of the Courses, at times of one of the Clocks. A clock of
// len(Clocks) means any times.
func Floats(r *rand.Rand, n, course, clock int) model.Rows {
	var rows model.Rows
	next := Courses[course].Begin(r)
	at := []int64{0, 1700000000e9, -5e9, math.MinInt64}[r.IntN(4)]
	starts := r.IntN(4)
	for i := range n {
		switch {
		case clock == len(Clocks):
			at = int64(r.Uint64())
		case i > 0:
			at = Clocks[clock].Next(r, at)
		}
		s := int64(0)
		if starts == 0 && i%3 > 0 {
			s = at - 1
		}
		if starts == 1 {
			s = 12345
		}
		rows.Append(at, next(i), s)
	}
	rows.Normalize()
	return rows
}
