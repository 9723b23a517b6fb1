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

// windowGroup names the group of a window by its start in Unix nanoseconds.
func windowGroup(start int64) group { return group("window " + strconv.FormatInt(start, 10)) }

// window returns the start of the window of a group.
func (g group) window() (start int64, ok bool) {
	digits, ok := strings.CutPrefix(string(g), "window ")
	if !ok {
		return 0, false
	}
	start, err := strconv.ParseInt(digits, 10, 64)
	return start, err == nil
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
// must not be shipped before those, since the head counts as newer than every block.
func (h *Head) openWindows(s model.Signal, now int64) []int64 {
	var open []int64
	last := floorTo(now+int64(h.o.MaxFuture), h.o.Window)
	for w := floorTo(now-int64(h.o.Grace), h.o.Window); w <= last; w += int64(h.o.Window) {
		open = append(open, w)
	}
	for _, p := range h.snapshot() {
		if w, ok := p.info.Group.window(); ok && p.info.Signal == s && p.info.Ship == 0 {
			open = append(open, w)
		}
	}
	slices.Sort(open)
	return slices.DeleteFunc(slices.Compact(open), func(w int64) bool { return h.lateReaches(s, w) })
}

// lateReaches reports whether late rows lie in, or around, a window.
func (h *Head) lateReaches(s model.Signal, start int64) bool {
	window := model.TimeRange{Min: start, Max: start + int64(h.o.Window) - 1}
	return slices.ContainsFunc(h.snapshot(), func(p *localPart) bool {
		return p.info.Group == late && p.info.Signal == s && p.info.Range.Overlaps(window)
	})
}

// closed reports whether a window's time for rows is over.
func (h *Head) closed(start, now int64) bool {
	return now >= start+int64(h.o.Window)+int64(h.o.Grace)
}
