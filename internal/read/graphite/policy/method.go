package policy

import (
	"fmt"
	"math"
)

// Method makes one point of several.
type Method uint8

// The methods of whisper. AvgZero counts unknown points as 0; the last two compare absolute values.
const (
	Average Method = iota
	Sum
	Last
	Max
	Min
	AvgZero
	AbsMax
	AbsMin
)

func methodNames() []string {
	return []string{"average", "sum", "last", "max", "min", "avg_zero", "absmax", "absmin"}
}

// String returns the name of the method in storage-aggregation.conf.
func (m Method) String() string { return methodNames()[m] }

// ParseMethod returns the method of a name. As in go-carbon, avg is average.
func ParseMethod(name string) (Method, error) {
	if name == "avg" {
		return Average, nil
	}
	for i, n := range methodNames() {
		if n == name {
			return Method(i), nil
		}
	}
	return 0, fmt.Errorf("unknown method %q: expected average, sum, last, max, min, avg_zero, absmax or absmin", name)
}

// gathered is what is known of the points that make one.
type gathered struct {
	known int64
	value float64 // of a sum: without its division
}

// add adds a point that stands for so many slots. The order and the first value are those of Python's sum,
// max and min, so that even -0 and NaN give the same bits.
func (g *gathered) add(m Method, v float64, slots int64) {
	first := g.known == 0
	g.known += slots
	switch m {
	case Average, AvgZero:
		if slots != 1 {
			v *= float64(slots)
		}
		g.value += v
	case Sum:
		g.value += v
	default:
		if first || m == Last || m == Max && v > g.value || m == Min && v < g.value ||
			m == AbsMax && math.Abs(v) > math.Abs(g.value) || m == AbsMin && math.Abs(v) < math.Abs(g.value) {
			g.value = v
		}
	}
}

// result returns the point, of so many slots in all.
func (g *gathered) result(m Method, slots int64) float64 {
	switch m {
	case Average:
		return g.value / float64(g.known)
	case AvgZero:
		return g.value / float64(slots)
	default:
		return g.value
	}
}
