package combine

import (
	"slices"
	"sort"
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// zip computes the values of two series with a function, on their common grid.
func zip(c *function.Call, name string, a, b *series.Series, f func(a, b float64) float64) (*series.Series, error) {
	list, grid, err := series.Normalize(series.List{a, b})
	if err != nil {
		return nil, err
	}
	if err := c.Check(len(list[0].Values) + len(list[1].Values)); err != nil {
		return nil, err
	}
	out := make([]float64, max(len(list[0].Values), len(list[1].Values)))
	series.Rows(list, func(i int, row []float64) { out[i] = f(row[0], row[1]) })
	return series.New(name, grid.Start, grid.End, grid.Step, out, c.XFF), nil
}

func divide(c *function.Call) (any, error) {
	dividends, divisors := c.List(0), c.List(1)
	if len(divisors) > 1 {
		return nil, c.Errorf("divideSeries second argument must reference exactly 1 series (got %d)", len(divisors))
	}
	out := make(series.List, 0, len(dividends))
	for _, s := range dividends {
		if len(divisors) == 0 {
			s.Rename("divideSeries(" + s.Name + ",MISSING)")
			s.Values = series.Nulls(len(s.Values))
			out = append(out, s)
			continue
		}
		d, err := zip(c, "divideSeries("+s.Name+","+divisors[0].Name+")", s, divisors[0], series.Divide)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func divideLists(c *function.Call) (any, error) {
	dividends, divisors := c.List(0), c.List(1)
	if len(dividends) != len(divisors) {
		return nil, c.Errorf("dividendSeriesList and divisorSeriesList argument must have equal length, found %d and %d series", len(dividends), len(divisors))
	}
	var out series.List
	for i, s := range dividends {
		d, err := zip(c, "divideSeries("+s.Name+","+divisors[i].Name+")", s, divisors[i], series.Divide)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func percent(a, b float64) float64 {
	v := series.Divide(a, b)
	if series.IsNull(v) {
		return v
	}
	return v * 100
}

// asPercent divides series by a total: the sum of all, a number, one series, or as many series as there are.
func asPercent(c *function.Call) (any, error) {
	if len(c.List(0)) == 0 {
		return series.List(nil), nil
	}
	list, _, err := series.Normalize(c.List(0))
	if err != nil {
		return nil, err
	}
	if len(c.Values) > 2 {
		return percentByNodes(c, list, c.Rest(2))
	}
	switch total := c.Value(1).(type) {
	case nil:
		sum, err := sumOf(c, list)
		if err != nil {
			return nil, err
		}
		return percentOf(c, list, sum)
	case series.List:
		switch len(total) {
		case len(list):
			return percentPairs(c, list, total)
		case 1:
			return percentOf(c, list, total[0])
		}
		return nil, c.Errorf("asPercent second argument must be missing, a single digit, reference exactly 1 series or reference the same number of series as the first argument")
	case int64, float64:
		by, text := c.Number(1), series.Text(total)
		n := len(list[0].Values)
		var out series.List
		for _, s := range list {
			values := series.Map(s.Values, func(v float64) float64 { return percent(v, by) })
			for i := n; i < len(values); i++ {
				values[i] = series.Null()
			}
			for len(values) < n {
				values = append(values, series.Null())
			}
			out = append(out, series.New("asPercent("+s.Name+","+text+")", s.Start, s.End, s.Step, values, c.XFF))
		}
		return out, nil
	}
	return nil, c.Errorf("expected total to be a number or a list of series, found %q", series.Text(c.Value(1)))
}

// sumOf returns the sum of a list as a series that is called like the sum.
func sumOf(c *function.Call, list series.List) (*series.Series, error) {
	name := "sumSeries(" + function.Expressions(list) + ")"
	list, grid, err := series.Normalize(list)
	if err != nil {
		return nil, err
	}
	values, err := columns(c, list, "sum", series.Sum, 0)
	if err != nil {
		return nil, err
	}
	return series.New(name, grid.Start, grid.End, grid.Step, values, c.XFF), nil
}

// percentOf divides every series by one total. As in graphite-web, the grid is that of the series.
func percentOf(c *function.Call, list series.List, total *series.Series) (any, error) {
	var out series.List
	for _, s := range list {
		p, err := zip(c, "asPercent("+s.Name+","+total.Name+")", s, total, percent)
		if err != nil {
			return nil, err
		}
		if s.Step == total.Step {
			p.Start, p.End = s.Start, s.End
		}
		out = append(out, p)
	}
	return out, nil
}

// percentPairs divides series by totals, both in the order of their names.
func percentPairs(c *function.Call, list, totals series.List) (any, error) {
	byName := func(l series.List) series.List {
		l = slices.Clone(l)
		sort.SliceStable(l, func(i, j int) bool { return l[i].Name < l[j].Name })
		return l
	}
	list, totals = byName(list), byName(totals)
	var out series.List
	for i, s := range list {
		p, err := zip(c, "asPercent("+s.Name+","+totals[i].Name+")", s, totals[i], percent)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// percentByNodes divides series by the totals of their groups.
func percentByNodes(c *function.Call, list series.List, nodes []any) (any, error) {
	key := func(s *series.Series) string { return function.Key(s, nodes) }
	keys, groups := function.Groups(list, key)
	totalKeys, totalGroups := keys, groups
	switch total := c.Value(1).(type) {
	case nil:
	case series.List:
		totalKeys, totalGroups = function.Groups(total, key)
	default:
		return nil, c.Errorf("total must be None or a seriesList")
	}
	totals := make(map[string]*series.Series, len(totalKeys))
	for _, k := range totalKeys {
		group := totalGroups[k]
		if totals[k] = group[0]; len(group) > 1 {
			var err error
			if totals[k], err = sumOf(c, group); err != nil {
				return nil, err
			}
		}
	}
	var out series.List
	missing := func(s *series.Series, name string) {
		out = append(out, series.New(name, s.Start, s.End, s.Step, series.Nulls(len(s.Values)), c.XFF))
	}
	for _, k := range keys {
		for _, s := range groups[k] {
			if totals[k] == nil {
				missing(s, "asPercent("+s.Name+",MISSING)")
				continue
			}
			p, err := zip(c, "asPercent("+s.Name+","+totals[k].Name+")", s, totals[k], percent)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	for _, k := range totalKeys {
		if groups[k] == nil {
			missing(totals[k], "asPercent(MISSING,"+totals[k].Name+")")
		}
	}
	return out, nil
}

// weightedAverage divides the sum of products by the sum of weights.
func weightedAverage(c *function.Call) (any, error) {
	averages, weights, nodes := c.List(0), c.List(1), c.Rest(2)
	if len(averages) != len(weights) {
		return nil, c.Errorf("weightedAverage must receive the same number of series for seriesListAvg and seriesListWeight but received respectively %d and %d", len(averages), len(weights))
	}
	type pair struct{ average, weight *series.Series }
	var keys []string
	found := map[string]*pair{}
	at := func(s *series.Series) *pair {
		k := function.Key(s, nodes)
		if found[k] == nil {
			found[k] = new(pair)
			keys = append(keys, k)
		}
		return found[k]
	}
	for i := range averages {
		at(averages[i]).average = averages[i]
		at(weights[i]).weight = weights[i]
	}
	times := func(a, b float64) float64 {
		if series.IsNull(a) || series.IsNull(b) {
			return series.Null()
		}
		return a * b
	}
	var products series.List
	for _, k := range keys {
		p := found[k]
		if p.average == nil || p.weight == nil {
			continue
		}
		made, err := zip(c, "product("+p.weight.Name+","+p.average.Name+")", p.average, p.weight, times)
		if err != nil {
			return nil, err
		}
		products = append(products, made)
	}
	if len(products) == 0 {
		return series.List(nil), nil
	}
	top, err := aggregate(c, products, "sum", c.XFF)
	if err != nil {
		return nil, err
	}
	bottom, err := aggregate(c, weights, "sum", c.XFF)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(nodes))
	for i, n := range nodes {
		texts[i] = series.Text(n)
	}
	name := "weightedAverage(" + sortedPaths(averages) + ", " + sortedPaths(weights) + ", " + strings.Join(texts, ",") + ")"
	made, err := zip(c, name, top[0], bottom[0], series.Divide)
	if err != nil {
		return nil, err
	}
	return series.List{made}, nil
}

func sortedPaths(list series.List) string {
	var paths []string
	for _, s := range list {
		if !slices.Contains(paths, s.Path) {
			paths = append(paths, s.Path)
		}
	}
	slices.Sort(paths)
	return strings.Join(paths, ",")
}
