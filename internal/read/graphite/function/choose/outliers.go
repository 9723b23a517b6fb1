package choose

import (
	"cmp"
	"slices"

	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// outliers returns the body of a function that keeps the n series with the most values outside of Tukey's
// fence, the most first: values that are at least basis interquartile ranges above the third quartile of the
// values of all series, or as far below the first one.
func outliers(above bool) function.Body {
	return func(c *function.Call) (any, error) {
		list, basis, n := c.List(0), c.Number(1), c.Int(2)
		if basis <= 0 {
			return nil, c.Errorf("basis must be greater than 0, found %s", series.General(basis))
		}
		if n < 1 {
			return nil, c.Errorf("n must be at least 1, found %d", n)
		}
		if len(list) == 0 {
			return list, nil
		}
		part, err := stretch(c, list[0])
		if err != nil {
			return nil, err
		}
		var all []float64
		for _, s := range list {
			if err := c.Check(len(s.Values)); err != nil {
				return nil, err
			}
			all = series.Present(all, part(s.Values))
		}
		if len(all) == 0 {
			return series.List(nil), nil
		}
		slices.Sort(all)
		first, third := all[len(all)/4], all[int(0.75*float64(len(all)))]
		low, high := first-basis*(third-first), third+basis*(third-first)
		outside := map[*series.Series]int{}
		for _, s := range list {
			for _, v := range part(s.Values) {
				if !series.IsNull(v) && (above && v >= high || !above && v <= low) {
					outside[s]++
				}
			}
		}
		list = slices.DeleteFunc(slices.Clone(list), func(s *series.Series) bool { return outside[s] == 0 })
		slices.SortStableFunc(list, func(a, b *series.Series) int { return cmp.Compare(outside[b], outside[a]) })
		return list[:min(n, int64(len(list)))], nil
	}
}

// stretch returns what cuts the values that count from those of a series. The fourth argument is a number of
// points or an interval: of the last values, or, if it is negative, of all but the last ones. 0 and more than
// there is mean all values.
func stretch(c *function.Call, s *series.Series) (func([]float64) []float64, error) {
	points := c.Int(3)
	if text, ok := c.Value(3).(string); ok {
		seconds, err := attime.ParseOffset(text)
		if err != nil {
			return nil, err
		}
		points = seconds / s.Step
	}
	return func(values []float64) []float64 {
		switch n := int64(len(values)); {
		case points > 0 && points < n:
			return values[n-points:]
		case points < 0 && points > -n:
			return values[:n+points]
		}
		return values
	}, nil
}
