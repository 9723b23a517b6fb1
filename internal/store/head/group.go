package head

import (
	"fmt"
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
