package calculate

import (
	"fmt"

	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// nPercentile draws the n-th percentile of each series as a line.
func nPercentile(c *function.Call) (any, error) {
	n := c.Number(1)
	if n == 0 {
		return nil, c.Errorf("The requested percent is required to be greater than 0")
	}
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		v, err := series.Percentile(s.Values, n, false)
		if err != nil || series.IsNull(v) {
			return nil, err
		}
		s.Tags["nPercentile"] = c.Text(1)
		return s.Derive("nPercentile("+s.Name+", "+series.General(n)+")", series.Repeat(v, int((s.End-s.Start)/s.Step))), nil
	})(c)
}

// aggregateLine draws an aggregation of each series as a line, of three points or with the step of the
// series.
func aggregateLine(c *function.Call) (any, error) {
	name := c.Text(1)
	f, err := series.AggregationOf(name)
	if err != nil {
		return nil, err
	}
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		v, text := f(s.Values), "None"
		var shown any = v
		if !series.IsNull(v) {
			text = series.General(v)
		} else {
			shown = nil
		}
		if name == "count" {
			shown = int64(v)
		}
		title := "aggregateLine(" + s.Name + ", " + text + ")"
		if c.Flag(2) {
			return s.Derive(title, series.Repeat(v, len(s.Values))), nil
		}
		line := function.Constant(c.Window, shown)
		line.Rename(title)
		return line, nil
	})(c)
}

// linearRegression draws the line that fits the values of a window best.
func linearRegression(c *function.Call) (any, error) {
	from, until := c.From, c.Until
	for i, bound := range []*int64{&from, &until} {
		if !c.Has(1 + i) {
			continue
		}
		at, err := attime.Parse(c.Text(1+i), c.Now)
		if err != nil {
			return nil, err
		}
		*bound = at.Unix()
	}
	sources, err := c.Again(c, from, until)
	if err != nil {
		return nil, err
	}
	list := c.List(0)
	var out series.List
	for i := range min(len(sources), len(list)) {
		s := list[i]
		if err := c.Check(len(s.Values) + len(sources[i].Values)); err != nil {
			return nil, err
		}
		s.Tags["linearRegressions"] = fmt.Sprintf("%d, %d", from, until)
		factor, offset, ok := fit(sources[i])
		if !ok {
			continue
		}
		values := make([]float64, len(s.Values))
		for j := range values {
			values[j] = offset + float64(s.Start+int64(j)*s.Step)*factor
		}
		d := series.New(fmt.Sprintf("linearRegression(%s, %d, %d)", s.Name, from, until), s.Start, s.End, s.Step, values, s.XFF)
		d.Tags = s.Tags
		out = append(out, d)
	}
	return out, nil
}

// fit returns the rise per second and the value at the time 0 of the line with the least squares.
func fit(s *series.Series) (factor, offset float64, ok bool) {
	var n, sumI, sumV, sumII, sumIV float64
	for i, v := range s.Values {
		if !series.IsNull(v) {
			x := float64(i)
			n++
			sumI += x
			sumV += v
			sumII += x * x
			sumIV += x * v
		}
	}
	denominator := n*sumII - sumI*sumI
	if denominator == 0 {
		return 0, 0, false
	}
	factor = (n*sumIV - sumI*sumV) / denominator / float64(s.Step)
	offset = (sumII*sumV-sumIV*sumI)/denominator - factor*float64(s.Start)
	return factor, offset, true
}
