package calculate

import (
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// weighted averages values with weights that fall by the same factor from each to the one before it. Unlike
// exponentialMovingAverage, it begins with the first value of the graph.
func weighted(c *function.Call, s *series.Series) (*series.Series, error) {
	alpha, mean, begun := c.Number(1), 0.0, false
	return s.Derive("ewma("+s.Name+","+c.Text(1)+")", series.Map(s.Values, func(v float64) float64 {
		if mean = alpha*v + (1-alpha)*mean; !begun {
			mean, begun = v, true
		}
		return mean
	})), nil
}
