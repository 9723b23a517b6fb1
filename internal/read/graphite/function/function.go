package function

import (
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// Function is a row of the table of functions.
type Function struct {
	Name  string
	Group Group
	Help  string // one sentence or two, for /functions
	// Params are the parameters in order. The last one may take any number of values.
	Params []Param
	// Aggregator says that the function makes one series of several, and so may be the callback of groupByNode.
	Aggregator bool
	// Extra says that graphite-web has no such function; carbonapi has.
	Extra bool
	Call  Body
}

// Body computes a result: a series.List, or a []series.List for the functions that divide a list.
type Body func(c *Call) (any, error)

// Group is the heading of a function in a menu.
type Group string

// The groups of graphite-web.
const (
	Combine      Group = "Combine"
	Transform    Group = "Transform"
	Calculate    Group = "Calculate"
	FilterSeries Group = "Filter Series"
	FilterData   Group = "Filter Data"
	Sorting      Group = "Sorting"
	Alias        Group = "Alias"
	Graph        Group = "Graph"
	Special      Group = "Special"
)

// Type is the type of a parameter. Its text is that of graphite-web.
type Type string

// The types of parameters.
const (
	Boolean         Type = "boolean"
	Date            Type = "date"
	Float           Type = "float"
	Integer         Type = "integer"
	Interval        Type = "interval"
	IntOrInterval   Type = "intOrInterval"
	IntOrInf        Type = "intOrInf"
	Node            Type = "node"
	NodeOrTag       Type = "nodeOrTag"
	SeriesList      Type = "seriesList"
	SeriesLists     Type = "seriesLists"
	String          Type = "string"
	Tag             Type = "tag"
	Any             Type = "any"
	AggFunc         Type = "aggFunc"
	AggOrSeriesFunc Type = "aggOrSeriesFunc"
)

// Param is a parameter. Values are int64, float64, string, bool, nil, series.List or []series.List.
type Param struct {
	Name     string
	Type     Type
	Required bool
	// Default is what /functions shows. A nil default of an optional parameter means that it has no value.
	Default     any
	Multiple    bool
	Options     []any // the only values, unless Open
	Suggestions []any
	// Open admits values outside of Options, and numbers with a fraction for an integer.
	Open bool
	// Absent leaves a missing value missing: Default is only shown.
	Absent bool
	// Divided admits lists of series, as mapSeries returns them, and joins them.
	Divided bool
	// Alias is another name of the parameter; empty: there is none.
	Alias string
}

// List is a required parameter that takes a list of series.
func List() Param { return Param{Name: "seriesList", Type: SeriesList, Required: true} }

// Lists are any number of parameters that take lists of series.
func Lists() Param {
	return Param{Name: "seriesLists", Type: SeriesList, Required: true, Multiple: true}
}

// Each returns a body that computes every series of the first parameter by itself. A nil result leaves it
// out.
func Each(f func(c *Call, s *series.Series) (*series.Series, error)) Body {
	return func(c *Call) (any, error) {
		list := c.List(0)
		out := make(series.List, 0, len(list))
		for _, s := range list {
			if err := c.Check(len(s.Values)); err != nil {
				return nil, err
			}
			d, err := f(c, s)
			if err != nil {
				return nil, err
			}
			if d != nil {
				out = append(out, d)
			}
		}
		return out, nil
	}
}
