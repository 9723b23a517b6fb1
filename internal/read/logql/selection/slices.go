package selection

import (
	"math"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// A query with a limit mostly ends long before the far end of its range. So the range is asked for in slices,
// from the wanted end on, each several times as long as the one before: what lies beyond the result is not
// even looked up. A page on the border of two slices is read in both, so that borders lie where parts end:
// with slices of an hour, a search over six hours of 400 streams read a quarter more than there was.
const (
	firstSlice = 24 * time.Hour
	// A query that drops no line ends within the first slice that has as many as its limit.
	firstSliceOfAll = time.Minute
	sliceGrowth     = 8
	// enoughFound is how many lines of a slice say how long the next one must be.
	enoughFound = 16
	// sliceGrid is where all parts end, since a day is a multiple of store.window, and is what blocks are
	// merged into.
	sliceGrid = int64(24 * time.Hour)
	// MaxFuture is how far beyond the clock lines may be to be scanned along with those of the present.
	MaxFuture = time.Hour
)

// timeSlices walks a range in slices.
type timeSlices struct {
	direction Direction
	left      model.TimeRange
	width     int64 // of the next one; 0: all that is left
	last      int64 // that of the last one
	// first is where the next slice begins, if starts is set.
	first  int64
	starts bool
	// future is where the part of the range ends that lies far ahead of the clock. It has few lines and is a
	// slice of its own. 0: there is no such part.
	future int64
}

func newTimeSlices(d Direction, r model.TimeRange, x *Execution) *timeSlices {
	s := &timeSlices{direction: d, left: r}
	if x.sink.Limit() > 0 {
		s.width = int64(firstSlice)
		if x.Program.KeepsAll {
			s.width = int64(firstSliceOfAll)
		}
	}
	if future := x.Now + int64(MaxFuture); d == Backward && r.Min < future && future < r.Max {
		s.future = future
	}
	return s
}

// found says how many lines the last slice had, and how many are missing still. The next slice is then half
// as long again as it must be if lines go on like that, but not shorter than the last one. It is at most as
// much longer as two others would be.
func (s *timeSlices) found(lines, missing int64) {
	if lines < enoughFound || missing <= 0 || s.width == 0 || s.last == 0 {
		return
	}
	most := float64(s.last) * sliceGrowth * sliceGrowth
	wanted := float64(s.last) * 1.5 * float64(missing) / float64(lines)
	if wanted = min(wanted, most); wanted < math.MaxInt64/(2*sliceGrowth) {
		s.width = max(s.last, int64(wanted))
	}
}

// next returns the next slice, and false at the end.
func (s *timeSlices) next() (model.TimeRange, bool) {
	r := s.left
	if r.Min > r.Max {
		return r, false
	}
	if s.future != 0 {
		r.Min, s.left.Max, s.future = s.future+1, s.future, 0
		return r, true
	}
	if s.starts {
		s.starts = false
		return s.start(), true
	}
	if s.isLast() {
		s.left = model.TimeRange{Min: 1, Max: 0}
		return r, true
	}
	if s.direction == Backward {
		r.Min = r.Max - s.width + 1
		if s.width >= sliceGrid {
			r.Min = max(s.left.Min, onGrid(r.Min))
		}
		if s.left.Max = r.Min - 1; r.Min == s.left.Min {
			s.left.Max, s.left.Min = 0, 1
		}
	} else {
		r.Max = r.Min + s.width - 1
		if s.width >= sliceGrid {
			r.Max = min(s.left.Max, onGrid(r.Max)+sliceGrid-1)
		}
		if s.left.Min = r.Max + 1; r.Max == s.left.Max {
			s.left.Max, s.left.Min = 0, 1
		}
	}
	s.last = s.width
	if s.width > math.MaxInt64/(2*sliceGrowth) {
		s.width = 0
	} else {
		s.width *= sliceGrowth
	}
	return r, true
}

// isLast reports whether the next slice is all that is left. Lengths are compared without a sign: a range may
// be as long as all of time.
func (s *timeSlices) isLast() bool {
	return s.width == 0 || uint64(s.left.Max)-uint64(s.left.Min) <= 2*uint64(s.width)
}

// startAt makes the next slice begin at a time.
func (s *timeSlices) startAt(from int64) { s.first, s.starts = from, true }

// start returns the slice that begins where startAt says. The next one is longer.
func (s *timeSlices) start() model.TimeRange {
	r := s.left
	r.Min = min(max(r.Min, s.first), r.Max)
	if s.left.Max = r.Min - 1; r.Min == s.left.Min {
		s.left = model.TimeRange{Min: 1, Max: 0}
	}
	if width := uint64(r.Max) - uint64(r.Min); width < math.MaxInt64/(2*sliceGrowth) {
		s.last, s.width = int64(width)+1, max(s.width, sliceGrowth*(int64(width)+1))
	} else {
		s.last, s.width = 0, 0
	}
	return r
}

// onGrid returns the last point of the grid at or before t, or t where there is none.
func onGrid(t int64) int64 {
	back := t % sliceGrid
	if back < 0 {
		back += sliceGrid
	}
	if t < math.MinInt64+back || t > math.MaxInt64-sliceGrid {
		return t
	}
	return t - back
}
