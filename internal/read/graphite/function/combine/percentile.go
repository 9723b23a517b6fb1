package combine

import (
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

func percentileOf(c *function.Call) (any, error) {
	list, n, interpolate := c.List(0), c.Number(1), c.Flag(2)
	if n <= 0 {
		return nil, c.Errorf("The requested percent is required to be greater than 0")
	}
	if len(list) == 0 {
		return series.List(nil), nil
	}
	name := "percentileOfSeries(" + list[0].Path + "," + series.General(n) + ")"
	list, grid, err := series.Normalize(list)
	if err != nil {
		return nil, err
	}
	var out []float64
	var failed error
	series.Rows(list, func(_ int, row []float64) {
		if failed != nil {
			return
		}
		if failed = c.Check(4 * len(row)); failed == nil {
			var v float64
			v, failed = series.Percentile(row, n, interpolate)
			out = append(out, v)
		}
	})
	if failed != nil {
		return nil, failed
	}
	return series.List{series.New(name, grid.Start, grid.End, grid.Step, out, c.XFF)}, nil
}

// powers raises the first series to the power of the second, the result to that of the third, and so on.
func powers(c *function.Call) (any, error) {
	list := c.Joined(0)
	if len(list) == 0 {
		return series.List(nil), nil
	}
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.Name
	}
	list, grid, err := series.Normalize(list)
	if err != nil {
		return nil, err
	}
	var out []float64
	series.Rows(list, func(_ int, row []float64) {
		v := row[0]
		for _, power := range row[1:] {
			v = series.Power(v, power)
		}
		out = append(out, v)
	})
	return series.List{series.New("powSeries("+strings.Join(names, ",")+")", grid.Start, grid.End, grid.Step, out, c.XFF)}, nil
}
