package transform

import (
	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

func derivative(_ *function.Call, s *series.Series) (*series.Series, error) {
	out := make([]float64, len(s.Values))
	previous := series.Null()
	for i, v := range s.Values {
		if out[i] = series.Null(); !series.IsNull(v) && !series.IsNull(previous) {
			out[i] = v - previous
		}
		previous = v
	}
	s.Tags["derivative"] = "1"
	return s.Derive("derivative("+s.Name+")", out), nil
}

// growth computes how much a counter grew. A counter that falls wrapped around at the greatest value, or
// began again at the least one; without both, the growth is unknown. Values outside of these bounds are
// ignored.
func growth(c *function.Call, s *series.Series) []float64 {
	out := make([]float64, len(s.Values))
	previous := series.Null()
	for i, v := range s.Values {
		out[i] = series.Null()
		switch {
		case series.IsNull(v):
			previous = v
		case c.Has(1) && v > c.Number(1), c.Has(2) && v < c.Number(2):
			previous = series.Null()
		case series.IsNull(previous):
			previous = v
		default:
			switch {
			case v >= previous:
				out[i] = v - previous
			case c.Has(1):
				out[i] = c.Number(1) + 1 + v - previous - c.Number(2)
			case c.Has(2):
				out[i] = v - c.Number(2)
			}
			previous = v
		}
	}
	return out
}

func nonNegativeDerivative(c *function.Call, s *series.Series) (*series.Series, error) {
	out := growth(c, s)
	s.Tags["nonNegativeDerivative"] = "1"
	return s.Derive("nonNegativeDerivative("+s.Name+")", out), nil
}

func perSecond(c *function.Call, s *series.Series) (*series.Series, error) {
	out := growth(c, s)
	for i, v := range out {
		if !series.IsNull(v) {
			out[i] = series.Round(v/float64(s.Step), 6)
		}
	}
	s.Tags["perSecond"] = "1"
	return s.Derive("perSecond("+s.Name+")", out), nil
}

func integral(_ *function.Call, s *series.Series) (*series.Series, error) {
	sum := 0.0
	s.Tags["integral"] = "1"
	return s.Derive("integral("+s.Name+")", series.Map(s.Values, func(v float64) float64 {
		sum += v
		return sum
	})), nil
}

// integralWithReset adds up values, and begins again at 0 wherever another series is not 0.
func integralWithReset(c *function.Call) (any, error) {
	if len(c.List(1)) != 1 {
		return nil, c.Errorf("the second argument must be a single series, found %d", len(c.List(1)))
	}
	reset := c.List(1)[0]
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		if s.Step != reset.Step || len(s.Values) != len(reset.Values) {
			return nil, c.Errorf("%s and %s have different steps", s.Name, reset.Name)
		}
		sum, out := 0.0, make([]float64, len(s.Values))
		for i, v := range s.Values {
			switch r := reset.Values[i]; {
			case series.IsNull(v):
				out[i] = v
				continue
			case !series.IsNull(r) && r != 0:
				sum = 0
			default:
				sum += v
			}
			out[i] = sum
		}
		return s.Derive("integralWithReset("+s.Name+","+reset.Name+")", out), nil
	})(c)
}

// integralByInterval adds up values from the start of each interval, which begin at the start of the window.
func integralByInterval(c *function.Call) (any, error) {
	interval, err := attime.ParseOffset(c.Text(1))
	if interval = max(interval, -interval); err != nil || interval == 0 {
		return nil, c.Errorf(`expected an interval such as "1d", found %q`, c.Text(1))
	}
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		out := make([]float64, len(s.Values))
		sum, at := 0.0, s.Start-c.From
		for i, v := range s.Values {
			if floorDiv(at, interval) != floorDiv(at-s.Step, interval) {
				sum = 0
			}
			if !series.IsNull(v) {
				sum += v
			}
			out[i] = sum
			at += s.Step
		}
		s.Tags["integralByInterval"] = c.Text(1)
		return s.Derive("integralByInterval("+s.Name+",'"+c.Text(1)+"')", out), nil
	})(c)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// delay moves values by some steps. As in graphite-web, a delay of 0 loses all values.
func delay(c *function.Call, s *series.Series) (*series.Series, error) {
	steps, n := c.Int(1), int64(len(s.Values))
	var out []float64
	switch {
	case steps < 0:
		gone := min(-steps, n)
		out = append(out, s.Values[gone:]...)
		out = append(out, series.Nulls(int(gone))...)
	case steps > 0:
		gone := min(steps, n)
		out = append(series.Nulls(int(gone)), s.Values[:n-gone]...)
	}
	s.Tags["delay"] = series.Text(steps)
	return s.Derive("delay("+s.Name+","+series.Text(steps)+")", out), nil
}
