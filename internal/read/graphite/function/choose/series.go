package choose

import (
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// operators compare a value, which may be missing, with a threshold.
var operators = map[string]func(v, threshold float64) bool{
	"=":  func(v, t float64) bool { return !series.IsNull(v) && v == t },
	"!=": func(v, t float64) bool { return series.IsNull(v) || v != t },
	">":  func(v, t float64) bool { return !series.IsNull(v) && v > t },
	">=": func(v, t float64) bool { return !series.IsNull(v) && v >= t },
	"<":  func(v, t float64) bool { return series.IsNull(v) || v < t },
	"<=": func(v, t float64) bool { return series.IsNull(v) || v <= t },
}

// keep returns the series that satisfy a condition.
func keep(c *function.Call, list series.List, ok func(s *series.Series) (bool, error)) (any, error) {
	var out series.List
	for _, s := range list {
		if err := c.Check(len(s.Values)); err != nil {
			return nil, err
		}
		good, err := ok(s)
		if err != nil {
			return nil, err
		}
		if good {
			out = append(out, s)
		}
	}
	return out, nil
}

func filter(c *function.Call, name, operator string, threshold float64) (any, error) {
	f, err := series.AggregationOf(name)
	if err != nil {
		return nil, err
	}
	compare := operators[operator]
	return keep(c, c.List(0), func(s *series.Series) (bool, error) { return compare(f(s.Values), threshold), nil })
}

// when returns the body of a function that compares one aggregation with its second argument.
func when(name, operator string) function.Body {
	return func(c *function.Call) (any, error) { return filter(c, name, operator, c.Number(1)) }
}

func filterSeries(c *function.Call) (any, error) {
	return filter(c, c.Text(1), c.Text(2), c.Number(3))
}

// order sorts a list by an aggregation. Series without one come where the least come. Equal series keep
// their order.
func order(c *function.Call, list series.List, f series.Aggregation, descending bool) (series.List, error) {
	keys := make(map[*series.Series]float64, len(list))
	for _, s := range list {
		if err := c.Check(len(s.Values)); err != nil {
			return nil, err
		}
		if keys[s] = f(s.Values); series.IsNull(keys[s]) {
			keys[s] = math.Inf(-1)
		}
	}
	list = slices.Clone(list)
	sort.SliceStable(list, func(i, j int) bool {
		if descending {
			i, j = j, i
			return keys[list[i]] < keys[list[j]]
		}
		return keys[list[i]] < keys[list[j]]
	})
	return list, nil
}

// first returns at most n series; a negative n leaves out series at the end.
func first(list series.List, n int64) series.List {
	if n < 0 {
		n = max(0, n+int64(len(list)))
	}
	return list[:min(n, int64(len(list)))]
}

// extreme returns the body of a function that sorts by an aggregation and takes the first n. An empty name
// takes it from the third argument.
func extreme(name string, descending bool) function.Body {
	return func(c *function.Call) (any, error) {
		name := name
		if name == "" {
			name = c.Text(2)
		}
		f, err := series.AggregationOf(name)
		if err != nil {
			return nil, err
		}
		list, err := order(c, c.List(0), f, descending)
		return first(list, c.Int(1)), err
	}
}

func limit(c *function.Call) (any, error) { return first(c.List(0), c.Int(1)), nil }

// matching returns the body of a function that keeps the series whose names match a regular expression, or
// do not.
func matching(want bool) function.Body {
	return func(c *function.Call) (any, error) {
		r, err := function.CompileRegexp(c.Text(1))
		if err != nil {
			return nil, c.Errorf("%w", err)
		}
		return keep(c, c.List(0), func(s *series.Series) (bool, error) {
			found, err := r.Search(s.Name)
			return found == want, err
		})
	}
}

// percentiles returns two percentiles that lie as far from the middle, in order.
func percentiles(c *function.Call, values []float64, n float64) (low, high float64, err error) {
	if n < 50 {
		n = 100 - n
	}
	if low, err = series.Percentile(values, 100-n, false); err != nil {
		return 0, 0, err
	}
	high, err = series.Percentile(values, n, false)
	return low, high, err
}

func averageOutside(c *function.Call) (any, error) {
	list := c.List(0)
	averages := make([]float64, len(list))
	for i, s := range list {
		averages[i] = series.Average(s.Values)
	}
	low, high, err := percentiles(c, averages, c.Number(1))
	if err != nil {
		return nil, err
	}
	return keep(c, list, func(s *series.Series) (bool, error) {
		v := series.Average(s.Values)
		return !(low < v && v < high), nil
	})
}

// removeBetween keeps the series that lie outside of two percentiles at any time. A missing value lies
// outside.
func removeBetween(c *function.Call) (any, error) {
	list := c.List(0)
	var low, high []float64
	var failed error
	shortest := math.MaxInt
	for _, s := range list {
		shortest = min(shortest, len(s.Values))
	}
	series.Rows(list, func(i int, row []float64) {
		if failed != nil || i >= shortest {
			return
		}
		if failed = c.Check(8 * len(row)); failed != nil {
			return
		}
		var l, h float64
		l, h, failed = percentiles(c, row, c.Number(1))
		low, high = append(low, l), append(high, h)
	})
	if failed != nil {
		return nil, failed
	}
	return keep(c, list, func(s *series.Series) (bool, error) {
		for i, v := range s.Values {
			if i >= shortest || !(low[i] < v && v < high[i]) {
				return true, nil
			}
		}
		return false, nil
	})
}

func removeEmpty(c *function.Call) (any, error) {
	return keep(c, c.List(0), func(s *series.Series) (bool, error) {
		return series.Enough(int(series.Count(s.Values)), float64(len(s.Values)), c.Share(1, 0)), nil
	})
}

// removeZero leaves out the series without values other than 0, or with less than a share of them.
func removeZero(c *function.Call) (any, error) {
	return keep(c, c.List(0), func(s *series.Series) (bool, error) {
		n := 0
		for _, v := range s.Values {
			if !series.IsNull(v) && v != 0 {
				n++
			}
		}
		return n > 0 && series.Enough(n, float64(len(s.Values)), c.Share(1, 0)), nil
	})
}

// unique keeps the first series of each name.
func unique(c *function.Call) (any, error) {
	seen := map[string]struct{}{}
	return keep(c, c.Joined(0), func(s *series.Series) (bool, error) {
		_, again := seen[s.Name]
		seen[s.Name] = struct{}{}
		return !again, nil
	})
}

// mostDeviant keeps the n series with the greatest variance.
func mostDeviant(c *function.Call) (any, error) {
	present, err := keep(c, c.List(0), func(s *series.Series) (bool, error) { return series.Count(s.Values) > 0, nil })
	if err != nil {
		return nil, err
	}
	list, err := order(c, present.(series.List), func(values []float64) float64 {
		mean, squares := series.Average(values), 0.0
		for _, v := range values {
			if !series.IsNull(v) {
				squares += (v - mean) * (v - mean)
			}
		}
		return squares / series.Count(values)
	}, true)
	return first(list, c.Int(1)), err
}

// useAbove evaluates the names that a regular expression makes of the series with a value above a threshold.
func useAbove(c *function.Call) (any, error) {
	if len(c.List(0)) == 0 {
		return series.List(nil), nil // without a name, graphite-web does not look at the expressions
	}
	r, err := function.CompileRegexp(c.Text(2))
	if err != nil {
		return nil, c.Errorf("%w", err)
	}
	t, err := r.Template(c.Text(3))
	if err != nil {
		return nil, c.Errorf("%w", err)
	}
	var names []string
	for _, s := range c.List(0) {
		name, err := t.Replace(s.Name)
		if err != nil {
			return nil, err
		}
		if greatest := series.Max(s.Values); !series.IsNull(greatest) && greatest > c.Number(1) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return series.List(nil), nil
	}
	list, err := c.Target(c, "group("+strings.Join(names, ",")+")")
	if err != nil {
		return nil, err
	}
	return keep(c, list, func(s *series.Series) (bool, error) { return len(s.Values) > 0, nil })
}
