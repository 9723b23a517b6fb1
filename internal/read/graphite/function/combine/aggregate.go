package combine

import (
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// aggregate makes one series of a list. xff is the share of the list's values that must be present. An
// empty list gives an empty list.
func aggregate(c *function.Call, list series.List, name string, xff float64) (series.List, error) {
	name = strings.TrimSuffix(name, "Series")
	f, err := series.AggregationOf(name)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	paths := function.Expressions(list)
	tags := sharedTags(list)
	list, grid, err := series.Normalize(list)
	if err != nil {
		return nil, err
	}
	values, err := columns(c, list, name, f, xff)
	if err != nil {
		return nil, err
	}
	s := series.New(name+"Series("+paths+")", grid.Start, grid.End, grid.Step, values, xff)
	if _, named := tags["name"]; !named {
		tags["name"] = s.Name
	}
	tags["aggregatedBy"] = name
	s.Tags = tags
	return series.List{s}, nil
}

// sharedTags returns the tags that all series have in common.
func sharedTags(list series.List) map[string]string {
	tags := make(map[string]string, len(list[0].Tags)+1)
	for tag, value := range list[0].Tags {
		tags[tag] = value
	}
	for _, s := range list[1:] {
		for tag, value := range tags {
			if other, ok := s.Tags[tag]; !ok || other != value {
				delete(tags, tag)
			}
		}
	}
	return tags
}

// columns aggregates the values of each time. Series by series is faster than time by time, since it reads
// memory in order; the order of additions is the same.
func columns(c *function.Call, list series.List, name string, f series.Aggregation, xff float64) ([]float64, error) {
	n := 0
	for _, s := range list {
		n = max(n, len(s.Values))
	}
	if err := c.Charge(c, int64(n)); err != nil {
		return nil, err
	}
	switch name {
	case "sum", "total", "average", "avg", "min", "max", "count":
		return running(c, list, name, n, xff)
	}
	out := make([]float64, n)
	var failed error
	series.Rows(list, func(i int, row []float64) {
		if failed == nil {
			failed = c.Check(len(row))
		}
		if out[i] = series.Null(); failed == nil && series.Enough(int(series.Count(row)), float64(len(row)), xff) {
			out[i] = f(row)
		}
	})
	return out, failed
}

// running aggregates with one pass over each series.
func running(c *function.Call, list series.List, name string, n int, xff float64) ([]float64, error) {
	acc, present := make([]float64, n), make([]int32, n)
	for _, s := range list {
		if err := c.Check(len(s.Values)); err != nil {
			return nil, err
		}
		switch name {
		case "min":
			for i, v := range s.Values {
				if !series.IsNull(v) {
					if present[i] == 0 || v < acc[i] {
						acc[i] = v
					}
					present[i]++
				}
			}
		case "max":
			for i, v := range s.Values {
				if !series.IsNull(v) {
					if present[i] == 0 || v > acc[i] {
						acc[i] = v
					}
					present[i]++
				}
			}
		default:
			for i, v := range s.Values {
				if !series.IsNull(v) {
					acc[i] += v
					present[i]++
				}
			}
		}
	}
	for i, p := range present {
		switch {
		case !series.Enough(int(p), float64(len(list)), xff):
			acc[i] = series.Null()
		case name == "average" || name == "avg":
			acc[i] /= float64(p)
		case name == "count":
			acc[i] = float64(p)
		}
	}
	return acc, nil
}

// by returns the body of a function that aggregates all of its lists in one way.
func by(name string) function.Body {
	return func(c *function.Call) (any, error) {
		return aggregate(c, c.Joined(0), name, c.XFF)
	}
}

func aggregateBody(c *function.Call) (any, error) {
	return aggregate(c, c.List(0), c.Text(1), c.Share(2, c.XFF))
}

// pairs aggregates the series of two lists by their positions.
func pairs(c *function.Call, name string, xff float64) (any, error) {
	first, second := c.List(0), c.List(1)
	if len(first) != len(second) {
		return nil, c.Errorf("seriesListFirstPos and seriesListSecondPos argument must have equal length, found %d and %d series", len(first), len(second))
	}
	var out series.List
	for i := range first {
		made, err := aggregate(c, series.List{first[i], second[i]}, name, xff)
		if err != nil {
			return nil, err
		}
		begin, _, _ := strings.Cut(made[0].Name, "Series(")
		made[0].Name = begin + "Series(" + first[i].Name + "," + second[i].Name + ")"
		out = append(out, made...)
	}
	return out, nil
}

func pairsBy(name string) function.Body {
	return func(c *function.Call) (any, error) { return pairs(c, name, c.XFF) }
}

// powerPairs raises each series of the first list to the power of the one at its place in the second, or of
// its only one.
func powerPairs(c *function.Call) (any, error) {
	first, second := c.List(0), c.List(1)
	if len(second) != len(first) && len(second) != 1 {
		return nil, c.Errorf("expected as many exponents as series, or one, found %d and %d", len(second), len(first))
	}
	out := make(series.List, 0, len(first))
	for i, s := range first {
		list, grid, err := series.Normalize(series.List{s, second[min(i, len(second)-1)]})
		if err != nil {
			return nil, err
		}
		base, exponent := list[0], list[1]
		values := series.Nulls(min(len(base.Values), len(exponent.Values)))
		if err := c.Check(len(values)); err != nil {
			return nil, err
		}
		for j := range values {
			if b, e := base.Values[j], exponent.Values[j]; !series.IsNull(b) && !series.IsNull(e) {
				values[j] = series.Pow(b, e)
			}
		}
		d := base.Derive("powSeries("+s.Name+","+exponent.Name+")", values)
		d.Start, d.End, d.Step = grid.Start, grid.End, grid.Step
		out = append(out, d)
	}
	return out, nil
}

func aggregatePairs(c *function.Call) (any, error) {
	return pairs(c, c.Text(2), c.Share(3, c.XFF))
}

// wildcards groups series by what is left of their names without the nodes at some positions.
func wildcards(c *function.Call, name string, positions []any) (any, error) {
	drop := make(map[int64]bool, len(positions))
	for i := range positions {
		drop[c.Int(len(c.Values)-len(positions)+i)] = true
	}
	keys, groups := function.Groups(c.List(0), func(s *series.Series) string {
		var kept []string
		for i, node := range strings.Split(s.Name, ".") {
			if !drop[int64(i)] {
				kept = append(kept, node)
			}
		}
		return strings.Join(kept, ".")
	})
	var out series.List
	for _, key := range keys {
		made, err := aggregate(c, groups[key], name, c.XFF)
		if err != nil {
			return nil, err
		}
		made[0].Name = key
		out = append(out, made...)
	}
	return out, nil
}

func wildcardsBy(name string) function.Body {
	return func(c *function.Call) (any, error) { return wildcards(c, name, c.Rest(1)) }
}

func aggregateWildcards(c *function.Call) (any, error) { return wildcards(c, c.Text(1), c.Rest(2)) }

// multiply returns a single series as it is, and otherwise the product.
func multiply(c *function.Call) (any, error) {
	if len(c.Values) == 1 && len(c.List(0)) == 1 {
		return c.List(0), nil
	}
	return aggregate(c, c.Joined(0), "multiply", c.XFF)
}

// count counts the series, whether their values are present or not.
func count(c *function.Call) (any, error) {
	if len(c.Values) == 0 {
		line := function.Constant(c.Window, int64(0))
		line.Path = "countSeries()"
		return series.List{line}, nil
	}
	list := c.Joined(0)
	if len(list) == 0 {
		return series.List(nil), nil
	}
	name := "countSeries(" + function.Expressions(list) + ")"
	list, grid, err := series.Normalize(list)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, s := range list {
		n = max(n, len(s.Values))
	}
	if err := c.Charge(c, int64(n)); err != nil {
		return nil, err
	}
	return series.List{series.New(name, grid.Start, grid.End, grid.Step, series.Repeat(float64(len(list)), n), c.XFF)}, nil
}
