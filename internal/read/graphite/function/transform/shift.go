package transform

import (
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// offset reads an interval that means the past unless it has a sign.
func offset(c *function.Call, i int) (text string, seconds int64, err error) {
	text = c.Text(i)
	if text != "" && text[0] >= '0' && text[0] <= '9' {
		text = "-" + text
	}
	seconds, err = attime.ParseOffset(text)
	return text, seconds, err
}

// timeShift evaluates its argument over an earlier or later window, and gives the result the times of this
// one.
func timeShift(c *function.Call) (any, error) {
	text, delta, err := offset(c, 1)
	if err != nil {
		return nil, err
	}
	if c.Flag(3) {
		delta += summerTime(c, delta)
	}
	if len(c.List(0)) == 0 {
		return series.List(nil), nil
	}
	first := *c.List(0)[0]
	shifted, err := c.Again(c, c.From+delta, c.Until+delta)
	if err != nil {
		return nil, err
	}
	for _, s := range shifted {
		s.Tags["timeShift"] = text
		s.Name = "timeShift(" + s.Name + `, "` + text + `")`
		if c.Flag(2) {
			s.End = first.End
		} else {
			s.End += first.Start - s.Start
		}
		s.Start = first.Start
	}
	return shifted, nil
}

// summerTime returns the hour by which a shift must be corrected if one window lies in summer time and the
// other one does not.
func summerTime(c *function.Call, delta int64) int64 {
	in := func(at int64) bool { return time.Unix(at, 0).In(c.Now.Location()).IsDST() }
	from, until, shiftedFrom, shiftedUntil := in(c.From), in(c.Until), in(c.From+delta), in(c.Until+delta)
	switch {
	case from && until && !shiftedFrom && !shiftedUntil:
		return 3600
	case !from && !until && shiftedFrom && shiftedUntil:
		return -3600
	}
	return 0
}

// maxStack bounds the windows of timeStack.
const maxStack = 1000

// timeStack evaluates its argument over several windows that are an interval apart.
func timeStack(c *function.Call) (any, error) {
	text, delta, err := offset(c, 1)
	if err != nil || len(c.List(0)) == 0 {
		return series.List(nil), err
	}
	from, to := c.Int(2), c.Int(3)
	if from < -maxStack*10 || to-from > maxStack || to > maxStack*10 {
		return nil, c.Errorf("expected at most %d windows, found %d to %d", maxStack, from, to)
	}
	first := *c.List(0)[0]
	var out series.List
	for n := from; n < to; n++ {
		shifted, err := c.Again(c, c.From+n*delta, c.Until+n*delta)
		if err != nil {
			return nil, err
		}
		for _, s := range shifted {
			s.Tags["timeShiftUnit"], s.Tags["timeShift"] = text, series.Text(n)
			s.Rename(fmt.Sprintf("timeShift(%s, %s, %d)", s.Name, text, n))
			s.Start, s.End = first.Start, first.End
			out = append(out, s)
		}
	}
	return out, nil
}

// timeSlice leaves out the values before a time and after another one. As in graphite-web, the times of
// values count from the start of the window, one step before the first value.
func timeSlice(c *function.Call) (any, error) {
	from, err := attime.Parse(c.Text(1), c.Now)
	if err != nil {
		return nil, err
	}
	until, err := attime.Parse(c.Text(2), c.Now)
	if err != nil {
		return nil, err
	}
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		s.Tags["timeSliceStart"], s.Tags["timeSliceEnd"] = series.Text(from.Unix()), series.Text(until.Unix())
		s.Name = fmt.Sprintf("timeSlice(%s, %d, %d)", s.Name, from.Unix(), until.Unix())
		out := make([]float64, len(s.Values))
		for i, v := range s.Values {
			at := c.From + int64(i)*s.Step
			if out[i] = v; at < from.Unix() || at > until.Unix() {
				out[i] = series.Null()
			}
		}
		s.Values = out
		return s, nil
	})(c)
}
