package rename

import (
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// Functions are the rows of this family.
func Functions() []*function.Function {
	list := function.List()
	search := function.Param{Name: "search", Type: function.String, Required: true}
	replace := function.Param{Name: "replace", Type: function.String, Required: true}
	newName := function.Param{Name: "newName", Type: function.String, Required: true}
	position := function.Param{Name: "pos", Type: function.Integer, Multiple: true}
	var aggregations []any
	for _, name := range series.AggregationNames() {
		aggregations = append(aggregations, name, name+"Series")
	}
	table := []*function.Function{
		{Name: "alias", Params: []function.Param{list, newName}, Help: "Gives all series one name.", Call: each(alias)},
		{
			Name: "aliasByMetric", Params: []function.Param{list}, Help: "Names series by the last node of their names.",
			Call: each(func(_ *function.Call, s *series.Series) error { Substr(s, -1, 0); return nil }),
		},
		{
			Name: "aliasByNode", Params: []function.Param{list, {Name: "nodes", Type: function.NodeOrTag, Required: true, Multiple: true}},
			Help: "Names series by nodes of their names, which count from 0 or from the end with -1, or by tags.", Call: each(aliasByNode),
		},
		{
			Name: "aliasByTags", Params: []function.Param{list, {Name: "tags", Type: function.NodeOrTag, Required: true, Multiple: true}},
			Help: "Names series by tags or nodes.", Call: each(aliasByNode),
		},
		{
			Name: "aliasQuery", Params: []function.Param{list, search, replace, newName}, Call: aliasQuery,
			Help: "Makes a query of each name by a regular expression, and puts the last value of the query's first series into the new name.",
		},
		{
			Name: "aliasSub", Params: []function.Param{list, search, replace}, Call: aliasSub,
			Help: `Replaces what a regular expression matches in names. \1 is the first group.`,
		},
		{
			Name: "legendValue", Params: []function.Param{list, {Name: "valuesTypes", Type: function.String, Multiple: true, Options: append(aggregations, "si", "binary"), Open: true}},
			Help: "Appends aggregations of the values to names. A last argument si or binary shortens the numbers.", Call: legendValue,
		},
		{Name: "lower", Params: []function.Param{list, position}, Help: "Makes names lower case, or their characters at some positions.", Call: lower},
		{Name: "upper", Params: []function.Param{list, position}, Help: "Makes names upper case, or their characters at some positions.", Call: upper},
	}
	for _, f := range table {
		f.Group = function.Alias
	}
	return append(table,
		&function.Function{
			Name: "cactiStyle", Group: function.Special, Call: cactiStyle, Help: "Appends the last, greatest and least values to names, in columns.",
			Params: []function.Param{list, {Name: "system", Type: function.String, Options: []any{"si", "binary"}}, {Name: "units", Type: function.String}},
		},
		&function.Function{
			Name: "substr", Group: function.Special, Help: "Cuts the nodes from start to stop out of names.",
			Params: []function.Param{list, {Name: "start", Type: function.Node, Default: int64(0), Open: true}, {Name: "stop", Type: function.Node, Default: int64(0), Open: true}},
			Call: func(c *function.Call) (any, error) {
				return each(func(c *function.Call, s *series.Series) error { Substr(s, c.Int(1), c.Int(2)); return nil })(c)
			},
		},
	)
}
