package file

import (
	"math"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// Windows divide time for the masks of a block. The mask of a series says in which windows it has rows. A
// block of a day has many series that lived for an hour, and a reader skips them without reading their rows.
// Window i is [Start + i*Length, Start + (i+1)*Length). The first window also has all time before it, and the
// last all time after it, so every row is in a window.
type Windows struct {
	// Start is in Unix nanoseconds, Length in nanoseconds.
	Start, Length int64
	// Count is 1 to 64; 0 means that there are no masks.
	Count int
}

// MaxWindows is the most windows that a mask of 64 bits can tell apart.
const MaxWindows = 64

// Valid reports whether the windows can be stored: there are none, or their end is a valid time.
func (w Windows) Valid() bool {
	if w.Count == 0 {
		return w == Windows{}
	}
	return w.Count > 0 && w.Count <= MaxWindows && w.Length > 0 &&
		uint64(w.Length) <= (uint64(math.MaxInt64)-uint64(w.Start))/uint64(w.Count)
}

// index returns the window of a time.
func (w Windows) index(t int64) int {
	if t < w.Start {
		return 0
	}
	return int(min((uint64(t)-uint64(w.Start))/uint64(w.Length), uint64(w.Count-1)))
}

// MaskOfRange returns the windows that share an instant with a range, lowest bit first.
func (w Windows) MaskOfRange(rg model.TimeRange) uint64 {
	if rg.Min > rg.Max {
		return 0
	}
	return ^uint64(0) << w.index(rg.Min) & (^uint64(0) >> (63 - w.index(rg.Max)))
}

// MaskOf returns the windows of ascending times.
func (w Windows) MaskOf(times []int64) uint64 {
	mask := uint64(0)
	for len(times) > 0 {
		k := w.index(times[0])
		mask |= 1 << k
		if k == w.Count-1 {
			break
		}
		end := w.Start + int64(k+1)*w.Length
		if times[len(times)-1] < end {
			break
		}
		times = times[sort.Search(len(times), func(i int) bool { return times[i] >= end }):]
	}
	return mask
}
