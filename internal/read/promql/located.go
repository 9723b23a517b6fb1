package promql

import (
	"math"
	"slices"
)

// located says where the windows of a series lie among its samples. Series of one target have the same times, and so the same
// windows: of a query of rates, finding them anew for each series took a third of its time.
type located struct {
	times []int64 // of the series that was located
	spans []span
	// rates belong to spans, if rates are computed.
	rates []extrapolation
}

// span is a window with samples: those at [lo, hi).
type span struct{ step, lo, hi int32 }

// locate finds the windows that have at least some samples.
func (w *windows) locate(least int) {
	l := &w.located
	if len(l.spans) > 0 && slices.Equal(l.times, w.times) {
		return
	}
	l.times = append(l.times[:0], w.times...)
	l.spans, l.rates = l.spans[:0], l.rates[:0]
	lo, hi := 0, 0
	for i, t := 0, w.start-w.offset; i < w.steps(); i, t = i+1, t+w.step {
		end, begin := until(t), until(t-w.span)
		for hi < len(l.times) && l.times[hi] < end {
			hi++
		}
		for lo < hi && l.times[lo] < begin {
			lo++
		}
		if hi-lo >= least {
			l.spans = append(l.spans, span{int32(i), int32(lo), int32(hi)})
		}
	}
}

// until returns the first nanosecond that does not lie in the millisecond t or before it.
func until(t millis) int64 {
	if t >= math.MaxInt64/nanosPerMilli {
		return math.MaxInt64
	}
	if t < math.MinInt64/nanosPerMilli {
		return math.MinInt64
	}
	return (t + 1) * nanosPerMilli
}
