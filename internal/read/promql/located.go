package promql

import (
	"math"
	"slices"
)

// located says where the windows of a series lie among its samples. Series of one target have the same times,
// and so the same windows: of a query of rates, finding them anew for each series took a third of its time.
type located struct {
	any     bool    // a series was located
	times   []int64 // of that series, but of the first one, which may be long and the only one
	windows []window
	// rates belong to spans, if rates are computed.
	rates []extrapolation
}

// window is a window with samples: those at [lo, hi).
type window struct{ step, lo, hi int32 }

// locate finds the windows that have at least some samples.
func (w *windows) locate(least int) {
	l := &w.located
	if len(l.times) > 0 && slices.Equal(l.times, w.times) {
		return
	}
	if l.times = l.times[:0]; l.any {
		l.times = append(l.times, w.times...)
	}
	l.any, l.windows, l.rates = true, l.windows[:0], l.rates[:0]
	var lo, hi edge
	for i, t := 0, w.start-w.offset; i < w.steps(); i, t = i+1, t+w.step {
		lo.advance(w.times, endOfMilli(t-w.span))
		hi.advance(w.times, endOfMilli(t))
		if hi.index-lo.index >= least {
			l.windows = append(l.windows, window{int32(i), int32(lo.index), int32(hi.index)})
		}
	}
}

// edge is a bound of windows, which moves from one to the next.
type edge struct{ index, stride int }

// advance goes on to the first sample that does not lie before a time. Of evenly spaced samples that is as many
// on as it was before.
func (e *edge) advance(times []int64, t int64) {
	at := e.index
	if n := at + e.stride; n <= len(times) && (n == at || times[n-1] < t) && (n == len(times) || times[n] >= t) {
		e.index = n
		return
	}
	for e.index < len(times) && times[e.index] < t {
		e.index++
	}
	e.stride = e.index - at
}

// endOfMilli returns the first nanosecond that does not lie in the millisecond t or before it.
func endOfMilli(t millis) int64 {
	if t >= math.MaxInt64/nanosPerMilli {
		return math.MaxInt64
	}
	if t < math.MinInt64/nanosPerMilli {
		return math.MinInt64
	}
	return (t + 1) * nanosPerMilli
}
