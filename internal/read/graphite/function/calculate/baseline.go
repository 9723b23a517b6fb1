package calculate

import (
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// maxBaselines bounds the windows that a baseline is made of.
const maxBaselines = 1000

// past is the series of one name in earlier windows, moved to the window of the graph.
type past struct {
	name    string
	windows series.List
}

// baseline returns the body of a function that takes the median of the same times of several earlier windows.
// relative divides the values of now by it.
func baseline(relative bool) function.Body {
	return func(c *function.Call) (any, error) {
		current := map[string]*series.Series{}
		for _, s := range c.List(0) {
			current[s.Name] = s
		}
		all, err := pastOf(c)
		if err != nil {
			return nil, err
		}
		var out series.List
		for _, p := range all {
			now := current[p.name]
			if relative && now == nil {
				continue
			}
			if err := c.Check(len(p.windows) * len(p.windows[0].Values)); err != nil {
				return nil, err
			}
			medians := p.medians()
			absent := float64(len(medians)) - series.Count(medians)
			if c.Has(4) && 100*absent > c.Number(4)*float64(len(medians)) {
				continue
			}
			if mean := series.Average(medians); c.Has(5) && !series.IsNull(mean) && mean < c.Number(5) {
				continue
			}
			name := "baseline("
			if relative {
				name = "baselineAberration("
				medians = deviations(p.windows[0], medians, now)
			}
			out = append(out, p.windows[0].Derive(name+p.name+")", medians))
		}
		return out, nil
	}
}

// pastOf evaluates the first argument over the earlier windows, and puts the series of a name together.
func pastOf(c *function.Call) (all []*past, err error) {
	text := c.Text(1)
	if !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "+") {
		text = "-" + text
	}
	unit, err := attime.ParseOffset(text)
	if err != nil {
		return nil, err
	}
	from, to := c.Int(2), c.Int(3)
	if from < -maxBaselines*10 || to-from > maxBaselines || to > maxBaselines*10 {
		return nil, c.Errorf("expected at most %d windows, found %d to %d", maxBaselines, from, to)
	}
	named := map[string]*past{}
	for n := from; n < to; n++ {
		if n == 0 {
			continue // the window of the graph
		}
		list, err := c.Again(c, c.From+n*unit, c.Until+n*unit)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			p := named[s.Name]
			if p == nil {
				p = &past{name: s.Name}
				named[s.Name], all = p, append(all, p)
			}
			s.Start, s.End = s.Start-n*unit, s.End-n*unit
			p.windows = append(p.windows, s)
		}
	}
	return all, nil
}

// at returns the value of a series whose step a time is in.
func at(s *series.Series, t int64) float64 {
	if i := (t - s.Start) / s.Step; t >= s.Start && i < int64(len(s.Values)) {
		return s.Values[i]
	}
	return series.Null()
}

// medians returns the median of all windows at each time of the first one. Windows far back may have longer
// steps.
func (p *past) medians() []float64 {
	first := p.windows[0]
	out, row := make([]float64, len(first.Values)), make([]float64, len(p.windows))
	for i := range out {
		for j, s := range p.windows {
			row[j] = at(s, first.Start+int64(i)*first.Step)
		}
		out[i] = series.Median(row)
	}
	return out
}

// deviations divides the values of now by those of a baseline. Where that is 0, the deviation is 0.
func deviations(grid *series.Series, medians []float64, now *series.Series) []float64 {
	out := make([]float64, len(medians))
	for i, m := range medians {
		switch v := at(now, grid.Start+int64(i)*grid.Step); {
		case series.IsNull(m), series.IsNull(v):
			out[i] = series.Null()
		case m != 0:
			out[i] = v / m
		}
	}
	return out
}
