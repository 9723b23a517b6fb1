package transform

import (
	"math"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// param shortens the rows of the table.
func param(name string, t function.Type) function.Param { return function.Param{Name: name, Type: t} }

func required(name string, t function.Type) function.Param {
	return function.Param{Name: name, Type: t, Required: true}
}

func optional(name string, t function.Type, by any) function.Param {
	return function.Param{Name: name, Type: t, Default: by}
}

func suggest(p function.Param, values ...any) function.Param {
	p.Suggestions = values
	return p
}

func loose(p function.Param) function.Param {
	p.Open = true
	return p
}

// extra marks a function that graphite-web does not have.
func extra(f *function.Function) *function.Function {
	f.Extra = true
	return f
}

// Functions are the rows of this family.
func Functions() []*function.Function {
	table := append(arithmetic(), overTime()...)
	for _, f := range table {
		if f.Group == "" {
			f.Group = function.Transform
		}
	}
	return table
}

func arithmetic() []*function.Function {
	list := function.List()
	row := func(name, help string, body function.Body, params ...function.Param) *function.Function {
		return &function.Function{Name: name, Help: help, Call: body, Params: append([]function.Param{list}, params...)}
	}
	factor := required("factor", function.Float)
	rounded := optional("precision", function.Integer, int64(0))
	rounded.Absent = true
	return []*function.Function{
		row("absolute", "Takes the absolute value of each value.", each("absolute", "absolute", nil, math.Abs)),
		row("add", "Adds a constant to each value.", values("add", "add", whole, by(plus)), required("constant", function.Float)),
		row("exp", "Raises e to the power of each value.", each("exp", "exp", constant("e"), exponential)),
		row("invert", "Divides 1 by each value.", each("invert", "invert", nil, invert)),
		row("isNonNull", "Shows 1 where there is a value, and 0 elsewhere.", function.Each(isNonNull)),
		row("log", "Takes the logarithm of each value to a base.", logarithm, loose(optional("base", function.Integer, int64(10)))),
		row("logit", "Takes the logarithm of v/(1-v) of each value v.", each("logit", "logit", constant("logit"), logit)),
		row("minMax", "Scales the values of each series to the range from 0 to 1.", function.Each(minMax)),
		row("offset", "Adds a constant to each value.", values("offset", "offset", general, by(plus)), factor),
		row("offsetToZero", "Subtracts from each value the least value of its series.", function.Each(offsetToZero)),
		row("pow", "Raises each value to a power.", values("pow", "pow", general, by(series.Power)), factor),
		row("round", "Rounds each value to a number of decimal places.", function.Each(round), rounded),
		row("scale", "Multiplies each value by a factor.", values("scale", "scale", general, by(times)), factor),
		row("scaleToSeconds", "Converts values per step to values per some seconds.", values("scaleToSeconds", "scaleToSeconds", whole, toSeconds), required("seconds", function.Float)),
		row("sigmoid", "Takes 1/(1+exp(-v)) of each value v.", each("sigmoid", "sigmoid", constant("sigmoid"), sigmoid)),
		row("squareRoot", "Takes the square root of each value.", each("squareRoot", "squareRoot", nil, squareRoot)),
	}
}

func overTime() []*function.Function {
	list := function.List()
	row := func(name, help string, body function.Body, params ...function.Param) *function.Function {
		return &function.Function{Name: name, Help: help, Call: body, Params: append([]function.Param{list}, params...)}
	}
	made := func(name, help string, body function.Body, group function.Group, params ...function.Param) *function.Function {
		return &function.Function{Name: name, Help: help, Call: body, Group: group, Params: append([]function.Param{required("name", function.String)}, params...)}
	}
	limit := loose(optional("limit", function.IntOrInf, math.Inf(1)))
	intervalString := suggest(required("intervalString", function.Interval), "10min", "1h", "1d")
	sum := optional("func", function.AggFunc, "sum")
	bounds := []function.Param{param("maxValue", function.Float), param("minValue", function.Float)}
	shifts := []any{"1h", "6h", "12h", "1d", "2d", "7d", "14d", "30d"}
	step := optional("step", function.Integer, int64(60))
	amplitude := loose(optional("amplitude", function.Integer, int64(1)))
	alignDST := optional("alignDst", function.Boolean, false)
	alignDST.Alias = "alignDST"
	alignTo := function.Param{
		Name: "alignTo", Type: function.String, Open: true,
		Options: []any{nil, "years", "months", "weeks", "days", "hours", "minutes", "seconds", true, false},
	}
	const (
		timeHelp = "Shows the Unix time at each step."
		sinHelp  = "Shows the sine of the Unix time at each step."
		walkHelp = "Shows a random walk that starts at 0."

		lowPassHelp = "Leaves out the high frequencies of a spectrum, which fft makes."
	)
	return []*function.Function{
		row("compressPeriodicGaps", "Gives a series that has a value only every few steps a longer step.", function.Each(compress)),
		row("delay", "Moves values by a number of steps.", function.Each(delay), required("steps", function.Integer)),
		row("derivative", "Shows by how much each value differs from the one before it.", function.Each(derivative)),
		row("hitcount", "Counts hits in each interval, of values that are hits per second.", hitcount, intervalString, optional("alignToInterval", function.Boolean, false)),
		row("integral", "Adds up values from the start.", function.Each(integral)),
		row("integralByInterval", "Adds up values from the start of each interval.", integralByInterval, required("intervalUnit", function.String)),
		row("interpolate", "Draws a line through gaps of at most some values.", function.Each(interpolate), limit),
		row("keepLastValue", "Repeats the last value in gaps of at most some values.", function.Each(keepLast), limit),
		row("nonNegativeDerivative", "Shows by how much a counter grew, also when it wrapped around at a greatest value.", function.Each(nonNegativeDerivative), bounds...),
		row("perSecond", "Shows by how much a counter grew in a second.", function.Each(perSecond), bounds...),
		row("smartSummarize", "Aggregates values in intervals that begin at the start of the window, which can be moved back to the start of a unit of time.", smartSummarize, intervalString, sum, alignTo),
		row("summarize", "Aggregates values in intervals that begin at their multiples, or at the start of the series.", summarize, intervalString, sum, optional("alignToFrom", function.Boolean, false)),
		row("timeShift", "Shows the series of an earlier or later time.", timeShift, suggest(required("timeShift", function.Interval), shifts...), optional("resetEnd", function.Boolean, true), alignDST),
		row("timeSlice", "Leaves out values before a time and after another one.", timeSlice, required("startSliceAt", function.Date), optional("endSliceAt", function.Date, "now")),
		row("timeStack", "Shows the series of several earlier times.", timeStack, suggest(optional("timeShiftUnit", function.Interval, "1d"), shifts...), loose(optional("timeShiftStart", function.Integer, int64(0))), loose(optional("timeShiftEnd", function.Integer, int64(7)))),
		row("transformNull", "Fills gaps with a number, or only where reference series have values.", transformNull, optional("default", function.Float, int64(0)), param("referenceSeries", function.SeriesList)),
		extra(row("fft", "Shows the magnitudes and phases of the frequencies of each series.", spectrum, function.Param{Name: "mode", Type: function.String, Default: "both", Options: []any{"abs", "phase", "both", "all"}})),
		extra(row("heatMap", "Subtracts from each series the one that is the next smaller, for counters of buckets that contain the smaller ones.", heatMap)),
		extra(row("ifft", "Makes series of the magnitudes and phases of frequencies.", inverseSpectrum, param("phaseSeriesList", function.SeriesList))),
		extra(row("integralWithReset", "Adds up values from the start, and from wherever another series is not 0.", integralWithReset, required("resettingSeries", function.SeriesList))),
		extra(row("lowPass", lowPassHelp, function.Each(lowPass), required("cutPercent", function.Float))),
		extra(row("lpf", lowPassHelp, function.Each(lowPass), required("cutPercent", function.Float))),
		made("identity", "Shows the Unix time at each minute.", identity, function.Calculate),
		made("randomWalk", walkHelp, randomWalk, function.Special, step),
		made("randomWalkFunction", walkHelp, randomWalk, function.Special, step),
		made("sin", sinHelp, sine, function.Transform, amplitude, step),
		made("sinFunction", sinHelp, sine, function.Transform, amplitude, step),
		made("time", timeHelp, timeLine, function.Transform, step),
		made("timeFunction", timeHelp, timeLine, function.Transform, step),
	}
}
