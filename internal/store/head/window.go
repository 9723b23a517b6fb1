package head

import (
	"math"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
)

// floorTo returns the greatest multiple of d that is not above t, also before 1970.
func floorTo(t int64, d time.Duration) int64 {
	r := t % int64(d)
	if r < 0 {
		r += int64(d)
	}
	if t < math.MinInt64+r { // the window that holds the first instant begins with it
		return math.MinInt64
	}
	return t - r
}

// openWindows returns the starts of the windows that take rows, ascending: those within the grace time after
// their end, those that samples from the future may reach, and closed ones that are not shipped yet.
//
// A window that late rows reach into takes no rows. That happens only after the clock was stepped back. Newer
// rows must not be shipped before the late ones, since the head counts as newer than every block. For the
// same reason, windows take no rows if they overlap a window of another length, which is left from earlier
// settings.
func (h *Head) openWindows(s model.Signal, now int64) []int64 {
	var open []int64
	last := floorTo(now+int64(h.o.MaxFuture), h.o.Window)
	for w := floorTo(now-int64(h.o.Grace), h.o.Window); w <= last; w += int64(h.o.Window) {
		open = append(open, w)
	}
	var old []model.TimeRange
	for _, p := range h.snapshot() {
		times, ok := p.Info.Group.Window()
		if !ok || p.Info.Signal != s {
			continue
		}
		if !h.current(times) {
			old = append(old, times)
		} else if p.Info.Ship == 0 {
			open = append(open, times.Min)
		}
	}
	slices.Sort(open)
	return slices.DeleteFunc(slices.Compact(open), func(w int64) bool {
		times := local.WindowAt(w, h.o.Window)
		return h.lateReaches(s, times) || slices.ContainsFunc(old, times.Overlaps)
	})
}

// lateReaches reports whether late rows lie in, or around, a window.
func (h *Head) lateReaches(s model.Signal, window model.TimeRange) bool {
	return slices.ContainsFunc(h.snapshot(), func(p *local.Part) bool {
		return p.Info.Group == local.Late && p.Info.Signal == s && p.Info.Range.Overlaps(window)
	})
}

// current reports whether a window has the length that windows have now.
func (h *Head) current(window model.TimeRange) bool {
	return window == local.WindowAt(window.Min, h.o.Window)
}

// closed reports whether a window takes no more rows.
func (h *Head) closed(window model.TimeRange, now int64) bool {
	return !h.current(window) || now > window.Max+int64(h.o.Grace)
}
