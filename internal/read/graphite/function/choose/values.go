package choose

import (
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// remove returns the body of a function that leaves out values on one side of a bound, which is the second
// argument or a percentile of the series. What lies below a bound leaves out missing values, too, which
// changes nothing.
func remove(name string, percentile, above bool) function.Body {
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		n := c.Number(1)
		s.Rename(name + "(" + s.Name + ", " + series.General(n) + ")")
		bound := n
		if percentile {
			if n == 0 {
				return nil, c.Errorf("The requested percent is required to be greater than 0")
			}
			var err error
			if bound, err = series.Percentile(s.Values, n, false); err != nil {
				return nil, err
			}
			if series.IsNull(bound) {
				return s, nil
			}
			s.Tags["nPercentile"] = series.Text(c.Value(1))
			if s.End-s.Start < s.Step {
				return s, nil
			}
		}
		s.Values = series.Map(s.Values, func(v float64) float64 {
			if above && v > bound || !above && v < bound {
				return series.Null()
			}
			return v
		})
		return s, nil
	})
}
