package rename

import (
	"fmt"
	"math"
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// legendValue appends aggregations of the values to names, as numbers or with the prefix of a system of
// units.
func legendValue(c *function.Call) (any, error) {
	types := c.Rest(1)
	if len(types) == 0 {
		return nil, c.Errorf("expected the name of an aggregation")
	}
	system := series.Text(types[len(types)-1])
	if system == "si" || system == "binary" {
		types = types[:len(types)-1]
	} else {
		system = ""
	}
	list := c.List(0)
	for _, t := range types {
		kind := series.Text(t)
		f, err := series.AggregationOf(kind)
		for _, s := range list {
			if err := c.Check(len(s.Values)); err != nil {
				return nil, err
			}
			text := "(?)"
			switch {
			case err != nil:
			case system == "":
				text = series.Text(f(s.Values))
				if kind == "count" {
					text = series.Whole(f(s.Values))
				}
			default:
				if text = "None"; !series.IsNull(f(s.Values)) {
					text = InUnits(f(s.Values), system, "")
				}
			}
			if system == "" {
				s.Name += " (" + kind + ": " + text + ")"
			} else {
				s.Name = pad(s.Name, 20) + pad(kind, 5) + pad(text, 10)
			}
		}
	}
	return list, nil
}

// pad fills a text with spaces up to a number of characters.
func pad(s string, n int) string { return fmt.Sprintf("%-*s", n, s) }

// systems are the prefixes of units, from the largest.
var systems = map[string][]struct {
	prefix string
	size   float64
}{
	"si":     {{"P", 1e15}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}},
	"binary": {{"Pi", 1 << 50}, {"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}},
}

// InUnits writes a number with two decimal places and a prefix.
func InUnits(v float64, system, units string) string {
	size := v
	if size < 0 {
		size = -size
	}
	prefix := ""
	for _, u := range systems[system] {
		if size >= u.size {
			v /= u.size
			prefix = u.prefix
			break
		}
	}
	if units != "" {
		return fmt.Sprintf("%.2f %s", v, prefix+units)
	}
	return fmt.Sprintf("%.2f%s", v, prefix)
}

// cactiStyle appends the last, greatest and least values to names, in columns.
func cactiStyle(c *function.Call) (any, error) {
	list, system, units := c.List(0), c.Text(1), c.Text(2)
	text := func(v float64) string {
		switch {
		case system != "":
			return InUnits(v, system, units)
		case units != "":
			return fmt.Sprintf("%.2f %s", v, units)
		}
		return fmt.Sprintf("%.2f", v)
	}
	columns := []struct {
		title string
		f     series.Aggregation
		width int
	}{{"Current", series.Last, 0}, {"Max", series.Max, 0}, {"Min", series.Min, 0}}
	names := 0
	for _, s := range list {
		names = max(names, len([]rune(s.Name)))
		if err := c.Check(3 * len(s.Values)); err != nil {
			return nil, err
		}
		for i := range columns {
			v := columns[i].f(s.Values)
			if series.IsNull(v) || v == 0 {
				v = 3
			}
			columns[i].width = max(columns[i].width, len([]rune(text(math.Trunc(v)+0)))+3)
		}
	}
	for _, s := range list {
		var b strings.Builder
		b.WriteString(pad(s.Name, names))
		for _, col := range columns {
			shown := "nan"
			if v := col.f(s.Values); !series.IsNull(v) {
				shown = text(v)
			}
			b.WriteString(" " + col.title + ":" + pad(shown, col.width))
		}
		s.Name = b.String() + " "
	}
	return list, nil
}
