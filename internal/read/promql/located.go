package promql

import (
	"math"
	"slices"
)

// located says where the windows of a series lie among its samples. The series of a target share their
// times and therefore their windows, so these are kept for the next series. BenchmarkRate compares series
// with equal and with different times.
type located struct {
	any     bool    // a series was located
	times   []int64 // of the last series, unless it was the first: that may be long, and the only one
	windows []window
	// rates belong to windows, if rates are computed.
	rates []extrapolation
}

// window is the samples [lo, hi) at a step.
type window struct{ step, lo, hi int32 }

// locate finds the windows that have at least so many samples.
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
		lo.advance(w.times, endOfMilli(t-w.width))
		hi.advance(w.times, endOfMilli(t))
		if hi.index-lo.index >= least {
			l.windows = append(l.windows, window{int32(i), int32(lo.index), int32(hi.index)})
		}
	}
}

// edge is the bound of a window. It moves forward from step to step.
type edge struct{ index, stride int }

// advance moves to the first sample at or after t. It tries the distance of the move before first, which is
// right for evenly spaced samples.
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

// endOfMilli returns the first nanosecond after the millisecond t.
func endOfMilli(t millis) int64 {
	if t >= math.MaxInt64/nanosPerMilli {
		return math.MaxInt64
	}
	if t < math.MinInt64/nanosPerMilli {
		return math.MinInt64
	}
	return (t + 1) * nanosPerMilli
}
