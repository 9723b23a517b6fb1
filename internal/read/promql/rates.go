package promql

import (
	"math"

	"github.com/prometheus/prometheus/promql/parser"
)

// ownRate reports whether the function is one that is computed here without upstream's implementation: the commonest, and of a
// query of rates upstream's took half of the time, since it looks for resets in every window anew.
func (w *windows) ownRate() bool {
	switch w.node.call.Func.Name {
	case "rate", "increase", "delta":
		return true
	}
	return false
}

// rates gives the increase of a counter, or of a gauge for delta, over each window with two samples or more, extrapolated to the
// window's bounds. The rules, and the order in which numbers are added, are those of upstream's extrapolatedRate: what a counter
// had before each reset is added; a bound is reached if it is nearer than 1.1 average distances of samples, else half a distance
// is; and a counter does not begin below zero.
func (w *windows) rates() {
	name := w.node.call.Func.Name
	counter, seconds := name != "delta", 1.0
	if name == "rate" {
		seconds = w.node.call.Args[0].(*parser.MatrixSelector).Range.Seconds()
	}
	times, bits, lo, hi := w.times, w.bits, 0, 0
	w.resets = w.resets[:0]
	if counter && len(bits) > 0 {
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
	for i, t := 0, w.start-w.offset; i < w.steps(); i, t = i+1, t+w.step {
		end, begin := until(t), until(t-w.span)
		for hi < len(times) && times[hi] < end {
			hi++
		}
		for lo < hi && times[lo] < begin {
			lo++
		}
		if hi-lo < 2 {
			continue
		}
		for len(resets) > 0 && int(resets[0]) <= lo {
			resets = resets[1:]
		}
		first := math.Float64frombits(bits[lo])
		increase := math.Float64frombits(bits[hi-1]) - first
		for _, r := range resets {
			if int(r) >= hi {
				break
			}
			increase += math.Float64frombits(bits[r-1])
		}
		firstT, lastT := floorMillis(times[lo]), floorMillis(times[hi-1])
		toStart, toEnd := float64(firstT-(t+w.offset-w.extent))/1000, float64(t-lastT)/1000
		sampled := float64(lastT-firstT) / 1000
		distance := sampled / float64(hi-lo-1)
		if toStart >= distance*1.1 {
			toStart = distance / 2
		}
		if counter {
			toZero := toStart
			if increase > 0 && first >= 0 {
				toZero = sampled * (first / increase)
			}
			if toZero < toStart {
				toStart = toZero
			}
		}
		if toEnd >= distance*1.1 {
			toEnd = distance / 2
		}
		factor := 1.0
		if sampled != 0 {
			factor = (sampled + toStart + toEnd) / sampled
		}
		factor /= seconds
		w.at, w.values = append(w.at, int32(i)), append(w.values, increase*factor)
	}
}
