package transform

import (
	"math"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// values returns the body of a function that replaces each value and leaves the rest of a series as it is.
// The name becomes name(old) with what args returns before the parenthesis. The tag may be "".
func values(name, tag string, args func(c *function.Call) (text, tagValue string), f func(c *function.Call, s *series.Series) func(float64) float64) function.Body {
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		text, tagValue := "", "1"
		if args != nil {
			text, tagValue = args(c)
		}
		if tag != "" {
			s.Tags[tag] = tagValue
		}
		compute := f(c, s)
		s.Rename(name + "(" + s.Name + text + ")")
		s.Values = series.Map(s.Values, compute)
		return s, nil
	})
}

// each is values for a function of the value alone.
func each(name, tag string, args func(c *function.Call) (string, string), f func(v float64) float64) function.Body {
	return values(name, tag, args, func(*function.Call, *series.Series) func(float64) float64 { return f })
}

// constant returns the text of a constant tag.
func constant(tagValue string) func(*function.Call) (string, string) {
	return func(*function.Call) (string, string) { return "", tagValue }
}

// general shows the first argument with six digits.
func general(c *function.Call) (string, string) {
	return "," + series.General(c.Number(1)), series.Text(c.Value(1))
}

// whole shows the first argument without its fraction.
func whole(c *function.Call) (string, string) {
	return "," + series.Whole(c.Number(1)), series.Text(c.Value(1))
}

// by computes values with the first argument.
func by(f func(v, by float64) float64) func(c *function.Call, _ *series.Series) func(float64) float64 {
	return func(c *function.Call, _ *series.Series) func(float64) float64 {
		n := c.Number(1)
		return func(v float64) float64 { return f(v, n) }
	}
}

func plus(v, by float64) float64  { return v + by }
func times(v, by float64) float64 { return v * by }

// toSeconds scales a value per step to a value per some seconds.
func toSeconds(c *function.Call, s *series.Series) func(float64) float64 {
	factor := c.Number(1) / float64(s.Step)
	return func(v float64) float64 { return series.Round(v*factor, 6) }
}

func exponential(v float64) float64 {
	r := math.Exp(v)
	if math.IsInf(r, 1) && !math.IsInf(v, 1) {
		return series.Null()
	}
	return r
}

func sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

func logit(v float64) float64 {
	odds := v / (1 - v)
	if v == 1 || odds <= 0 {
		return series.Null()
	}
	return math.Log(odds)
}

func squareRoot(v float64) float64 { return series.Power(v, 0.5) }
func invert(v float64) float64     { return series.Power(v, -1) }

// logarithm leaves out what is not positive.
func logarithm(c *function.Call) (any, error) {
	base := c.Number(1)
	divisor := math.Log(base)
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		// Without a positive value, as in graphite-web, any base will do.
		if (base <= 0 || base == 1) && series.Max(s.Values) > 0 {
			return nil, c.Errorf("expected a positive base other than 1, found %s", c.Text(1))
		}
		s.Tags["log"] = c.Text(1)
		return s.Derive("log("+s.Name+", "+c.Text(1)+")", series.Map(s.Values, func(v float64) float64 {
			if v <= 0 {
				return series.Null()
			}
			return math.Log(v) / divisor
		})), nil
	})(c)
}

func offsetToZero(_ *function.Call, s *series.Series) (*series.Series, error) {
	least := series.Min(s.Values)
	s.Tags["offsetToZero"] = series.Text(least)
	s.Rename("offsetToZero(" + s.Name + ")")
	s.Values = series.Map(s.Values, func(v float64) float64 { return v - least })
	return s, nil
}

func round(c *function.Call, s *series.Series) (*series.Series, error) {
	places, name := c.Int(1), "round("+s.Name
	if c.Has(1) {
		name += "," + series.General(float64(places))
	}
	s.Tags["round"] = series.Text(places)
	s.Rename(name + ")")
	s.Values = series.Map(s.Values, func(v float64) float64 { return series.Round(v, int(max(-1000, min(1000, places)))) })
	return s, nil
}

// minMax scales values to the range from 0 to 1.
func minMax(_ *function.Call, s *series.Series) (*series.Series, error) {
	low, high := series.Min(s.Values), series.Max(s.Values)
	s.Rename("minMax(" + s.Name + ")")
	s.Values = series.Map(s.Values, func(v float64) float64 {
		if high == low {
			return 0
		}
		return (v - low) / (high - low)
	})
	return s, nil
}

func isNonNull(_ *function.Call, s *series.Series) (*series.Series, error) {
	s.Tags["isNonNull"] = "1"
	s.Rename("isNonNull(" + s.Name + ")")
	out := make([]float64, len(s.Values))
	for i, v := range s.Values {
		if !series.IsNull(v) {
			out[i] = 1
		}
	}
	s.Values = out
	return s, nil
}
