package plot

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// valueAxis reaches from the first to the last of its ticks, which are round numbers.
type valueAxis struct {
	lo, hi float64
	ticks  []float64
	labels []string
}

// newValueAxis returns an axis that includes two values. Values that are not far from 0 compared with their
// spread have 0 on their axis. There is a tick every two to four rows, whichever wastes the least of the
// axis.
func newValueAxis(lo, hi float64, rows int) valueAxis {
	switch {
	case lo > 0 && lo <= hi/2 || lo == hi && lo > 0:
		lo = 0
	case hi < 0 && hi >= lo/2 || lo == hi && lo < 0:
		hi = 0
	case lo == hi:
		hi = 1
	}
	first, last, step := 0.0, 0.0, 0.0 // the ends of the best axis, in steps
	for parts := max(rows/4, 2); parts <= max(rows/2, 2); parts++ {
		n := float64(parts)
		s := roundStep(hi/n - lo/n) // the difference of two parts does not overflow
		from, to := math.Floor(lo/s), math.Ceil(hi/s)
		switch {
		case s == 0 || math.IsInf(from*s, 0) || math.IsInf(to*s, 0) || math.Abs(from) > 1e15 || math.Abs(to) > 1e15 || !(to-from <= float64(rows)):
			// No round numbers: the values are the least or the greatest there are, or neighbours.
		case step == 0 || (to-from)*s < (last-first)*step*(1-1e-9):
			first, last, step = from, to, s
		}
	}
	if step == 0 {
		return valueAxis{lo, hi, []float64{lo, hi}, []string{strconv.FormatFloat(lo, 'g', -1, 64), strconv.FormatFloat(hi, 'g', -1, 64)}}
	}
	a := valueAxis{lo: first * step, hi: last * step}
	for i := first; i <= last; i++ {
		a.ticks = append(a.ticks, i*step)
	}
	a.labels = tickLabels(a.ticks, step)
	return a
}

// roundStep returns the least of 1, 2 and 5 times a power of 10 that is not below a number.
func roundStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, times := range []float64{1, 2, 5} {
		if times*power >= least*(1-1e-9) {
			return times * power
		}
	}
	return 10 * power
}

// share returns where a value is on the axis, from 0 to 1.
func (a *valueAxis) share(v float64) float64 {
	if span := a.hi/2 - a.lo/2; span > 0 {
		return min(max((v/2-a.lo/2)/span, 0), 1)
	}
	return 0 // the two least numbers that are not 0
}

// labelOf returns the label of the tick in a row that is counted from the top.
func (a *valueAxis) labelOf(row, rows int) (label string, tick bool) {
	for i, t := range a.ticks {
		if rows-1-int(math.Round(a.share(t)*float64(rows-1))) == row {
			return a.labels[i], true
		}
	}
	return "", false
}

// prefixes are those of the SI, a thousand apart.
var prefixes = []string{"", "k", "M", "G", "T", "P", "E"}

// scaled returns a divisor and its prefix by which numbers up to the greatest one are short. Numbers below
// 10,000 stay as they are.
func scaled(greatest float64) (unit float64, prefix string) {
	unit = 1
	for i := 0; i < len(prefixes); i++ {
		if greatest < 1000*unit || i == 0 && greatest < 10_000 {
			return unit, prefixes[i]
		}
		unit *= 1000
	}
	return 1, ""
}

// tickLabels writes ticks with as many decimals as their step needs.
func tickLabels(ticks []float64, step float64) (labels []string) {
	greatest := max(math.Abs(ticks[0]), math.Abs(ticks[len(ticks)-1]))
	unit, prefix := scaled(greatest)
	decimals := max(0, int(math.Ceil(-math.Log10(step/unit)-1e-9)))
	if decimals > 3 {
		unit, prefix = 1, ""
		decimals = max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	}
	for _, t := range ticks {
		if t == 0 {
			labels = append(labels, "0")
		} else if decimals > 6 || greatest/unit >= 1e15 {
			labels = append(labels, strconv.FormatFloat(t, 'g', 15, 64))
		} else {
			labels = append(labels, strconv.FormatFloat(t/unit, 'f', decimals, 64)+prefix)
		}
	}
	return labels
}

// compact writes a number with four digits.
func compact(v float64) string {
	unit, prefix := scaled(math.Abs(v))
	return strconv.FormatFloat(v/unit, 'g', 4, 64) + prefix
}

// timeSteps are the distances of ticks on the axis of time. All divide a day, or are days.
var timeSteps = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 5 * day, 10 * day, 30 * day, 90 * day, 360 * day,
}

const day = 24 * time.Hour

// timeAxis returns the columns of ticks and the row of their labels, in UTC.
func timeAxis(from, to int64, columns int) (ticks []int, labels string) {
	step, layout := int64(0), ""
	few := func() bool { return (to-from)/step < int64(max(columns/(len(layout)+3), 1)) }
	for _, s := range timeSteps {
		if step, layout = s.Milliseconds(), layoutOf(s); few() {
			break
		}
	}
	for !few() {
		step *= 2
	}
	first := from - from%step
	if first < from {
		first += step
	}
	var row strings.Builder
	for at := first; at <= to; at += step {
		column := position(at, from, to, columns)
		t := time.UnixMilli(at).UTC()
		label := t.Format(layout)
		if layout != time.DateOnly && at%day.Milliseconds() == 0 {
			label = t.Format("01-02") // a new day
		}
		begin := min(max(column-len(label)/2, 0), columns-len(label))
		if used := row.Len(); begin >= used+min(used, 2) {
			row.WriteString(strings.Repeat(" ", begin-used) + label)
			ticks = append(ticks, column)
		}
	}
	return ticks, row.String()
}

// axis returns the columns of the ticks and the row of their labels. A label that has no room is left out.
func (c *Chart) axis(columns int) (ticks []int, labels string) {
	if len(c.Ticks) == 0 {
		return timeAxis(c.From, c.To, columns)
	}
	row := ""
	for _, t := range c.Ticks {
		column := position(t.At, c.From, c.To, columns)
		begin := max(min(column-len(t.Label)/2, columns-len(t.Label)), 0)
		if used := len(row); begin >= used+min(used, 1) {
			row += strings.Repeat(" ", begin-used) + t.Label
			ticks = append(ticks, column)
		}
	}
	return ticks, row
}

// layoutOf returns how times are written that are a step apart.
func layoutOf(step time.Duration) string {
	switch {
	case step < time.Second:
		return "15:04:05.000"
	case step < time.Minute:
		return "15:04:05"
	case step < day:
		return "15:04"
	}
	return time.DateOnly
}

// position returns where a time of the range is, from 0 to n-1.
func position(at, from, to int64, n int) int {
	if to <= from {
		return 0
	}
	return int(math.Round(float64(at-from) / float64(to-from) * float64(n-1)))
}
