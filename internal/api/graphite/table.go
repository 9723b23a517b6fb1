package graphite

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// Described returns the rows of the table as /functions shows them.
func Described(table []*function.Function) []Function {
	callbacks := series.AggregationNames()
	for _, f := range table {
		if f.Aggregator {
			callbacks = append(callbacks, f.Name)
		}
	}
	out := make([]Function, 0, len(table)+len(pies))
	for _, f := range table {
		out = append(out, describe(f, callbacks))
	}
	return append(out, pies...)
}

const module = "graphite.render.functions"

// pies make one number of a series, for pie charts.
var pies = []Function{
	pie("average", "Averages the values."), pie("maximum", "Takes the greatest value."), pie("minimum", "Takes the least value."),
}

func pie(name, help string) Function {
	return Function{
		Name: name, Signature: name + "(series)", Description: help, Module: module, Group: "Pie", Pie: true,
		Params: []Param{{Name: "series", Type: "series", Required: true}},
	}
}

func describe(f *function.Function, callbacks []string) Function {
	d := Function{Name: f.Name, Description: f.Help, Module: module, Group: string(f.Group), Params: []Param{}}
	var names []string
	for _, p := range f.Params {
		shown := Param{Name: p.Name, Type: string(p.Type), Required: p.Required, Multiple: p.Multiple, Options: p.Options, Suggestions: p.Suggestions}
		switch p.Type {
		case function.AggFunc:
			shown.Options = anyOf(series.AggregationNames())
		case function.AggOrSeriesFunc:
			shown.Options = anyOf(callbacks)
		}
		shown.Options = slices.Clone(shown.Options)
		slices.SortFunc(shown.Options, func(a, b any) int { return strings.Compare(series.Text(a), series.Text(b)) })
		shown.Options = slices.Compact(shown.Options)
		if p.Default != nil && !p.Required {
			shown.Default = inJSON(p.Default)
		}
		d.Params = append(d.Params, shown)
		name := p.Name
		switch {
		case p.Multiple:
			name = "*" + name
		case !p.Required:
			name += "=" + literal(p.Default)
		}
		names = append(names, name)
	}
	d.Signature = f.Name + "(" + strings.Join(names, ", ") + ")"
	return d
}

func anyOf(names []string) []any {
	out := make([]any, len(names))
	for i, n := range names {
		out[i] = n
	}
	return out
}

// inJSON writes a default. It cannot fail: defaults are constants.
func inJSON(v any) json.RawMessage {
	if f, ok := v.(float64); ok && math.IsInf(f, 1) {
		return json.RawMessage("1e9999")
	}
	text, _ := json.Marshal(v)
	return text
}

// literal writes a default as Python does.
func literal(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("'%s'", s)
	}
	return series.Text(v)
}
