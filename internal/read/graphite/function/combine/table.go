package combine

import (
	"slices"

	"github.com/shaledb/shale/internal/read/graphite/function"
)

// Functions are the rows of this family.
func Functions() []*function.Function {
	table := slices.Concat(sums(), ratios(), groups())
	for _, f := range table {
		f.Group = function.Combine
	}
	return table
}

// required returns a parameter that takes a list of series.
func required(name string) function.Param {
	return function.Param{Name: name, Type: function.SeriesList, Required: true}
}

var (
	xff   = function.Param{Name: "xFilesFactor", Type: function.Float}
	agg   = function.Param{Name: "func", Type: function.AggFunc, Required: true}
	nodes = function.Param{Name: "nodes", Type: function.NodeOrTag, Multiple: true}
)

// sums are functions of any number of lists.
func sums() []*function.Function {
	const (
		sumHelp     = "Adds the values of all series at each time."
		averageHelp = "Averages the values of all series at each time."
	)
	list, lists := function.List(), function.Lists()
	divided := list
	divided.Divided = true
	anyLists := function.Param{Name: "seriesLists", Type: function.SeriesList, Multiple: true}
	return []*function.Function{
		{Name: "aggregate", Params: []function.Param{divided, agg, xff}, Help: "Makes one series of all by an aggregation.", Call: aggregateBody},
		{Name: "averageSeries", Aggregator: true, Params: []function.Param{lists}, Help: averageHelp, Call: by("average")},
		{Name: "avg", Aggregator: true, Params: []function.Param{lists}, Help: averageHelp, Call: by("average")},
		{Name: "countSeries", Aggregator: true, Params: []function.Param{anyLists}, Help: "Counts the series, with values or without.", Call: count},
		{Name: "diffSeries", Aggregator: true, Params: []function.Param{lists}, Help: "Subtracts from the first series all others.", Call: by("diff")},
		{Name: "maxSeries", Aggregator: true, Params: []function.Param{lists}, Help: "Takes the greatest value of all series at each time.", Call: by("max")},
		{Name: "minSeries", Aggregator: true, Params: []function.Param{lists}, Help: "Takes the least value of all series at each time.", Call: by("min")},
		{Name: "multiplySeries", Aggregator: true, Params: []function.Param{lists}, Help: "Multiplies the values of all series at each time.", Call: multiply},
		{
			Name: "percentileOfSeries", Params: []function.Param{
				list, {Name: "n", Type: function.Float, Required: true}, {Name: "interpolate", Type: function.Boolean, Default: false},
			}, Help: "Takes the n-th percentile of all series at each time.", Call: percentileOf,
		},
		{
			Name: "powSeries", Aggregator: true, Params: []function.Param{{Name: "seriesList", Type: function.SeriesList, Required: true, Multiple: true}},
			Help: "Raises the first series to the power of the second, the result to that of the third, and so on.", Call: powers,
		},
		{Name: "rangeOfSeries", Aggregator: true, Params: []function.Param{lists}, Help: "Takes the difference of the greatest and the least value of all series at each time.", Call: by("rangeOf")},
		{Name: "stddevSeries", Aggregator: true, Params: []function.Param{lists}, Help: "Takes the standard deviation of all series at each time.", Call: by("stddev")},
		{Name: "sum", Aggregator: true, Params: []function.Param{lists}, Help: sumHelp, Call: by("sum")},
		{Name: "sumSeries", Aggregator: true, Params: []function.Param{lists}, Help: sumHelp, Call: by("sum")},
	}
}

// ratios are functions of two lists, and one of values.
func ratios() []*function.Function {
	const percentHelp = "Shows each series as a percentage of a total: the sum of all series, a number, one series, or one total for each group of nodes."
	list := function.List()
	two := []function.Param{required("seriesListFirstPos"), required("seriesListSecondPos")}
	percentParams := []function.Param{list, {Name: "total", Type: function.Any}, nodes}
	return []*function.Function{
		{
			Name: "aggregateSeriesLists", Params: append(two[:2:2], agg, xff), Call: aggregatePairs,
			Help: "Aggregates the first series of both lists, the second ones, and so on.",
		},
		{Name: "asPercent", Aggregator: true, Params: percentParams, Help: percentHelp, Call: asPercent},
		{Name: "pct", Aggregator: true, Params: percentParams, Help: percentHelp, Call: asPercent},
		{
			Name: "countValues", Extra: true, Help: "Shows how many series have each whole number at each time.", Call: countValues,
			Params: []function.Param{list, {Name: "valuesLimit", Type: function.Integer, Default: int64(32)}},
		},
		{Name: "diffSeriesLists", Aggregator: true, Params: two, Help: "Subtracts from each series of the first list the one at its place in the second.", Call: pairsBy("diff")},
		{
			Name: "divideSeries", Params: []function.Param{
				{Name: "dividendSeriesList", Type: function.SeriesList, Required: true}, {Name: "divisorSeries", Type: function.SeriesList, Required: true},
			}, Help: "Divides each series of a list by one series.", Call: divide,
		},
		{
			Name: "divideSeriesLists", Params: []function.Param{
				{Name: "dividendSeriesList", Type: function.SeriesList, Required: true}, {Name: "divisorSeriesList", Type: function.SeriesList, Required: true},
			}, Help: "Divides each series of the first list by the one at its place in the second.", Call: divideLists,
		},
		{Name: "multiplySeriesLists", Aggregator: true, Params: two, Help: "Multiplies each series of the first list by the one at its place in the second.", Call: pairsBy("multiply")},
		{
			Name: "powSeriesLists", Extra: true, Call: powerPairs, Params: []function.Param{
				{Name: "sourceSeriesList", Type: function.SeriesList, Required: true}, {Name: "factorSeriesList", Type: function.SeriesList, Required: true},
			}, Help: "Raises each series of the first list to the power of the one at its place in the second, or of its only one.",
		},
		{Name: "sumSeriesLists", Aggregator: true, Params: two, Help: "Adds to each series of the first list the one at its place in the second.", Call: pairsBy("sum")},
		{
			Name: "weightedAverage", Params: []function.Param{
				{Name: "seriesListAvg", Type: function.SeriesList, Required: true}, {Name: "seriesListWeight", Type: function.SeriesList, Required: true}, nodes,
			}, Help: "Averages series with weights. A series and its weight have the same values at some nodes or tags.", Call: weightedAverage,
		},
	}
}

