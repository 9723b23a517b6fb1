package promql

import (
	"math"
	"slices"
)

// ownRate reports whether the function is computed here. These are the commonest, and upstream's
// implementation looks for resets again in every window; BenchmarkRate compares.
func (w *windows) ownRate() bool {
	switch w.call.Func.Name {
	case "rate", "increase", "delta":
		return true
	}
	return false
}

// extrapolation is the part of a rate that depends only on the times of a window: seconds from its first
// sample to its last, seconds from its bounds to these as far as they count, and the factor of an increase.
type extrapolation struct{ sampled, toStart, toEnd, factor float64 }

// computeRates computes the increase over each window with two samples or more, of a counter or, for delta,
// of a gauge, extrapolated to the window's bounds. The rules and the order of additions are those of
// upstream's extrapolatedRate. The value before each reset of a counter is added. A bound is reached if it
// is nearer than 1.1 average distances of samples, else half a distance counts. A counter does not begin
// below zero.
func (w *windows) computeRates() {
	name := w.call.Func.Name
	counter, seconds := name != "delta", 1.0
	if name == "rate" {
		seconds = w.samples.Range.Seconds()
	}
	w.locate(2)
	w.extrapolate(seconds)
	bits := w.bits
	if w.resets = w.resets[:0]; counter && len(bits) > 0 {
		before := math.Float64frombits(bits[0])
		for i, b := range bits {
			v := math.Float64frombits(b)
			if v < before {
				w.resets = append(w.resets, int32(i))
			}
			before = v
		}
	}
	resets := w.resets // those after the window's first sample
	spans, rates := w.located.windows, w.located.rates
	w.at, w.values = slices.Grow(w.at[:0], len(spans))[:len(spans)], slices.Grow(w.values[:0], len(spans))[:len(spans)]
	for i, s := range spans {
		for len(resets) > 0 && resets[0] <= s.lo {
			resets = resets[1:]
		}
		first := math.Float64frombits(bits[s.lo])
		increase := math.Float64frombits(bits[s.hi-1]) - first
		for _, r := range resets {
			if r >= s.hi {
				break
			}
			increase += math.Float64frombits(bits[r-1])
		}
		e := &rates[i]
		factor := e.factor
		if counter && increase > 0 && first >= 0 && !e.staysPositive(first, increase) {
			// The conversion keeps compilers from fusing this product with the sum that follows, which would round
			// differently than upstream.
			if toZero := float64(e.sampled * (first / increase)); toZero < e.toStart {
				factor = e.factorFrom(toZero, seconds)
			}
		}
		w.at[i], w.values[i] = s.step, increase*factor
	}
}

// extrapolate fills the extrapolations of windows that were just located.
func (w *windows) extrapolate(seconds float64) {
	l := &w.located
	if len(l.rates) == len(l.windows) {
		return
	}
	for _, s := range l.windows {
		e := w.extrapolation(w.stepTime(int(s.step)), floorMillis(w.times[s.lo]), floorMillis(w.times[s.hi-1]), int(s.hi-s.lo))
		e.factor = e.factorFrom(e.toStart, seconds)
		l.rates = append(l.rates, e)
	}
}

// extrapolation returns the extrapolation of a window that ends at t and has so many samples, without its
// factor. All times are in milliseconds.
func (w *windows) extrapolation(t, first, last int64, samples int) extrapolation {
	e := extrapolation{
		sampled: float64(last-first) / 1000,
		toStart: float64(first-(t+w.offset-w.extent)) / 1000,
		toEnd:   float64(t-last) / 1000,
	}
	distance := e.sampled / float64(samples-1)
	if e.toStart >= distance*1.1 {
		e.toStart = distance / 2
	}
	if e.toEnd >= distance*1.1 {
		e.toEnd = distance / 2
	}
	return e
}

// factorFrom returns the factor of an increase that began toStart seconds before the first sample.
func (e *extrapolation) factorFrom(toStart, seconds float64) float64 {
	factor := 1.0
	if e.sampled != 0 {
		factor = (e.sampled + toStart + e.toEnd) / e.sampled
	}
	return factor / seconds
}

// staysPositive reports whether a counter extrapolated to the window's start is clearly above zero, as most
// are. It saves a division per window. It returns false wherever rounding could decide: errors add up to
// about 1e-15 of a product, and to more near the least float. BenchmarkRate runs it.
func (e *extrapolation) staysPositive(first, increase float64) bool {
	need := e.toStart * increase
	return need > 1e-300 && first*e.sampled > need*1.000001
}
