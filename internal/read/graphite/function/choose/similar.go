package choose

import (
	"cmp"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// pearsonClosest keeps the n series that go most like a single one, the closest first.
func pearsonClosest(c *function.Call) (any, error) {
	if len(c.List(0)) != 1 {
		return nil, c.Errorf("the first argument must be a single series, found %d", len(c.List(0)))
	}
	reference, direction := c.List(0)[0], c.Text(3)
	distance := map[*series.Series]float64{}
	var out series.List
	for _, s := range c.List(1) {
		if err := c.Check(len(s.Values)); err != nil {
			return nil, err
		}
		if len(s.Values) != len(reference.Values) {
			continue // another step: there is nothing to compare
		}
		r := series.Correlation(reference.Values, s.Values)
		switch {
		case series.IsNull(r), direction == "pos" && r < 0, direction == "neg" && r > 0:
			continue
		}
		distance[s] = -math.Abs(r)
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b *series.Series) int { return cmp.Compare(distance[a], distance[b]) })
	return out[:min(max(0, c.Int(2)), int64(len(out)))], nil
}
