package head

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// group says what a data part holds: rows as they came (young), rows of one window of sample time, or rows whose
// window has been shipped already (late). Label parts are all young.
type group string

const (
	young group = "young"
	late  group = "late"
)

// windowGroup names the group of a window by its start in Unix nanoseconds, and its length.
func windowGroup(start int64, length time.Duration) group {
	return group(fmt.Sprintf("window %d %d", start, int64(length)))
}

// window returns the times of the window of a group.
func (g group) window() (times model.TimeRange, ok bool) {
	text, ok := strings.CutPrefix(string(g), "window ")
	if !ok {
		return times, false
	}
	first, last, _ := strings.Cut(text, " ")
	start, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return times, false
	}
	length, err := strconv.ParseInt(last, 10, 64)
	return windowAt(start, time.Duration(length)), err == nil && length > 0
}

// windowAt returns the times of the window that begins at start.
func windowAt(start int64, length time.Duration) model.TimeRange {
	return model.TimeRange{Min: start, Max: start + int64(length) - 1}
}

func (g group) check() error {
	if _, ok := g.window(); ok || g == young || g == late {
		return nil
	}
	return fmt.Errorf("%w: group %q", model.ErrCorrupt, g)
}

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

// openWindows returns the starts of the windows that take rows, ascending: those that have not ended longer ago than
// the grace, those that the future samples may reach, and those that closed and are not shipped yet.
//
// A window that late rows reach into takes none, which happens only when the clock was stepped back: the newer rows
// must not be shipped before those, since the head counts as newer than every block. For the same reason windows take
// none that overlap one of another length, which the settings gave when the program ran before.
func (h *Head) openWindows(s model.Signal, now int64) []int64 {
	var open []int64
	last := floorTo(now+int64(h.o.MaxFuture), h.o.Window)
	for w := floorTo(now-int64(h.o.Grace), h.o.Window); w <= last; w += int64(h.o.Window) {
		open = append(open, w)
	}
	var old []model.TimeRange
	for _, p := range h.snapshot() {
		times, ok := p.info.Group.window()
		if !ok || p.info.Signal != s {
			continue
		}
		if !h.current(times) {
			old = append(old, times)
		} else if p.info.Ship == 0 {
			open = append(open, times.Min)
		}
	}
	slices.Sort(open)
	return slices.DeleteFunc(slices.Compact(open), func(w int64) bool {
		times := windowAt(w, h.o.Window)
		return h.lateReaches(s, times) || slices.ContainsFunc(old, times.Overlaps)
	})
}

// lateReaches reports whether late rows lie in, or around, a window.
func (h *Head) lateReaches(s model.Signal, window model.TimeRange) bool {
	return slices.ContainsFunc(h.snapshot(), func(p *localPart) bool {
		return p.info.Group == late && p.info.Signal == s && p.info.Range.Overlaps(window)
	})
}

// current reports whether a window has the length that windows have now.
func (h *Head) current(window model.TimeRange) bool {
	return window == windowAt(window.Min, h.o.Window)
}

// closed reports whether a window's time for rows is over.
func (h *Head) closed(window model.TimeRange, now int64) bool {
	return !h.current(window) || now > window.Max+int64(h.o.Grace)
}
