package graph

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// axis is a scale of values.
type axis struct {
	min, max, step float64
	used           bool
}

// newAxis chooses the ends and the steps of an axis for values from lo to hi: about n steps of 1, 2 or 5
// times a power of ten. An end that is fixed, not NaN, stays.
func newAxis(lo, hi, fixedMin, fixedMax float64, n int) axis {
	if !math.IsNaN(fixedMin) {
		lo = fixedMin
	}
	if !math.IsNaN(fixedMax) {
		hi = fixedMax
	}
	// Numbers that are hardly apart have no round numbers between them.
	if !(hi-lo > 1e-200 && hi-lo > 1e-13*max(math.Abs(lo), math.Abs(hi))) {
		// As in graphite-web: the end that is not fixed moves by a tenth.
		delta := max(0.1*math.Abs(lo), 0.1*math.Abs(hi))
		if delta < 1e-10 {
			delta = 1
		}
		switch {
		case !math.IsNaN(fixedMax) && math.IsNaN(fixedMin):
			lo = hi - delta
		case !math.IsNaN(fixedMin):
			hi = lo + delta
		default:
			lo, hi = lo-delta, hi+delta
		}
	}
	const largest = math.MaxFloat64 / 8 // the width of the axis is a number, too
	lo, hi = max(lo, -largest), min(hi, largest)
	raw := (hi - lo) / float64(max(1, n))
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, f := range []float64{1, 2, 5} {
		if f*power >= raw*0.999 {
			step = f * power
			break
		}
	}
	a := axis{min: lo, max: hi, step: step, used: true}
	if math.IsNaN(fixedMin) {
		a.min = math.Floor(lo/step+1e-9) * step
	}
	if math.IsNaN(fixedMax) {
		a.max = math.Ceil(hi/step-1e-9) * step
	}
	return a
}

// ticks returns the multiples of the step.
func (a *axis) ticks() (all []float64) {
	first := math.Ceil(a.min/a.step - 1e-9)
	for i := 0.0; len(all) < 100; i++ {
		v := (first + i) * a.step
		if v > a.max+a.step*1e-6 {
			break
		}
		all = append(all, v)
	}
	return all
}

// share returns how far up a value is, from 0 to 1.
func (a *axis) share(v float64) float64 { return (v - a.min) / (a.max - a.min) }

// label writes a tick, with a prefix of thousands and as many decimals as the step needs.
func (a *axis) label(v float64) string {
	size, prefix := 1.0, ""
	for _, p := range []struct {
		size float64
		name string
	}{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "K"}} {
		if max(math.Abs(a.min), math.Abs(a.max)) >= p.size {
			size, prefix = p.size, p.name
			break
		}
	}
	step := a.step / size
	if math.Abs(v)/size > 1e6 || step < 1e-6 {
		return fmt.Sprintf("%.4g", v)
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	text := strconv.FormatFloat(v/size, 'f', decimals, 64)
	if strings.Trim(text, "-0.") == "" {
		return "0"
	}
	return text + prefix
}

// Times between the ticks of the axis of time, and how these are written.
var tickSteps = []struct {
	seconds int64
	format  string
}{
	{1, "15:04:05"}, {2, "15:04:05"}, {5, "15:04:05"}, {10, "15:04:05"}, {15, "15:04:05"}, {30, "15:04:05"},
	{60, "15:04"}, {2 * 60, "15:04"}, {5 * 60, "15:04"}, {10 * 60, "15:04"}, {15 * 60, "15:04"}, {30 * 60, "15:04"},
	{hour, "15:04"}, {2 * hour, "15:04"}, {3 * hour, "15:04"}, {6 * hour, "Mon 15:04"}, {12 * hour, "Mon 15:04"},
	{day, "01/02"}, {2 * day, "01/02"}, {4 * day, "01/02"}, {7 * day, "01/02"}, {14 * day, "01/02"},
	{month, "Jan 2006"}, {3 * month, "Jan 2006"}, {6 * month, "Jan 2006"}, {12 * month, "2006"}, {60 * month, "2006"}, {600 * month, "2006"},
}

const (
	hour  = 3600
	day   = 24 * hour
	month = 30 * day // about
)

// tick is a labelled time.
type tick struct {
	at    int64
	label string
}

// timeTicks returns at most n round times, in the clock of a zone.
func timeTicks(from, until int64, zone *time.Location, n int) (all []tick) {
	s := tickSteps[len(tickSteps)-1]
	for _, c := range tickSteps {
		if (until-from)/c.seconds < int64(max(1, n)) {
			s = c
			break
		}
	}
	format := s.format
	if s.seconds < day && s.seconds >= 60 && until-from > 20*hour {
		format = "Mon 15:04"
	}
	t := time.Unix(from, 0).In(zone)
	y, m, d := t.Date()
	last := from - 1
	for i := int64(0); len(all) <= n; i++ {
		var at time.Time
		switch {
		case s.seconds < day:
			// Hours of the clock: a day of the change of the clock has as many of them as it has.
			per := day / s.seconds
			at = time.Date(y, m, d+int(i/per), 0, 0, int(i%per*s.seconds), 0, zone)
		case s.seconds < month:
			days := s.seconds / day
			number := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / day
			at = time.Date(y, m, d-int(number%days)+int(i*days), 0, 0, 0, 0, zone)
		default:
			months := int(s.seconds / month)
			at = time.Date(y, time.Month(1+(int(m)-1)/months*months+int(i)*months), 1, 0, 0, 0, 0, zone)
			if months > 12 {
				at = time.Date(y/(months/12)*(months/12)+int(i)*months/12, 1, 1, 0, 0, 0, 0, zone)
			}
		}
		u := at.Unix()
		if u > until {
			break
		}
		if u >= from && u > last {
			all = append(all, tick{u, at.Format(format)})
			last = u
		}
	}
	return all
}
