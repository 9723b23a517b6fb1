package oracle

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/graphitetest"
)

// generator makes targets.
type generator struct {
	*rand.Rand
	*graphitetest.World
	functions []*function.Function
}

// random functions have no result to compare.
var unpredictable = []string{"randomWalk", "randomWalkFunction"}

func newGenerator(r *rand.Rand, w *graphitetest.World) *generator {
	g := &generator{Rand: r, World: w}
	for _, f := range graphite.Table() {
		if !f.Extra && f.Call != nil && !slices.Contains(unpredictable, f.Name) {
			g.functions = append(g.functions, f)
		}
	}
	return g
}

func one[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// query makes the parameters of a request.
func (g *generator) query(target string) string {
	from := graphitetest.Base + int64(g.IntN(3600))
	length := one(g, int64(600), 1800, 3600, 7200, 61, 5400)
	p := url.Values{"target": {target}, "format": {"json"}, "now": {fmt.Sprint(graphitetest.Base + 3*3600)}}
	p.Set("from", fmt.Sprint(from))
	p.Set("until", fmt.Sprint(from+length))
	if g.IntN(3) == 0 {
		p.Set("maxDataPoints", fmt.Sprint(one(g, 1, 2, 3, 7, 10, 50, 1000)))
	}
	if g.IntN(10) == 0 {
		p.Set("noNullPoints", "1")
	}
	if g.IntN(10) == 0 {
		p.Set("xFilesFactor", one(g, "0", "0.3", "0.5", "0.9", "1"))
	}
	if g.IntN(10) == 0 {
		p.Set("tz", one(g, "UTC", "Nowhere/City"))
	}
	return p.Encode()
}

// series makes an expression of a list of series.
func (g *generator) series(depth int) string {
	if depth <= 0 || g.IntN(4) == 0 {
		if g.IntN(8) == 0 {
			return g.Tags[g.IntN(len(g.Tags))]
		}
		return g.Paths[g.IntN(len(g.Paths))]
	}
	return g.call(g.functions[g.IntN(len(g.functions))], depth)
}

// call makes a call of a function.
func (g *generator) call(f *function.Function, depth int) string {
	var args []string
	named := false
	for i, p := range f.Params {
		// Without these arguments, graphite-web has a null and the clock.
		needed := f.Name == "verticalLine" && p.Name == "label" || f.Name == "timeSlice"
		if !p.Required && !p.Multiple && !needed && g.IntN(2) == 0 {
			if g.IntN(3) > 0 {
				break
			}
			named = true
			continue
		}
		n := 1
		if p.Multiple {
			n = g.IntN(3)
			if p.Required || i == 0 {
				n++
			}
			if named {
				n = 0
			}
		}
		for range n {
			a := g.argument(f, &f.Params[i], depth)
			if named {
				if p.Type == function.SeriesList || p.Name == "alignDst" || p.Name == "stack" {
					continue // graphite-web does not fetch these
				}
				a = p.Name + "=" + a
			}
			args = append(args, a)
		}
	}
	if len(args) > 0 && len(f.Params) > 0 && f.Params[0].Type == function.SeriesList && depth == 1 && g.IntN(12) == 0 && !strings.Contains(args[0], "|") && !named {
		return args[0] + "|" + f.Name + "(" + strings.Join(args[1:], ",") + ")"
	}
	return f.Name + "(" + strings.Join(args, one(g, ",", ", ")) + ")"
}

var aggregations = []string{"average", "avg", "sum", "total", "min", "max", "median", "diff", "stddev", "count", "range", "rangeOf", "multiply", "last", "current", "avg_zero"}

// argument makes an argument by its type, or by its function where a type is too wide.
func (g *generator) argument(f *function.Function, p *function.Param, depth int) string {
	quote := func(s string) string { return one(g, `"`, `'`) + s }
	text := func(of ...string) string {
		s := quote(of[g.IntN(len(of))])
		return s + s[:1]
	}
	switch p.Name {
	case "search":
		if f.Name == "aliasQuery" {
			return text(`^servers\.(\w+)\.cpu\.(\w+)$`, "a.b.c", "(.*)")
		}
		return text(`(\w+)\.(\w+)`, "(^.*$)", "a", `[0-9]+`, `(?P<x>web)\d`, "x*", `\.cpu(?=\.idle)`)
	case "replace":
		if f.Name == "aliasQuery" {
			return text(`servers.\1.cpu.user`, `a.b.d`, `\1`)
		}
		return text(`\1`, `\1 A`, "x", `\g<1>.y`, "")
	case "newName":
		if f.Name == "aliasQuery" {
			return text("%d MHz", "last %.2f", "%s", "plain")
		}
		return text("name", "größe", "a.b %", "with,comma", "%.z")
	case "templateFunction":
		return text("sumSeries(%.*)", "%.cpu.idle", "scale(%.cpu.*,2)", "divideSeries(%.cpu.idle,%.cpu.user)")
	case "reduceFunction":
		return text("asPercent", "sumSeries", "divideSeries", "diffSeries")
	case "reduceMatchers":
		return text("idle", "user", "c", "d")
	case "pattern":
		return text("web", "^servers.*idle$", `web\d+`, "(?!x)a", "", `\bcpu\b`)
	case "alignTo":
		return text("hours", "days", "minutes", "weeks", "weeks3", "seconds")
	case "startSliceAt", "startSourceAt", "ts":
		return text(fmt.Sprint(graphitetest.Base+g.IntN(3600)), "00:00_20231115")
	case "endSliceAt", "endSourceAt":
		return text(fmt.Sprint(graphitetest.Base + 3600 + g.IntN(3600)))
	case "system":
		return text("si", "binary")
	case "valuesTypes":
		return text(append([]string{"si", "binary"}, aggregations...)...)
	case "bootstrapInterval":
		return text("1d", "12h")
	case "seasonality":
		return text("1h", "2h", "1d")
	case "intervalString": // with a negative one, graphite-web never ends
		return text("5min", "10min", "1h", "7min", "30s", "1d", "90s")
	case "intervalUnit":
		return text("10min", "1h", "7min")
	case "tags":
		if f.Name == "events" {
			return text("deploy", "alert", "*")
		}
	case "timeShiftEnd":
		return one(g, "1", "2", "3")
	case "n":
		if strings.Contains(f.Name, "ercentile") {
			return one(g, "1", "25", "50", "90.5", "99", "100")
		}
	case "position":
		return one(g, "0", "1", "2", "3", "-1")
	}
	return g.typed(p, depth, text)
}

func (g *generator) typed(p *function.Param, depth int, text func(...string) string) string {
	if len(p.Options) > 0 {
		return text(fmt.Sprint(p.Options[g.IntN(len(p.Options))]))
	}
	switch p.Type {
	case function.SeriesList:
		return g.series(depth - 1)
	case function.SeriesLists:
		return "mapSeries(" + g.series(depth-1) + ",1)"
	case function.Boolean:
		return one(g, "true", "false")
	case function.Float:
		return one(g, "0", "1", "2.5", "-3", "50", "0.5", "100", "1e3", "90", "7", "0.001")
	case function.Integer:
		return one(g, "0", "1", "2", "3", "5", "10", "-1", "60")
	case function.Interval:
		return text("5min", "10min", "1h", "7min", "30s", "1d", "-10min", "90s")
	case function.IntOrInterval:
		return one(g, "1", "2", "5", "10", text("5min", "10min", "1h", "2min"))
	case function.IntOrInf:
		return one(g, "1", "2", "5", "inf", "0")
	case function.Node:
		return one(g, "0", "1", "2", "3", "-1")
	case function.NodeOrTag:
		return one(g, "0", "1", "2", "3", "-1", text("name", "dc", "host", "missing"))
	case function.Tag:
		return text("name", "dc", "host")
	case function.AggFunc:
		return text(aggregations...)
	case function.AggOrSeriesFunc:
		return text(append([]string{"sumSeries", "averageSeries", "maxSeries", "countSeries", "diffSeries", "stddevSeries"}, aggregations...)...)
	case function.Any:
		return one(g, "100", "50.5", "None", g.series(0), g.series(0))
	}
	return text("x", "name", "größe", "a b")
}
