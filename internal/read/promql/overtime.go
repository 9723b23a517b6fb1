package promql

import (
	"math"

	"github.com/prometheus/prometheus/util/kahansum"
)

// ownOverTime has the functions that depend only on the values of a window. Upstream's implementations take
// points, which need another copy of the samples; BenchmarkOverTime compares. A window has at least one
// value. Results are equal to upstream's, bit for bit.
var ownOverTime = map[string]func(bits []uint64) float64{
	"avg_over_time":     average,
	"sum_over_time":     total,
	"min_over_time":     minimum,
	"max_over_time":     maximum,
	"count_over_time":   func(bits []uint64) float64 { return float64(len(bits)) },
	"present_over_time": func([]uint64) float64 { return 1 },
	"first_over_time":   func(bits []uint64) float64 { return math.Float64frombits(bits[0]) },
	"last_over_time":    func(bits []uint64) float64 { return math.Float64frombits(bits[len(bits)-1]) },
}

// computeOverTime applies the node's function to the values of each window that is not empty.
func (w *windows) computeOverTime() {
	w.locate(1)
	for _, s := range w.located.windows {
		w.at, w.values = append(w.at, s.step), append(w.values, w.own(w.bits[s.lo:s.hi]))
	}
}

// addUp adds numbers, and separately the rounding errors of the sums. This is Kahan's summation as improved
// by Neumaier, as long as nothing overflows. The error of a sum is itself a float and is found without
// asking which summand is greater (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B), a branch
// that a processor would mispredict.
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

// average returns sum/count. If the sum overflows, it keeps a running mean from there on, as upstream does.
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

// minimum returns NaN only if all values are NaN, and so does maximum.
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
