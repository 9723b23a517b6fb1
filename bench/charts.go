package main

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/internal/plot"
)

// curvePlot draws a figure over time: the last run of each system that has it.
func curvePlot(l *load, groups []*result.Group, curve string) (named, bool) {
	c := plot.Lines{Title: l.name + ": " + result.Title(curve), Unit: axis(curve)}
	for _, g := range groups {
		for _, r := range slices.Backward(g.Records) {
			points := r.Curves[curve]
			if len(points) < 2 {
				continue
			}
			line := plot.Curve{Name: g.System}
			for _, p := range points {
				line.Points = append(line.Points, p)
			}
			c.Curves = append(c.Curves, line)
			if len(c.Curves) == 1 { // the moments of the first system; those of the others are close
				for name, at := range r.Marks {
					c.Marks = append(c.Marks, plot.Mark{At: at, Name: name})
				}
				slices.SortFunc(c.Marks, func(a, b plot.Mark) int { return cmp.Compare(a.At, b.At) })
				if bound := r.Values["bound-B"]; bound > 0 && curve == "rss-B" {
					c.Bound, c.BoundName = bound, "1.15 x budget + 64 MiB"
				}
			}
			break
		}
	}
	return named{"bench-" + l.name + "-" + plain(curve) + ".svg", c.SVG()}, len(c.Curves) > 0
}

// axis names the unit of an axis.
func axis(name string) string {
	switch name[max(0, len(name)-2):] {
	case "-B":
		return "bytes"
	case "-s":
		return "seconds"
	}
	return name
}

// plain turns the name of a figure into a file name.
func plain(name string) string {
	b := []byte(strings.ToLower(name))
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			b[i] = '-'
		}
	}
	return string(b)
}

// barPlot is a chart of one figure over some loads. New series cost at least ten times as much as known ones:
// in one chart the bars of known series could not be seen.
type barPlot struct {
	figure, file, title, unit string
	of                        func(load string) bool
}

func barPlots() []barPlot {
	isNew := func(load string) bool { return strings.HasSuffix(load, "-new") }
	known := func(load string) bool { return !isNew(load) }
	paced := func(load string) bool { return strings.Contains(load, "per-second") }
	const cost = "CPU of the server for a million samples, until its parts have merged, "
	return []barPlot{
		{"samples/s", "bench-rate-known.svg", "Samples a second, series that are known", "samples/s", func(l string) bool { return known(l) && !paced(l) }},
		{"samples/s", "bench-rate-new.svg", "Samples a second, series that are new", "samples/s", isNew},
		{"cpu-s/M-settled", "bench-cpu-known.svg", cost + "known series", "seconds", known},
		{"cpu-s/M-settled", "bench-cpu-new.svg", cost + "new series", "seconds", isNew},
	}
}

// writePlots draws rates and costs of the loads that write.
func writePlots(groups []*result.Group) (plots []named) {
	for _, f := range barPlots() {
		c := plot.Bars{Title: f.title, Unit: f.unit}
		systems := map[string]map[string]result.Stat{}
		order := []string{}
		for _, g := range groups {
			s := g.Stat(f.figure)
			if s.N == 0 || !f.of(g.Load) {
				continue
			}
			if !slices.Contains(c.Names, g.Load) {
				c.Names = append(c.Names, g.Load)
			}
			if systems[g.System] == nil {
				systems[g.System] = map[string]result.Stat{}
				order = append(order, g.System)
			}
			systems[g.System][g.Load] = s
		}
		for _, name := range order {
			s := plot.Series{Name: name}
			for _, load := range c.Names {
				stat, ok := systems[name][load]
				if !ok {
					stat = result.Stat{Median: math.NaN(), Least: math.NaN(), Most: math.NaN()}
				}
				s.Values, s.Least, s.Most = append(s.Values, stat.Median), append(s.Least, stat.Least), append(s.Most, stat.Most)
			}
			c.Series = append(c.Series, s)
		}
		if len(systems) > 0 {
			plots = append(plots, named{f.file, c.SVG()})
		}
	}
	return plots
}
