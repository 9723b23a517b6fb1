package promql

import (
	"math"

	"github.com/prometheus/prometheus/util/kahansum"
)

// ownOverTime are the functions of the values of a window alone that are computed here without upstream's
// implementation, which wants points: of a query for the averages of one long series that was a fifth of the
// time. A window has a value at least. Answers are upstream's, bit for bit.
var ownOverTime = map[string]func(bits []uint64) float64{
	"avg_over_time":     average,
	"sum_over_time":     total,
	"min_over_time":     minimum,
	"max_over_time":     maximum,
	"count_over_time":   func(bits []uint64) float64 { return float64(len(bits)) },
	"present_over_time": func([]uint64) float64 { return 1 },
}

// computeOverTime gives what the node's function makes of the values of each window that is not empty.
func (w *windows) computeOverTime() {
	w.locate(1)
	for _, s := range w.located.windows {
		w.at, w.values = append(w.at, s.step), append(w.values, w.own(w.bits[s.lo:s.hi]))
	}
}

// addUp adds numbers up, and what was lost by rounding each sum. It is Kahan's summation as improved by
// Neumaier, as long as that does not overflow: the error of a sum is a number itself, and is found without
// asking which summand is the greater (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B), which a
// processor would guess.
func addUp(bits []uint64) (sum, lost float64, ok bool) {
	sum = math.Float64frombits(bits[0])
	for _, b := range bits[1:] {
		v := math.Float64frombits(b)
		t := sum + v
		most := t - sum
		lost += (sum - (t - most)) + (v - most)
		sum = t
	}
	return sum, lost, finite(sum) && finite(lost)
}

func finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

func total(bits []uint64) float64 {
	if s, lost, ok := addUp(bits); ok {
		return s + lost
	}
	var s, lost float64
	for _, b := range bits {
		s, lost = kahansum.Inc(math.Float64frombits(b), s, lost)
	}
	if math.IsInf(s, 0) {
		return s
	}
	return s + lost
}

// average is the sum by the count or, where the sum overflows, a mean that is kept from then on.
func average(bits []uint64) float64 {
	if s, lost, ok := addUp(bits); ok {
		count := float64(len(bits))
		return s/count + lost/count
	}
	var mean, lost float64
	s, count, overflows := math.Float64frombits(bits[0]), 1.0, false
	for i, b := range bits[1:] {
		v := math.Float64frombits(b)
		count = float64(i + 2)
		if !overflows {
			more, c := kahansum.Inc(v, s, lost)
			if !math.IsInf(more, 0) {
				s, lost = more, c
				continue
			}
			overflows = true
			mean = s / (count - 1)
			lost /= count - 1
		}
		kept := (count - 1) / count
		mean, lost = kahansum.Inc(v/count, kept*mean, kept*lost)
	}
	if overflows {
		return mean + lost
	}
	return s/count + lost/count
}

// minimum and maximum are NaN only if all values are.
func minimum(bits []uint64) float64 {
	m := math.Float64frombits(bits[0])
	for _, b := range bits {
		if v := math.Float64frombits(b); v < m || math.IsNaN(m) {
			m = v
		}
	}
	return m
}

func maximum(bits []uint64) float64 {
	m := math.Float64frombits(bits[0])
	for _, b := range bits {
		if v := math.Float64frombits(b); v > m || math.IsNaN(m) {
			m = v
		}
	}
	return m
}
