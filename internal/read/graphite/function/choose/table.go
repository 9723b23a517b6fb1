package choose

import "github.com/shaledb/shale/internal/read/graphite/function"

// Functions are the rows of this family.
func Functions() []*function.Function {
	list := function.List()
	bound := function.Param{Name: "n", Type: function.Float, Required: true}
	n := function.Param{Name: "n", Type: function.Integer, Required: true}
	loose := n
	loose.Open, loose.Default = true, int64(1)
	loose.Absent = false
	average := function.Param{Name: "func", Type: function.AggFunc, Default: "average"}
	descending := function.Param{Name: "reverse", Type: function.Boolean, Default: false}
	regex := function.Param{Name: "pattern", Type: function.String, Required: true}
	row := func(name, help string, body function.Body, params ...function.Param) *function.Function {
		return &function.Function{Name: name, Group: function.FilterSeries, Help: help, Call: body, Params: append([]function.Param{list}, params...)}
	}
	in := func(group function.Group, f *function.Function) *function.Function {
		f.Group = group
		return f
	}
	basis := function.Param{Name: "basis", Type: function.Float, Required: true}
	interval := function.Param{Name: "interval", Type: function.IntOrInterval, Default: int64(0)}
	return []*function.Function{
		extra(row("highestMin", "Keeps the n series with the greatest least values, the greatest first.", extreme("min", true), loose)),
		extra(row("lowestMax", "Keeps the n series whose greatest values are the least, the least first.", extreme("max", false), loose)),
		extra(row("lowestMin", "Keeps the n series with the least values, the least first.", extreme("min", false), loose)),
		extra(row("removeZeroSeries", "Leaves out the series without values other than 0, or with less than a share of them.", removeZero, function.Param{Name: "xFilesFactor", Type: function.Float})),
		extra(row("tukeyAbove", "Keeps the n series with the most values far above those of all series together.", outliers(true), basis, n, interval)),
		extra(row("tukeyBelow", "Keeps the n series with the most values far below those of all series together.", outliers(false), basis, n, interval)),
		{
			Name: "pearsonClosest", Group: function.FilterSeries, Extra: true, Call: pearsonClosest,
			Help: "Keeps the n series that go most like a single one, by Pearson's correlation.",
			Params: []function.Param{
				{Name: "series", Type: function.SeriesList, Required: true}, list, n,
				{Name: "direction", Type: function.String, Default: "abs", Options: []any{"abs", "pos", "neg"}},
			},
		},
		row("averageAbove", "Keeps the series whose average is above n.", when("average", ">"), bound),
		row("averageBelow", "Keeps the series whose average is at most n, or that have no values.", when("average", "<="), bound),
		row("averageOutsidePercentile", "Keeps the series whose average is not between the n-th percentile of all averages and the opposite one.", averageOutside, bound),
		row("currentAbove", "Keeps the series whose last value is above n.", when("last", ">"), bound),
		row("currentBelow", "Keeps the series whose last value is at most n, or that have no values.", when("last", "<="), bound),
		row("exclude", "Leaves out the series whose names match a regular expression.", matching(false), regex),
		row("filterSeries", "Keeps the series for which the comparison of an aggregation with a threshold is true.", filterSeries,
			function.Param{Name: "func", Type: function.AggFunc, Required: true},
			function.Param{Name: "operator", Type: function.String, Required: true, Options: []any{"!=", "<", "<=", "=", ">", ">="}},
			function.Param{Name: "threshold", Type: function.Float, Required: true}),
		row("grep", "Keeps the series whose names match a regular expression.", matching(true), regex),
		row("highest", "Keeps the n series with the greatest aggregation, the greatest first.", extreme("", true), loose, average),
		row("highestAverage", "Keeps the n series with the greatest averages, the greatest first.", extreme("average", true), loose),
		row("highestCurrent", "Keeps the n series with the greatest last values, the greatest first.", extreme("last", true), loose),
		row("highestMax", "Keeps the n series with the greatest values, the greatest first.", extreme("max", true), loose),
		row("limit", "Keeps the first n series.", limit, n),
		row("lowest", "Keeps the n series with the least aggregation, the least first.", extreme("", false), loose, average),
		row("lowestAverage", "Keeps the n series with the least averages, the least first.", extreme("average", false), loose),
		row("lowestCurrent", "Keeps the n series with the least last values, the least first.", extreme("last", false), loose),
		row("maximumAbove", "Keeps the series with a value above n.", when("max", ">"), bound),
		row("maximumBelow", "Keeps the series whose values are all at most n.", when("max", "<="), bound),
		row("minimumAbove", "Keeps the series whose values are all above n.", when("min", ">"), bound),
		row("minimumBelow", "Keeps the series with a value of at most n, or without values.", when("min", "<="), bound),
		row("mostDeviant", "Keeps the n series with the greatest variance, the greatest first.", mostDeviant, n),
		row("removeBetweenPercentile", "Keeps the series that at any time are not between the n-th percentile of all series and the opposite one.", removeBetween, bound),
		row("removeEmptySeries", "Leaves out the series without values, or with less than a share of them.", removeEmpty, function.Param{Name: "xFilesFactor", Type: function.Float}),
		{Name: "unique", Group: function.FilterSeries, Params: []function.Param{function.Lists()}, Help: "Keeps the first series of each name.", Call: unique},
		row("useSeriesAbove", "Evaluates the names that a regular expression makes of the series with a value above a threshold.", useAbove,
			function.Param{Name: "value", Type: function.Float, Required: true},
			function.Param{Name: "search", Type: function.String, Required: true},
			function.Param{Name: "replace", Type: function.String, Required: true}),
		in(function.FilterData, row("removeAbovePercentile", "Leaves out the values above the n-th percentile of their series.", remove("removeAbovePercentile", true, true), bound)),
		in(function.FilterData, row("removeAboveValue", "Leaves out the values above n.", remove("removeAboveValue", false, true), bound)),
		in(function.FilterData, row("removeBelowPercentile", "Leaves out the values below the n-th percentile of their series.", remove("removeBelowPercentile", true, false), bound)),
		in(function.FilterData, row("removeBelowValue", "Leaves out the values below n.", remove("removeBelowValue", false, false), bound)),
		in(function.Sorting, row("sortBy", "Sorts by an aggregation.", sortBy, average, descending)),
		in(function.Sorting, row("sortByMaxima", "Sorts by the greatest values, the greatest first.", sortByMaxima)),
		in(function.Sorting, row("sortByMinima", "Sorts by the least values, the least first, and leaves out series that are never positive.", sortByMinima)),
		in(function.Sorting, row("sortByName", "Sorts by names; in natural order web2 comes before web10.", sortByName,
			function.Param{Name: "natural", Type: function.Boolean, Default: false}, descending)),
		in(function.Sorting, row("sortByTotal", "Sorts by the sums of values, the greatest first.", sortByTotal)),
	}
}

// extra marks a function that graphite-web does not have.
func extra(f *function.Function) *function.Function {
	f.Extra = true
	return f
}
