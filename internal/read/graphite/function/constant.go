package function

import "github.com/shaledb/shale/internal/read/graphite/series"

// Constant returns a line of three points over a window.
func Constant(w *Window, value any) *series.Series {
	v := series.Null()
	switch value := value.(type) {
	case int64:
		v = float64(value)
	case float64:
		v = value
	}
	name := series.Text(value)
	s := series.New(name, w.From, w.Until, max(1, (w.Until-w.From)/2), []float64{v, v, v}, w.XFF)
	s.Path = "constantLine(" + name + ")"
	return s
}

// Between lets the area between two series be drawn. Both get one name, and the tags of the upper one.
func Between(c *Call, list series.List) error {
	if len(list) != 2 {
		return c.Errorf("areaBetween series argument must reference *exactly* 2 series, found %d", len(list))
	}
	lower, upper := list[0], list[1]
	lower.Draw.Stacked, lower.Draw.Invisible, upper.Draw.Stacked = true, true, true
	upper.Tags["areaBetween"] = "1"
	lower.Tags = upper.Tags
	lower.Name = "areaBetween(" + upper.Path + ")"
	upper.Name = lower.Name
	return nil
}
