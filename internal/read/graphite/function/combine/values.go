package combine

import (
	"math"
	"slices"
	"strconv"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// countValues makes a series of each whole number among the values: how many series have it at each time.
func countValues(c *function.Call) (any, error) {
	list, limit := c.List(0), c.Int(1)
	if len(list) == 0 {
		return list, nil
	}
	list, grid, err := series.Normalize(list)
	if err != nil {
		return nil, err
	}
	counts := map[int64][]float64{}
	longest := 0
	for _, s := range list {
		longest = max(longest, len(s.Values))
	}
	for _, s := range list {
		if err := c.Check(len(s.Values)); err != nil {
			return nil, err
		}
		for i, v := range s.Values {
			if series.IsNull(v) || math.IsNaN(v) {
				continue
			}
			key := int64(max(-1e18, min(1e18, v)))
			if counts[key] == nil {
				if int64(len(counts)) >= limit {
					return nil, c.Errorf("the series have more than %d values: raise valuesLimit, or round them first", limit)
				}
				if err := c.Charge(c, int64(longest)); err != nil {
					return nil, err
				}
				counts[key] = make([]float64, longest)
			}
			counts[key][i]++
		}
	}
	keys := make([]int64, 0, len(counts))
	for key := range counts {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	out := make(series.List, 0, len(keys))
	for _, key := range keys {
		d := list[0].Derive(strconv.FormatInt(key, 10), counts[key])
		d.Start, d.End, d.Step = grid.Start, grid.End, grid.Step
		out = append(out, d)
	}
	return out, nil
}
