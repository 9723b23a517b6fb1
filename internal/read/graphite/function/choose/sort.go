package choose

import (
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

func sortBy(c *function.Call) (any, error) {
	f, err := series.AggregationOf(c.Text(1))
	if err != nil {
		return nil, err
	}
	return ordered(c, c.List(0), f, c.Flag(2))
}

func ordered(c *function.Call, list series.List, f series.Aggregation, descending bool) (any, error) {
	list, err := order(c, list, f, descending)
	if err != nil {
		return nil, err
	}
	return list, nil
}

func sortByTotal(c *function.Call) (any, error)  { return ordered(c, c.List(0), series.Sum, true) }
func sortByMaxima(c *function.Call) (any, error) { return ordered(c, c.List(0), series.Max, true) }

// sortByMinima leaves out the series that are never positive.
func sortByMinima(c *function.Call) (any, error) {
	list, err := keep(c, c.List(0), func(s *series.Series) (bool, error) {
		greatest := series.Max(s.Values)
		return !series.IsNull(greatest) && greatest > 0, nil
	})
	if err != nil {
		return nil, err
	}
	return ordered(c, list.(series.List), series.Min, false)
}

var digits = regexp.MustCompile(`\d+`)

// sortByName sorts by names. In natural order, numbers in names are compared as numbers of ten digits.
func sortByName(c *function.Call) (any, error) {
	list := slices.Clone(c.List(0))
	keys := make(map[*series.Series]string, len(list))
	for _, s := range list {
		keys[s] = s.Name
		if c.Flag(1) {
			keys[s] = digits.ReplaceAllStringFunc(s.Name, func(n string) string {
				n = strings.TrimLeft(n, "0")
				return strings.Repeat("0", max(0, 10-len(n))) + n
			})
		}
	}
	sort.SliceStable(list, func(i, j int) bool {
		if c.Flag(2) {
			i, j = j, i
		}
		return keys[list[i]] < keys[list[j]]
	})
	return list, nil
}
