package promql

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// ownRate reports whether the function is one that is computed here without upstream's implementation: the
// commonest, and of a query of rates upstream's took half of the time, since it looks for resets in every
// window anew.
func (w *windows) ownRate() bool {
	switch w.call.Func.Name {
	case "rate", "increase", "delta":
		return true
	}
	return false
}

// extrapolation is what a rate takes from the times of a window alone: seconds from its first sample to its
// last, from its bounds to these, as far as they count, and by what an increase is multiplied.
type extrapolation struct{ sampled, toStart, toEnd, factor float64 }

// computeRates gives the increase of a counter, or of a gauge for delta, over each window with two samples or more,
// extrapolated to the window's bounds. The rules, and the order in which numbers are added, are those of
// upstream's extrapolatedRate: what a counter had before each reset is added; a bound is reached if it is
// nearer than 1.1 average distances of samples, else half a distance is; and a counter does not begin below
// zero.
func (w *windows) computeRates() {
	name := w.call.Func.Name
	counter, seconds := name != "delta", 1.0
	if name == "rate" {
		seconds = w.call.Args[0].(*parser.MatrixSelector).Range.Seconds()
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
	resets := w.resets // those behind the window's first sample
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
			// The conversion keeps compilers from making one operation of this product and the sum that follows,
			// which rounds otherwise than upstream does.
			if toZero := float64(e.sampled * (first / increase)); toZero < e.toStart {
				factor = e.factorFrom(toZero, seconds)
			}
		}
		w.at[i], w.values[i] = s.step, increase*factor
	}
}

// extrapolate fills the extrapolations of windows that have been located anew.
func (w *windows) extrapolate(seconds float64) {
	l := &w.located
	if len(l.rates) == len(l.windows) {
		return
	}
	for _, s := range l.windows {
		t := w.start - w.offset + int64(s.step)*w.step
		firstT, lastT := floorMillis(w.times[s.lo]), floorMillis(w.times[s.hi-1])
		e := extrapolation{
			sampled: float64(lastT-firstT) / 1000,
			toStart: float64(firstT-(t+w.offset-w.extent)) / 1000,
			toEnd:   float64(t-lastT) / 1000,
		}
		distance := e.sampled / float64(s.hi-s.lo-1)
		if e.toStart >= distance*1.1 {
			e.toStart = distance / 2
		}
		if e.toEnd >= distance*1.1 {
			e.toEnd = distance / 2
		}
		e.factor = e.factorFrom(e.toStart, seconds)
		l.rates = append(l.rates, e)
	}
}

// factorFrom returns factorFrom what an increase is multiplied that began so many seconds before the first sample.
func (e *extrapolation) factorFrom(toStart, seconds float64) float64 {
	factor := 1.0
	if e.sampled != 0 {
		factor = (e.sampled + toStart + e.toEnd) / e.sampled
	}
	return factor / seconds
}

// staysPositive reports a counter that was clearly above zero where its increase is extrapolated to, as most
// are. It saves a division for each window. Where roundings could decide it says no: they add up to some
// 1e-15 of a product, and more of one that is near the least number there is.
func (e *extrapolation) staysPositive(first, increase float64) bool {
	need := e.toStart * increase
	return need > 1e-300 && first*e.sampled > need*1.000001
}
