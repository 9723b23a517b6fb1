package draw

import (
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// Functions are the rows of this family.
func Functions() []*function.Function {
	return append(graph(), special()...)
}

func graph() []*function.Function {
	list := function.List()
	label := function.Param{Name: "label", Type: function.String}
	paint := function.Param{Name: "color", Type: function.String}
	table := []*function.Function{
		{Name: "alpha", Params: []function.Param{list, {Name: "alpha", Type: function.Float, Required: true}}, Help: "Sets how opaque series are drawn, from 0 to 1.", Call: style(alpha)},
		{Name: "areaBetween", Params: []function.Param{list}, Help: "Draws the area between two series.", Call: areaBetween},
		{Name: "color", Params: []function.Param{list, {Name: "theColor", Type: function.String, Required: true}}, Help: "Sets the colour of series.", Call: style(color)},
		{Name: "dashed", Params: []function.Param{list, {Name: "dashLength", Type: function.Integer, Default: int64(5), Open: true}}, Help: "Draws series as dashed lines.", Call: style(dashed)},
		{Name: "drawAsInfinite", Params: []function.Param{list}, Help: "Draws a vertical line at each value that is not 0.", Call: style(infinite)},
		{Name: "lineWidth", Params: []function.Param{list, {Name: "width", Type: function.Float, Required: true}}, Help: "Sets the width of lines.", Call: style(lineWidth)},
		{Name: "secondYAxis", Params: []function.Param{list}, Help: "Draws series against the axis on the right.", Call: style(secondAxis)},
		{
			Name: "stacked", Params: []function.Param{list, {Name: "stack", Type: function.String, Alias: "stackName"}},
			Help: "Adds each series to those that are on its stack already.", Call: stacked,
		},
		{Name: "threshold", Params: []function.Param{{Name: "value", Type: function.Float, Required: true}, label, paint}, Help: "Draws a horizontal line with a label and a colour.", Call: threshold},
		{Name: "verticalLine", Params: []function.Param{{Name: "ts", Type: function.Date, Required: true}, label, paint}, Help: "Draws a vertical line at a time.", Call: verticalLine},
	}
	for _, f := range table {
		f.Group = function.Graph
	}
	return table
}

func special() []*function.Function {
	list := function.List()
	consolidations := []any{"sum", "average", "avg", "avg_zero", "min", "max", "first", "last"}
	share := []function.Param{list, {Name: "xFilesFactor", Type: function.Float, Required: true}}
	const shareHelp = "Sets the least share of values that must be present where values are consolidated."
	table := []*function.Function{
		{Name: "changed", Params: []function.Param{list}, Help: "Shows 1 where a value differs from the one before it, and 0 elsewhere.", Call: function.Each(changed)},
		{
			Name: "consolidateBy", Params: []function.Param{list, {Name: "consolidationFunc", Type: function.String, Required: true, Options: consolidations}},
			Help: "Sets how several values become one where a graph has fewer points than a series.",
			Call: style(func(c *function.Call, s *series.Series) { consolidate(s, c.Text(1)) }),
		},
		{Name: "constantLine", Params: []function.Param{{Name: "value", Type: function.Float, Required: true}}, Help: "Draws a horizontal line.", Call: constantLine},
		{
			Name: "cumulative", Params: []function.Param{list}, Help: "Adds values where a graph has fewer points than a series.",
			Call: style(func(_ *function.Call, s *series.Series) { consolidate(s, "sum") }),
		},
		{Name: "events", Params: []function.Param{{Name: "tags", Type: function.String, Required: true, Multiple: true}}, Help: "Counts the events with all of the tags; with *, all events.", Call: events},
		{Name: "fallbackSeries", Params: []function.Param{list, {Name: "fallback", Type: function.SeriesList, Required: true, Divided: true}}, Help: "Shows the second list if the first one is empty.", Call: fallback},
		{
			Name: "seriesByTag", Params: []function.Param{{Name: "tagExpressions", Type: function.String, Required: true, Multiple: true}},
			Help: "Finds series by tags: tag=value, tag!=value, tag=~regex, tag!=~regex.",
		},
		{Name: "setXFilesFactor", Params: share, Help: shareHelp, Call: shareOfRequest},
		{Name: "xFilesFactor", Params: share, Help: shareHelp, Call: shareOfRequest},
	}
	for _, f := range table {
		f.Group = function.Special
	}
	return table
}
