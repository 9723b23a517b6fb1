package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/api/graphite/graphitetest"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/function"
)

// base is a time at a full hour, of which the data lie on both sides.
const base = 1_700_002_800

// world is data with the paths that find them.
type world struct {
	data  graphitetest.Data
	paths []string
	tags  []string // calls of seriesByTag
	mixed bool
}

// newWorld makes series with gaps, runs of nothing, counters that reset, tags and names beyond ASCII. With
// mixed, their steps differ.
func newWorld(r *rand.Rand, mixed bool) *world {
	w := &world{mixed: mixed, data: graphitetest.Data{Series: map[string]graphitetest.Series{}}}
	steps := []int64{[]int64{60, 60, 60, 300}[r.IntN(4)]}
	if mixed {
		steps = []int64{60, 30, 120}
	}
	names := []string{
		"servers.web1.cpu.idle", "servers.web2.cpu.idle", "servers.web10.cpu.idle", "servers.db1.cpu.idle", "servers.web1.cpu.user",
		"servers.web2.cpu.user", "servers.db1.cpu.user", "a.b.c", "a.b.d", "a.x.c", "größe.мера.x", "größe.мера.y", "counter.x", "counter.y",
		"empty.one", "empty.two", "disk.used;dc=eu;host=web1", "disk.used;dc=eu;host=web2", "disk.used;dc=us;host=web1", "disk.free;dc=eu;host=web1",
		"weights.web1", "weights.web2",
	}
	for i, name := range names {
		step := steps[i%len(steps)]
		w.data.Series[name] = values(r, name, step, i)
	}
	w.paths = []string{
		"servers.*.cpu.idle", "servers.web*.cpu.idle", "servers.{web1,db1}.cpu.*", "servers.web1.cpu.idle", "servers.web?.cpu.user",
		"servers.*.cpu.*", "a.b.*", "a.*.c", "a.b.c", "größe.мера.*", "counter.*", "counter.x", "empty.*", "empty.one", "nothing.*",
		"disk.used;dc=eu;host=web1", "servers.web[12].cpu.idle", "weights.*",
	}
	w.tags = []string{
		`seriesByTag("name=disk.used")`, `seriesByTag("dc=eu","host=~web.*")`, `seriesByTag('host=web1', 'dc!=us')`, `seriesByTag("name=~disk","dc=us")`,
	}
	for range 20 {
		w.data.Events = append(w.data.Events, graphitetest.Event{float64(base + r.IntN(7200)), []any{[]string{"deploy", "alert"}[r.IntN(2)]}})
	}
	return w
}

// hours of data before and after base.
const (
	hoursBefore = 50
	hoursAfter  = 4
)

func values(r *rand.Rand, name string, step int64, i int) graphitetest.Series {
	s := graphitetest.Series{Start: base - hoursBefore*3600, Step: step}
	if strings.HasPrefix(name, "empty.") {
		v := 1.0 // a name that was used once, long before the windows
		s.Start += 30 * 3600
		s.Values = []*float64{&v}
		return s
	}
	n := int((hoursBefore + hoursAfter) * 3600 / step)
	current, gaps := float64(r.IntN(100)), r.Float64()*0.3
	for j := range n {
		var v float64
		switch {
		case strings.HasPrefix(name, "counter"):
			if current += float64(r.IntN(50)); r.IntN(40) == 0 {
				current = 0
			}
			v = current
		case i%3 == 0:
			v = math.Round(r.Float64()*1e6) / 1e3
		case i%3 == 1:
			v = float64(r.IntN(7)) - 3
		default:
			current += r.NormFloat64()
			v = current
		}
		gone := r.Float64() < gaps || j%97 > 90
		if gone {
			s.Values = append(s.Values, nil)
		} else {
			s.Values = append(s.Values, &v)
		}
	}
	return s
}

// generator makes targets.
type generator struct {
	*rand.Rand
	*world
	functions []*function.Function
}

// random functions have no result to compare.
var unpredictable = []string{"randomWalk", "randomWalkFunction"}

func newGenerator(r *rand.Rand, w *world) *generator {
	g := &generator{Rand: r, world: w}
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
	from := base + int64(g.IntN(3600))
	length := one(g, int64(600), 1800, 3600, 7200, 61, 5400)
	p := url.Values{"target": {target}, "format": {"json"}, "now": {fmt.Sprint(base + 3*3600)}}
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
			return g.tags[g.IntN(len(g.tags))]
		}
		return g.paths[g.IntN(len(g.paths))]
	}
	return g.call(g.functions[g.IntN(len(g.functions))], depth)
}

// call makes a call of a function.
func (g *generator) call(f *function.Function, depth int) string {
	var args []string
	named := false
	for i, p := range f.Params {
		needed := f.Name == "verticalLine" && p.Name == "label" || f.Name == "timeSlice" // graphite-web's null and clock
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
		return text(fmt.Sprint(base+g.IntN(3600)), "00:00_20231115")
	case "endSliceAt", "endSourceAt":
		return text(fmt.Sprint(base + 3600 + g.IntN(3600)))
	case "system":
		return text("si", "binary")
	case "valuesTypes":
		return text(append([]string{"si", "binary"}, aggregations...)...)
	case "bootstrapInterval":
		return text("1d", "12h")
	case "seasonality":
		return text("1h", "2h", "1d")
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
