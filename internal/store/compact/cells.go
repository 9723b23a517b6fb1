package compact

import (
	"math"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// day is the time range of a block that compaction aims at. Days are in UTC.
const day = 24 * time.Hour

// recentDays is the number of days, up to the last, that get a cell of their own in a merge; older rows share
// one cell. A pass writes a block for each of its cells that has rows, which costs memory, and each pass
// reads its inputs again.
const recentDays = 32

// cell is an interval whose rows go to blocks of their own.
type cell struct {
	model.TimeRange
	level catalog.Level
}

// wholeDay reports whether a cell is one day.
func (c *cell) wholeDay() bool {
	return c.Min != math.MinInt64 && dayOf(c.Min) == c.Min && c.Max == c.Min+int64(day)-1
}

// dayOf returns the start of the day of a time, also before 1970. The day of the first instant begins with
// that instant.
func dayOf(t int64) int64 {
	r := t % int64(day)
	if r < 0 {
		r += int64(day)
	}
	if t < math.MinInt64+r {
		return math.MinInt64
	}
	return t - r
}

// lastOf returns the last instant of the day that begins at start.
func lastOf(start int64) int64 {
	switch {
	case start > math.MaxInt64-int64(day)+1:
		return math.MaxInt64
	case start == math.MinInt64:
		return dayOf(start+int64(day)) - 1
	}
	return start + int64(day) - 1
}

// inOneDay returns the day in which all times of a range lie.
func inOneDay(r model.TimeRange) (start int64, ok bool) {
	start = dayOf(r.Min)
	return start, r.Min <= r.Max && start == dayOf(r.Max)
}

// rangeOf returns the interval that covers several blocks.
func rangeOf(blocks []catalog.Block) model.TimeRange {
	r := model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	for i := range blocks {
		r.Min, r.Max = min(r.Min, blocks[i].Range.Min), max(r.Max, blocks[i].Range.Max)
	}
	return r
}

// dayCells cuts an interval into days, as far as they are recent. over is the start of the first day that is
// not over: cells before it are settled.
func dayCells(r model.TimeRange, now, over int64) []cell {
	if r.Min > r.Max {
		return everything(catalog.Settled)
	}
	last := dayOf(min(r.Max, max(now, over)))
	first := last
	for n := 1; n < recentDays && first > r.Min; n++ {
		first = dayOf(max(first, math.MinInt64+int64(day)) - int64(day))
	}
	var cells []cell
	add := func(from, to int64) {
		level := catalog.Joined
		if to < over {
			level = catalog.Settled
		}
		cells = append(cells, cell{model.TimeRange{Min: from, Max: to}, level})
	}
	if r.Min < first {
		add(math.MinInt64, first-1)
	}
	for at := first; ; at = lastOf(at) + 1 {
		add(at, lastOf(at))
		if at == last {
			break
		}
	}
	if end := lastOf(last); r.Max > end {
		add(end+1, math.MaxInt64)
	}
	return cells
}

// halves cuts all times at an instant into two cells, neither of them settled.
func halves(at int64) []cell {
	return []cell{
		{model.TimeRange{Min: math.MinInt64, Max: at - 1}, catalog.Joined},
		{model.TimeRange{Min: at, Max: math.MaxInt64}, catalog.Joined},
	}
}

// everything is one cell for all times.
func everything(level catalog.Level) []cell {
	return []cell{{model.Always(), level}}
}

// oneDay is the cell of a day that is over. All rows must lie in it.
func oneDay(start int64) []cell {
	return []cell{{model.TimeRange{Min: start, Max: lastOf(start)}, catalog.Settled}}
}
