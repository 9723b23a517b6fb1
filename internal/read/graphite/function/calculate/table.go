package calculate

import "github.com/shaledb/shale/internal/read/graphite/function"

// Functions are the rows of this family.
func Functions() []*function.Function {
	list := function.List()
	size := function.Param{
		Name: "windowSize", Type: function.IntOrInterval, Required: true,
		Suggestions: []any{int64(5), int64(7), int64(10), "1min", "5min", "10min", "30min", "1hour"},
	}
	xff := function.Param{Name: "xFilesFactor", Type: function.Float}
	delta := function.Param{Name: "delta", Type: function.Integer, Default: int64(3), Open: true}
	bootstrap := function.Param{Name: "bootstrapInterval", Type: function.Interval, Default: "7d", Suggestions: []any{"7d", "30d"}}
	season := function.Param{Name: "seasonality", Type: function.Interval, Default: "1d", Suggestions: []any{"1d", "7d"}}
	average := function.Param{Name: "func", Type: function.AggFunc, Default: "average"}
	row := func(name, help string, body function.Body, params ...function.Param) *function.Function {
		return &function.Function{Name: name, Group: function.Calculate, Help: help, Call: body, Params: append([]function.Param{list}, params...)}
	}
	alpha := function.Param{Name: "alpha", Type: function.Float, Required: true, Suggestions: []any{0.1, 0.5, 0.7}}
	interval := function.Param{Name: "interval", Type: function.Interval, Required: true, Suggestions: []any{"10min", "1h", "1d"}}
	method := function.Param{Name: "method", Type: function.String, Required: true, Default: "above", Options: []any{"above", "aboveOrEqual", "below", "belowOrEqual"}}
	value := function.Param{Name: "value", Type: function.Float, Required: true, Default: 0.0}
	windows := []function.Param{
		{Name: "timeShiftUnit", Type: function.Interval, Required: true, Default: "1d", Suggestions: []any{"1h", "6h", "12h", "1d", "2d", "7d", "14d", "30d"}},
		{Name: "timeShiftStart", Type: function.Integer, Required: true, Default: int64(0)}, {Name: "timeShiftEnd", Type: function.Integer, Required: true, Default: int64(7)},
		{Name: "maxAbsentPercent", Type: function.Float}, {Name: "minAvg", Type: function.Float},
	}
	const weightedHelp = "Averages values with weights that fall with their age, from the first value of the graph on."
	return []*function.Function{
		extra(row("baseline", "Takes the median of the same times of several earlier days, hours or weeks.", baseline(false), windows...)),
		extra(row("baselineAberration", "Divides values by the median of the same times of several earlier days, hours or weeks.", baseline(true), windows...)),
		extra(row("ewma", weightedHelp, function.Each(weighted), alpha)),
		extra(row("exponentialWeightedMovingAverage", weightedHelp, function.Each(weighted), alpha)),
		{
			Name: "pearson", Group: function.Calculate, Extra: true, Help: "Correlates two series over a moving window of points, by Pearson's formula.", Call: pearson,
			Params: []function.Param{
				{Name: "seriesA", Type: function.SeriesList, Required: true}, {Name: "seriesB", Type: function.SeriesList, Required: true},
				{Name: "windowSize", Type: function.Integer, Required: true},
			},
		},
		extra(row("polyfit", "Draws the polynomial of a degree that fits the values best, and some time beyond them.", polyfit,
			function.Param{Name: "degree", Type: function.Integer, Default: int64(1), Absent: true}, function.Param{Name: "offset", Type: function.Interval, Default: "0d", Absent: true})),
		extra(row("slo", "Takes the share of the values in each interval that are above or below a bound.", objective(false), interval, method, value)),
		extra(row("sloErrorBudget", "Shows by how many seconds of each interval the share of values above or below a bound is more than an objective.", objective(true),
			interval, method, value, function.Param{Name: "objective", Type: function.Float, Required: true, Default: 0.9999})),
		row("aggregateLine", "Draws an aggregation of each series as a line.", aggregateLine, average, function.Param{Name: "keepStep", Type: function.Boolean, Default: false}),
		row("exponentialMovingAverage", "Averages values with weights that fall with their age.", exponential, size),
		row("holtWintersAberration", "Shows by how much values leave the bands around the forecast of Holt and Winters.", aberration, delta, bootstrap, season),
		row("holtWintersConfidenceArea", "Draws the area between the bands around the forecast of Holt and Winters.", confidenceArea, delta, bootstrap, season),
		row("holtWintersConfidenceBands", "Shows the forecast of Holt and Winters minus and plus some deviations.", confidenceBands, delta, bootstrap, season),
		row("holtWintersForecast", "Forecasts values from those before them, with a season.", holtWintersForecast, bootstrap, season),
		row("linearRegression", "Draws the line that fits the values of a window best.", linearRegression,
			function.Param{Name: "startSourceAt", Type: function.Date}, function.Param{Name: "endSourceAt", Type: function.Date}),
		row("movingAverage", "Averages the values of a window before each time.", movingBy("average"), size, xff),
		row("movingMax", "Takes the greatest value of a window before each time.", movingBy("max"), size, xff),
		row("movingMedian", "Takes the median of a window before each time.", movingBy("median"), size, xff),
		row("movingMin", "Takes the least value of a window before each time.", movingBy("min"), size, xff),
		row("movingSum", "Adds the values of a window before each time.", movingBy("sum"), size, xff),
		row("movingWindow", "Aggregates the values of a window before each time.", movingWindow, size, average, xff),
		row("nPercentile", "Draws the n-th percentile of each series as a line.", nPercentile, function.Param{Name: "n", Type: function.Float, Required: true}),
		row("stdev", "Shows the standard deviation of a number of points before each time.", deviation,
			function.Param{Name: "points", Type: function.Integer, Required: true},
			function.Param{Name: "windowTolerance", Type: function.Float, Default: 0.1}),
	}
}

// extra marks a function that graphite-web does not have.
func extra(f *function.Function) *function.Function {
	f.Extra = true
	return f
}