// groups are functions of the groups of a list.
func groups() []*function.Function {
	const (
		mapHelp    = "Divides the series into lists by nodes or tags, for reduceSeries."
		reduceHelp = "Calls a function with the series of each list that have the given values at a node."
	)
	list := function.List()
	anyLists := function.Param{Name: "seriesLists", Type: function.SeriesList, Multiple: true}
	position := function.Param{Name: "position", Type: function.Node, Multiple: true}
	withWildcards := []function.Param{list, position}
	callback := function.Param{Name: "callback", Type: function.AggOrSeriesFunc, Required: true}
	mapNodes := function.Param{Name: "mapNodes", Type: function.NodeOrTag, Required: true, Multiple: true}
	reduceParams := []function.Param{
		{Name: "seriesLists", Type: function.SeriesLists, Required: true}, {Name: "reduceFunction", Type: function.String, Required: true},
		{Name: "reduceNode", Type: function.Node, Required: true},
		{Name: "reduceMatchers", Type: function.String, Required: true, Multiple: true},
	}
	return []*function.Function{
		{
			Name: "aggregateWithWildcards", Params: []function.Param{list, agg, position}, Call: aggregateWildcards,
			Help: "Aggregates the series whose names are equal without the nodes at some positions.",
		},
		{
			Name: "applyByNode", Params: []function.Param{
				list, {Name: "nodeNum", Type: function.Node, Required: true},
				{Name: "templateFunction", Type: function.String, Required: true}, {Name: "newName", Type: function.String},
			}, Call: applyByNode, Help: "Evaluates a target for each beginning of the names up to a node. The beginning takes the place of % in the target.",
		},
		{
			Name: "averageSeriesWithWildcards", Aggregator: true, Params: withWildcards, Call: wildcardsBy("average"),
			Help: "Averages the series whose names are equal without the nodes at some positions.",
		},
		{Name: "group", Params: []function.Param{anyLists}, Help: "Joins lists of series.", Call: group},
		{
			Name: "groupByNode", Params: []function.Param{
				list, {Name: "nodeNum", Type: function.NodeOrTag, Required: true}, {Name: "callback", Type: function.AggOrSeriesFunc, Default: "average"},
			}, Help: "Aggregates the series that have the same value at a node or a tag.",
			Call: func(c *function.Call) (any, error) { return groupByNodes(c, c.Text(2), c.Values[1:2]) },
		},
		{
			Name: "groupByNodes", Params: []function.Param{list, callback, nodes}, Help: "Aggregates the series that have the same values at several nodes or tags.",
			Call: func(c *function.Call) (any, error) { return groupByNodes(c, c.Text(1), c.Rest(2)) },
		},
		{
			Name: "groupByTags", Params: []function.Param{list, callback, {Name: "tags", Type: function.Tag, Required: true, Multiple: true}}, Call: groupByTags,
			Help: "Aggregates the series that have the same values of some tags, and gives the results these tags.",
		},
		{Name: "map", Params: []function.Param{list, mapNodes}, Help: mapHelp, Call: mapSeries},
		{Name: "mapSeries", Params: []function.Param{list, mapNodes}, Help: mapHelp, Call: mapSeries},
		{
			Name: "multiplySeriesWithWildcards", Aggregator: true, Params: withWildcards, Call: wildcardsBy("multiply"),
			Help: "Multiplies the series whose names are equal without the nodes at some positions.",
		},
		{Name: "reduce", Params: reduceParams, Help: reduceHelp, Call: reduceSeries},
		{Name: "reduceSeries", Params: reduceParams, Help: reduceHelp, Call: reduceSeries},
		{
			Name: "sumSeriesWithWildcards", Aggregator: true, Params: withWildcards, Call: wildcardsBy("sum"),
			Help: "Adds the series whose names are equal without the nodes at some positions.",
		},
	}
}
