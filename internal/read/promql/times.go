package promql

import (
	"math"

	"github.com/shaledb/shale/internal/model"
)

// nanosPerMilli converts the engine's milliseconds to nanoseconds.
const nanosPerMilli = 1_000_000

// rangeOf returns the nanoseconds of all rows that lie in [mint, maxt] when their times are cut to
// milliseconds. Bounds outside int64 nanoseconds saturate.
func rangeOf(mint, maxt int64) model.TimeRange {
	r := model.Always()
	switch {
	case mint > math.MaxInt64/nanosPerMilli:
		return model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	case mint >= math.MinInt64/nanosPerMilli:
		r.Min = mint * nanosPerMilli
	}
	switch {
	case maxt < floorMillis(math.MinInt64):
		return model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	case maxt < math.MinInt64/nanosPerMilli:
		// The first millisecond begins before the first nanosecond.
		r.Max = math.MinInt64 - math.MinInt64%nanosPerMilli - 1
	case maxt < math.MaxInt64/nanosPerMilli:
		r.Max = maxt*nanosPerMilli + (nanosPerMilli - 1)
	}
	return r
}

// floorMillis cuts a time to the millisecond at or before it.
func floorMillis(ns int64) int64 {
	ms := ns / nanosPerMilli
	if ns%nanosPerMilli < 0 {
		ms--
	}
	return ms
}
