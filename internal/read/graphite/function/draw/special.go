package draw

import (
	"fmt"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

func consolidate(s *series.Series, by string) {
	s.Consolidation = by
	s.Tags["consolidateBy"] = by
	s.Rename("consolidateBy(" + s.Name + `,"` + by + `")`)
}

// shareOfRequest sets the xFilesFactor of series, and of what this request computes later.
func shareOfRequest(c *function.Call) (any, error) {
	c.XFF = c.Number(1)
	for _, s := range c.List(0) {
		s.XFF = c.XFF
		s.Tags["xFilesFactor"] = c.Text(1)
	}
	return c.List(0), nil
}

// changed shows 1 where a value differs from the last one before it, and 0 elsewhere.
func changed(_ *function.Call, s *series.Series) (*series.Series, error) {
	s.Rename("changed(" + s.Name + ")")
	out := make([]float64, len(s.Values))
	previous := series.Null()
	for i, v := range s.Values {
		if series.IsNull(v) {
			continue
		}
		if !series.IsNull(previous) && v != previous {
			out[i] = 1
		}
		previous = v
	}
	s.Values = out
	return s, nil
}

func fallback(c *function.Call) (any, error) {
	if len(c.List(0)) > 0 {
		return c.List(0), nil
	}
	return c.List(1), nil
}

// maxSeconds bounds a window with a value for each second.
const maxSeconds = 1 << 24

// events counts events in each second.
func events(c *function.Call) (any, error) {
	var tags []string
	for i := range c.Values {
		tags = append(tags, c.Text(i))
	}
	name := `events("` + strings.Join(tags, `", "`) + `")`
	if len(tags) == 1 && tags[0] == "*" {
		tags = nil
	}
	n := c.Until - c.From
	if n > maxSeconds {
		return nil, fmt.Errorf("%w: events: the window has %d seconds, more than %d", model.ErrInvalid, n, maxSeconds)
	}
	if err := c.Charge(c, n); err != nil {
		return nil, err
	}
	times, err := c.Events(c, tags)
	if err != nil {
		return nil, err
	}
	values := series.Nulls(int(n))
	for _, at := range times {
		if i := at - c.From; i >= 0 && i < n {
			if series.IsNull(values[i]) {
				values[i] = 0
			}
			values[i]++
		}
	}
	s := series.New(name, c.From, c.Until, 1, values, c.XFF)
	s.Consolidation = "sum"
	return series.List{s}, nil
}
