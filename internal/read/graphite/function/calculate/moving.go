package calculate

import (
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// window is the size of a moving window, in points or in seconds.
type window struct {
	text    string // as it appears in names
	tag     string
	timed   bool
	points  int64
	preview int64 // seconds before the start of the graph
}

// windowOf reads a size: a number of points of the longest step, or an interval.
func windowOf(c *function.Call) (*window, error) {
	if text, ok := c.Value(1).(string); ok {
		seconds, err := attime.ParseOffset(text)
		if err != nil {
			return nil, err
		}
		return &window{text: `"` + text + `"`, tag: text, timed: true, preview: max(seconds, -seconds)}, nil
	}
	var step int64
	for _, s := range c.List(0) {
		step = max(step, s.Step)
	}
	w := &window{text: c.Text(1), tag: c.Text(1), points: c.Int(1)}
	if w.points < 0 || w.points > 1<<32 {
		return nil, c.Errorf("expected a window of 0 or more points, found %d", w.points)
	}
	w.preview = w.points * step
	return w, nil
}

func (w *window) in(s *series.Series) int {
	if w.timed {
		return int(w.preview / s.Step)
	}
	return int(w.points)
}

// moving aggregates the values of a window before and at each time.
func moving(c *function.Call, name string, xff int) (any, error) {
	if len(c.List(0)) == 0 {
		return series.List(nil), nil
	}
	w, err := windowOf(c)
	if err != nil {
		return nil, err
	}
	f, err := series.AggregationOf(name)
	if err != nil {
		return nil, err
	}
	list, err := c.Again(c, c.From-w.preview, c.Until)
	if err != nil {
		return nil, err
	}
	title := "moving" + strings.ToUpper(name[:1]) + strings.ToLower(name[1:])
	out := make(series.List, 0, len(list))
	for _, s := range list {
		values, err := slide(c, s, w.in(s), f, c.Share(xff, s.XFF))
		if err != nil {
			return nil, err
		}
		s.Tags[title] = w.tag
		d := s.Derive(title+"("+s.Name+","+w.text+")", values)
		d.Start += w.preview
		out = append(out, d)
	}
	return out, nil
}

// slide leaves out the first window: its values lie before the graph.
func slide(c *function.Call, s *series.Series, points int, f series.Aggregation, xff float64) ([]float64, error) {
	var out []float64
	present := make([]float64, 0, min(points, len(s.Values)))
	for i := points + 1; i <= len(s.Values); i++ {
		if err := c.Check(points); err != nil {
			return nil, err
		}
		present = series.Present(present[:0], s.Values[i-points:i])
		v := series.Null()
		if series.Enough(len(present), float64(points), xff) {
			v = f(present)
		}
		out = append(out, v)
	}
	return out, nil
}

func movingBy(name string) function.Body {
	return func(c *function.Call) (any, error) { return moving(c, name, 2) }
}

func movingWindow(c *function.Call) (any, error) { return moving(c, c.Text(2), 3) }

// exponential weighs older values less. It begins with the average of the window before the graph.
func exponential(c *function.Call) (any, error) {
	if len(c.List(0)) == 0 {
		return series.List(nil), nil
	}
	w, err := windowOf(c)
	if err != nil {
		return nil, err
	}
	weight := 2 / (float64(w.points) + 1)
	if w.timed {
		weight = 2 / (float64(w.preview) + 1)
	}
	list, err := c.Again(c, c.From-w.preview, c.Until)
	if err != nil {
		return nil, err
	}
	out := make(series.List, 0, len(list))
	for _, s := range list {
		if err := c.Check(len(s.Values)); err != nil {
			return nil, err
		}
		points := min(w.in(s), len(s.Values))
		ema := series.Average(s.Values[:points])
		if series.IsNull(ema) {
			ema = 0
		}
		values := append(make([]float64, 0, len(s.Values)-points+1), series.Round(ema, 6))
		for _, v := range s.Values[points:] {
			if series.IsNull(v) {
				values = append(values, v)
				continue
			}
			ema = weight*v + (1-weight)*ema
			values = append(values, series.Round(ema, 6))
		}
		s.Tags["exponentialMovingAverage"] = w.tag
		d := s.Derive("exponentialMovingAverage("+s.Name+","+w.text+")", values)
		d.Start += w.preview
		out = append(out, d)
	}
	return out, nil
}

// deviation is the standard deviation over a moving window of points, from running sums as in graphite-web.
// A share of the window's points must be there.
func deviation(c *function.Call) (any, error) {
	points, tolerance := int(c.Int(1)), c.Number(2)
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		s.Tags["stdev"] = c.Text(1)
		name := "stdev(" + s.Name + "," + c.Text(1) + ")"
		switch {
		case points == 0: // a window of no points has no deviation
			return s.Derive(name, series.Nulls(len(s.Values))), nil
		case points < 0:
			return nil, c.Errorf("expected a window of 0 or more points, found %d", points)
		}
		out := make([]float64, len(s.Values))
		valid, sum, squares := 0, 0.0, 0.0
		origin := 0.0
		if isIdentity(s) {
			origin = s.Values[0]
		}
		for i, v := range s.Values {
			if i >= points && !series.IsNull(s.Values[i-points]) {
				gone := s.Values[i-points] - origin
				valid--
				sum -= gone
				squares -= gone * gone
			}
			if !series.IsNull(v) {
				valid++
				sum += v - origin
				squares += (v - origin) * (v - origin)
			}
			out[i] = series.Null()
			if valid > 0 && float64(valid)/float64(points) >= tolerance {
				if root := series.Power(float64(valid)*squares-sum*sum, 0.5); !series.IsNull(root) {
					out[i] = root / float64(valid)
				}
			}
		}
		return s.Derive(name, out), nil
	})(c)
}

// isIdentity reports whether a series is what identity has made. Its values are integers in graphite-web,
// which adds up their squares without rounding. Their deviation from a near origin is the same, and its
// squares are small enough for that.
func isIdentity(s *series.Series) bool {
	if !strings.HasPrefix(s.Path, "identity(") {
		return false
	}
	for i, v := range s.Values {
		if v != float64(s.Start+int64(i)*s.Step) {
			return false
		}
	}
	return len(s.Values) > 0
}
