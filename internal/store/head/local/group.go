package local

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Group says which rows a data part holds: all rows of a flush (young), those of one window of sample time,
// or rows whose window has been shipped already (late). Label parts are all young.
type Group string

const (
	Young Group = "young"
	Late  Group = "late"
)

// WindowGroup names the group of a window: its start in Unix nanoseconds and its length.
func WindowGroup(start int64, length time.Duration) Group {
	return Group(fmt.Sprintf("window %d %d", start, int64(length)))
}

// Window returns the times of the window of a group.
func (g Group) Window() (times model.TimeRange, ok bool) {
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
	return WindowAt(start, time.Duration(length)), err == nil && length > 0
}

// WindowAt returns the times of the window that begins at start.
func WindowAt(start int64, length time.Duration) model.TimeRange {
	return model.TimeRange{Min: start, Max: start + int64(length) - 1}
}

func (g Group) Check() error {
	if _, ok := g.Window(); ok || g == Young || g == Late {
		return nil
	}
	return fmt.Errorf("%w: unknown group %q", model.ErrCorrupt, g)
}
