package transform

import (
	"cmp"
	"slices"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// weighed is the number of times whose values say in which order a heat map has its series.
const weighed = 5

// heatMap subtracts from each series the one that is the next smaller, for counters of buckets that contain
// the smaller buckets.
func heatMap(c *function.Call) (any, error) {
	list := slices.Clone(c.List(0))
	if len(list) == 0 {
		return list, nil
	}
	for _, s := range list {
		if s.Start != list[0].Start || s.Step != list[0].Step || len(s.Values) != len(list[0].Values) {
			return nil, c.Errorf("%s and %s have different times or steps", list[0].Name, s.Name)
		}
		if err := c.Check(len(s.Values)); err != nil {
			return nil, err
		}
	}
	weight := map[*series.Series]float64{}
	for i, found := 0, 0; i < len(list[0].Values) && found < weighed; i++ {
		if slices.ContainsFunc(list, func(s *series.Series) bool { return series.IsNull(s.Values[i]) }) {
			continue
		}
		for _, s := range list {
			weight[s] += s.Values[i]
		}
		found++
	}
	slices.SortStableFunc(list, func(a, b *series.Series) int { return cmp.Compare(weight[a], weight[b]) })
	var out series.List
	for i := 1; i < len(list); i++ {
		s, smaller := list[i], list[i-1]
		values := series.Nulls(len(s.Values))
		for j, v := range s.Values {
			if !series.IsNull(v) && !series.IsNull(smaller.Values[j]) {
				values[j] = v - smaller.Values[j]
			}
		}
		out = append(out, s.Derive("heatMap("+s.Name+","+smaller.Name+")", values))
	}
	return out, nil
}
