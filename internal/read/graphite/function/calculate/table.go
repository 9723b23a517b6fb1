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
	return []*function.Function{
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
