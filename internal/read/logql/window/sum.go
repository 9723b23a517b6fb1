package window

import "math"

// exactSum is the exact sum of numbers, in whatever order they come: high + low + rest, none of which
// overlaps another. Mostly the first two are enough. The zero value is the sum of nothing.
type exactSum struct {
	high, low float64
	rest      *restOfSum // nil: none
}

// restOfSum is what two floats cannot hold.
type restOfSum struct {
	terms []float64
	// huge is the sum of the numbers beyond hugeFrom, divided by hugeScale.
	huge               []float64
	plus, minus, isNaN bool // infinities and NaN were among the numbers
}

// Sums of fewer than 2^64 numbers below hugeFrom cannot overflow.
const (
	hugeFrom  = 0x1p950
	hugeScale = 0x1p100
)

// restBytes is about what a restOfSum costs. The terms of a sum are few: an exponent has 11 bits, so that no
// more than 40 floats do not overlap.
const restBytes = 256

func (s *exactSum) add(v float64) {
	high, low := twoSum(s.high, v)
	low, left := twoSum(s.low, low)
	if left == 0 && high < hugeFrom && high > -hugeFrom && v < hugeFrom && v > -hugeFrom {
		s.high, s.low = twoSum(high, low)
		return
	}
	s.addSlowly(v)
}

func (s *exactSum) addSlowly(v float64) {
	if s.rest == nil {
		s.rest = new(restOfSum)
	}
	r := s.rest
	switch {
	case math.IsNaN(v):
		r.isNaN = true
	case math.IsInf(v, 1):
		r.plus = true
	case math.IsInf(v, -1):
		r.minus = true
	case v >= hugeFrom || v <= -hugeFrom:
		r.huge = grow(r.huge, v/hugeScale)
	default:
		r.terms = grow(r.terms, v)
	}
}

// merge adds another sum.
func (s *exactSum) merge(o *exactSum) {
	s.add(o.high)
	s.add(o.low)
	if o.rest == nil {
		return
	}
	for _, v := range o.rest.terms {
		s.add(v)
	}
	if s.rest == nil {
		s.rest = new(restOfSum)
	}
	for _, v := range o.rest.huge {
		s.rest.huge = grow(s.rest.huge, v)
	}
	s.rest.plus, s.rest.minus, s.rest.isNaN = s.rest.plus || o.rest.plus, s.rest.minus || o.rest.minus, s.rest.isNaN || o.rest.isNaN
}

// over returns the sum divided by n, which is at least 1: the sum is rounded once, and the division once.
func (s *exactSum) over(n float64) float64 {
	r := s.rest
	if r == nil {
		return (s.high + s.low) / n
	}
	switch {
	case r.isNaN || r.plus && r.minus:
		return math.NaN()
	case r.plus:
		return math.Inf(1)
	case r.minus:
		return math.Inf(-1)
	}
	terms := grow(grow(append([]float64(nil), r.terms...), s.high), s.low)
	if len(r.huge) == 0 {
		return rounded(terms) / n
	}
	huge := append([]float64(nil), r.huge...)
	for _, v := range terms {
		huge = grow(huge, v/hugeScale)
	}
	sum := rounded(huge)
	if math.Abs(sum) < 1 { // the huge ones are gone, and dividing has cost the others their last bits
		for _, v := range r.huge {
			terms = grow(terms, v*hugeScale)
		}
		return rounded(terms) / n
	}
	return sum / n * hugeScale
}

// grow adds a number to floats that do not overlap and are in ascending order of size, so that they stay so
// and their sum is exact. (Shewchuk, Adaptive Precision Floating-Point Arithmetic, 1997.)
func grow(terms []float64, v float64) []float64 {
	n := 0
	for _, t := range terms {
		sum, left := twoSum(v, t)
		if left != 0 {
			terms[n] = left
			n++
		}
		v = sum
	}
	terms = terms[:n]
	if v != 0 {
		terms = append(terms, v)
	}
	return terms
}

// rounded returns the float nearest to the sum of floats that do not overlap.
func rounded(terms []float64) float64 {
	n := len(terms) - 1
	if n < 0 {
		return 0
	}
	sum, left := terms[n], 0.0
	for n--; n >= 0; n-- {
		if sum, left = twoSum(sum, terms[n]); left != 0 {
			break
		}
	}
	// Half way between two floats, what is further below decides.
	if n > 0 && left != 0 && (left < 0) == (terms[n-1] < 0) {
		if twice := 2 * left; sum+twice-sum == twice {
			sum += twice
		}
	}
	return sum
}

// twoSum returns a + b rounded, and what rounding has left out. (Knuth.)
func twoSum(a, b float64) (sum, left float64) {
	sum = a + b
	v := sum - a
	return sum, (a - (sum - v)) + (b - v)
}
