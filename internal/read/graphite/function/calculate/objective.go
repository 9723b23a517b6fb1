package calculate

import (
	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// satisfies are the ways in which a value can meet an objective.
var satisfies = map[string]func(v, bound float64) bool{
	"above":        func(v, bound float64) bool { return v > bound },
	"aboveOrEqual": func(v, bound float64) bool { return v >= bound },
	"below":        func(v, bound float64) bool { return v < bound },
	"belowOrEqual": func(v, bound float64) bool { return v <= bound },
}

// maxIntervals bounds the values of a series.
const maxIntervals = 1 << 24

// objective returns the body of a function that takes the share of values which satisfy a condition, in each
// interval. As an error budget, it is by how many seconds of the interval this is more than the objective. If
// the interval is longer than the graph, the values before the graph count, too.
func objective(budget bool) function.Body {
	return func(c *function.Call) (any, error) {
		interval, err := attime.ParseOffset(c.Text(1))
		if err != nil {
			return nil, err
		}
		if interval <= 0 {
			return nil, c.Errorf("expected an interval such as \"1h\", found %q", c.Text(1))
		}
		list, name := c.List(0), "slo("
		if budget {
			name = "sloErrorBudget("
		}
		if before := interval - (c.Until - c.From); before > 0 {
			if list, err = c.Again(c, c.From-before, c.Until); err != nil {
				return nil, err
			}
		}
		starts := map[string]*series.Series{}
		for _, s := range c.List(0) {
			starts[s.Name] = s
		}
		var out series.List
		for _, s := range list {
			shown := starts[s.Name]
			if shown == nil {
				continue // it has no values in the graph
			}
			if err := c.Check(len(s.Values)); err != nil {
				return nil, err
			}
			n := max(0, s.End-s.Start)/interval + 2
			if n > maxIntervals {
				return nil, c.Errorf("an interval of %d s makes %d values of one series, more than %d", interval, n, maxIntervals)
			}
			if err := c.Charge(c, n); err != nil {
				return nil, err
			}
			title := name + s.Name + ", " + c.Text(1) + ", " + c.Text(2) + ", " + series.General(c.Number(3))
			if budget {
				title += ", " + series.General(c.Number(4))
			}
			d := shown.Derive(title+")", shares(c, s, interval, budget))
			d.Step, d.End = interval, d.Start+int64(len(d.Values))*interval
			out = append(out, d)
		}
		return out, nil
	}
}

// shares returns a value for each interval. Those without values have none.
func shares(c *function.Call, s *series.Series, interval int64, budget bool) []float64 {
	if s.Step > interval {
		return series.Nulls(int((s.End - s.Start + interval - 1) / interval))
	}
	good, bound := satisfies[c.Text(2)], c.Number(3)
	var out []float64
	met, present, begun := 0.0, 0.0, s.Start
	for i, v := range s.Values {
		if !series.IsNull(v) {
			present++
			if good(v, bound) {
				met++
			}
		}
		end := s.Start + int64(i+1)*s.Step
		if end < s.Start+int64(len(out)+1)*interval && i+1 < len(s.Values) {
			continue
		}
		share := series.Divide(met, present)
		if budget && !series.IsNull(share) {
			length := interval
			if end < s.Start+int64(len(out)+1)*interval {
				length = end - begun // the last interval is not over
			}
			share = (share - c.Number(4)) * float64(length)
		}
		out = append(out, share)
		met, present, begun = 0, 0, end
	}
	return out
}
