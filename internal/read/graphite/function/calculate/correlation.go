package calculate

import (
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// pearson correlates two series over a moving window of points.
func pearson(c *function.Call) (any, error) {
	if len(c.List(0)) != 1 || len(c.List(1)) != 1 {
		return nil, c.Errorf("expected two single series, found %d and %d", len(c.List(0)), len(c.List(1)))
	}
	a, b, points := c.List(0)[0], c.List(1)[0], int(c.Int(2))
	if a.Step != b.Step || len(a.Values) != len(b.Values) {
		return nil, c.Errorf("%s and %s have different steps", a.Name, b.Name)
	}
	if points < 1 {
		return nil, c.Errorf("expected a window of 1 or more points, found %d", points)
	}
	out := series.Nulls(len(a.Values))
	for i := points - 1; i < len(out); i++ {
		if err := c.Check(points); err != nil {
			return nil, err
		}
		out[i] = series.Correlation(a.Values[i+1-points:i+1], b.Values[i+1-points:i+1])
	}
	return series.List{a.Derive("pearson("+a.Name+","+b.Name+","+c.Text(2)+")", out)}, nil
}
