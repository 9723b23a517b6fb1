package draw

import (
	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// style returns the body of a function that changes how series are drawn.
func style(change func(c *function.Call, s *series.Series)) function.Body {
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		change(c, s)
		return s, nil
	})
}

func alpha(c *function.Call, s *series.Series) { s.Draw.Alpha, s.Draw.HasAlpha = c.Number(1), true }

func color(c *function.Call, s *series.Series) { s.Draw.Color = c.Text(1) }

func lineWidth(c *function.Call, s *series.Series) { s.Draw.LineWidth = c.Number(1) }

func dashed(c *function.Call, s *series.Series) {
	s.Draw.Dashed = c.Number(1)
	s.Tags["dashed"] = c.Text(1)
	s.Name = "dashed(" + s.Name + ", " + series.General(c.Number(1)) + ")"
}

func infinite(_ *function.Call, s *series.Series) {
	s.Draw.Infinite = true
	s.Tags["drawAsInfinite"] = "1"
	s.Name = "drawAsInfinite(" + s.Name + ")"
}

func secondAxis(_ *function.Call, s *series.Series) {
	s.Draw.SecondYAxis = true
	s.Tags["secondYAxis"] = "1"
	s.Name = "secondYAxis(" + s.Name + ")"
}

func areaBetween(c *function.Call) (any, error) {
	list := c.List(0)
	return list, function.Between(c, list)
}

// defaultStack is the stack of series that name none.
const defaultStack = "__DEFAULT__"

// stacked adds each series to those that were put on its stack before, in this request.
func stacked(c *function.Call) (any, error) {
	name := defaultStack
	if c.Has(1) {
		name = c.Text(1)
	}
	if c.Stacks == nil {
		c.Stacks = make(map[string][]float64)
	}
	total := c.Stacks[name]
	out := make(series.List, 0, len(c.List(0)))
	for _, s := range c.List(0) {
		if err := c.Check(len(s.Values)); err != nil {
			return nil, err
		}
		values := make([]float64, len(s.Values))
		for i, v := range s.Values {
			if i == len(total) {
				total = append(total, 0)
			}
			if values[i] = v; !series.IsNull(v) {
				total[i] += v
				values[i] = total[i]
			}
		}
		title := s.Name
		if name == defaultStack {
			s.Tags["stacked"] = name
			title = "stacked(" + s.Name + ")"
		}
		d := s.Derive(title, values)
		d.Draw.Stacked = true
		out = append(out, d)
	}
	c.Stacks[name] = total
	return out, nil
}

func constantLine(c *function.Call) (any, error) {
	return series.List{function.Constant(c.Window, c.Value(0))}, nil
}

func threshold(c *function.Call) (any, error) {
	line := function.Constant(c.Window, c.Value(0))
	if label := c.Text(1); label != "" {
		line.Name = label
	}
	line.Draw.Color = c.Text(2)
	return series.List{line}, nil
}

func verticalLine(c *function.Call) (any, error) {
	at, err := attime.Parse(c.Text(0), c.Now)
	if err != nil {
		return nil, err
	}
	switch ts := at.Unix(); {
	case ts < c.From:
		return nil, c.Errorf("verticalLine(): timestamp %d exists before start of range", ts)
	case ts > c.Until:
		return nil, c.Errorf("verticalLine(): timestamp %d exists after end of range", ts)
	}
	line := series.New(c.Text(1), at.Unix(), at.Unix(), 1, []float64{1, 1}, c.XFF)
	line.Draw.Infinite, line.Draw.Color = true, c.Text(2)
	return series.List{line}, nil
}
