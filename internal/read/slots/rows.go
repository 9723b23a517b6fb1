package slots

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// milli is a millisecond in nanoseconds: the unit of times here is that of PromQL.
const milli = 1_000_000

// Functions has the functions of PromQL whose values follow from summaries of slots.
var Functions = map[string]bool{
	"sum_over_time": true, "count_over_time": true, "avg_over_time": true, "min_over_time": true, "max_over_time": true,
	"last_over_time": true, "present_over_time": true,
}

// ErrLate says that points came late for slots whose rollups were read. The rows should be read again, with
// points wherever there are any.
var ErrLate = errors.New("points came after the rollups of their slots")

// lateWarning is for values that were made of a summary and of points that came after it.
const lateWarning = "points came late for slots whose other points are gone; a point that came again counts twice"

// slotOf returns the length in seconds of the slot that a row stands for, 0 for points, and the slot's begin
// in int64econds.
func slotOf(rows *model.Rows, i int) (step, begin int64) {
	if step = rows.RollupStep(i); step > 0 {
		return step, (rows.Times[i] + 1 - step*1e9) / milli
	}
	if step = rows.SummaryStep(i); step > 0 {
		return step, (rows.Times[i] + 1 + step - step*1e9) / milli
	}
	return 0, 0
}

// Has reports whether any row stands for a slot.
func Has(rows *model.Rows) bool {
	for i, k := range rows.Kinds {
		if k == model.KindHistogram {
			if step, _ := slotOf(rows, i); step > 0 {
				return true
			}
		}
	}
	return false
}

// Is reports whether a row stands for a slot.
func Is(rows *model.Rows, i int) bool {
	step, _ := slotOf(rows, i)
	return step > 0
}

// left is the time for which only rollups are left.
type left struct {
	from, to int64
	step     int64
}

// add adds a slot.
func (l *left) add(step int64, begin int64) {
	if l.step == 0 {
		*l = left{begin, begin + step*1000, step}
	}
	l.from, l.to = min(l.from, begin), max(l.to, begin+step*1000)
	l.step = max(l.step, step)
}

func (l *left) String() string {
	text := func(t int64) string { return time.UnixMilli(t).UTC().Format(time.RFC3339) }
	return text(l.from) + " to " + text(l.to)
}

// refuse returns the error for what needs points.
func (l *left) refuse(what string) error {
	return fmt.Errorf("%s needs points, and only rollups are left of the time from %s: use %s, or a later range", what, l, usable)
}

var usable = func() string {
	var names []string
	for name := range Functions {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}()

// slotText shows the length of a slot.
func slotText(step int64) string {
	text := (time.Duration(step) * time.Second).String()
	text = strings.TrimSuffix(text, "0s")
	if strings.HasSuffix(text, "h0m") {
		return strings.TrimSuffix(text, "0m")
	}
	if text == "" || text[len(text)-1] != 'm' {
		return fmt.Sprintf("%ds", step)
	}
	return text
}

// Drop removes the rows that stand for slots. Of the first rows, so many are early: it returns how many of
// these remain. It refuses slots with any instant in [first, last], in int64econds, for what needs points.
func Drop(rows *model.Rows, early int, first, last int64, what string) (int, error) {
	var in left
	out := &model.Rows{}
	kept := early
	from := 0
	for i := range rows.Times {
		step, begin := slotOf(rows, i)
		if step == 0 {
			continue
		}
		if begin <= last && begin+step*1000 > first {
			in.add(step, begin)
		}
		if i < early {
			kept--
		}
		out.AppendRows(rows, from, i)
		from = i + 1
	}
	if in.step > 0 {
		return 0, in.refuse(what)
	}
	if from > 0 {
		out.AppendRows(rows, from, rows.Len())
		*rows = *out
	}
	return kept, nil
}
