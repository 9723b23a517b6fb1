package series

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// consolidations by name.
var consolidations = map[string]func([]float64) float64{
	"sum": Sum, "average": Average, "avg": Average, "avg_zero": averageZero, "max": Max, "min": Min, "first": first, "last": Last,
}

func first(values []float64) float64 {
	for _, v := range values {
		if !IsNull(v) {
			return v
		}
	}
	return Null()
}

// Consolidate makes one value of each n values by the consolidation of the series. The last one may stand
// for fewer. offset is how many values are missing before the first.
func (s *Series) Consolidate(n, offset int) ([]float64, error) {
	f := consolidations[s.Consolidation]
	if f == nil {
		return nil, fmt.Errorf("%w: Invalid consolidation function: '%s'", model.ErrInvalid, s.Consolidation)
	}
	out := make([]float64, 0, (len(s.Values)+offset+n-1)/n)
	for begin := -offset; begin < len(s.Values); begin += n {
		bucket := s.Values[max(0, begin):min(begin+n, len(s.Values))]
		v := Null()
		if Enough(int(Count(bucket)), float64(n), s.XFF) {
			v = f(bucket)
		}
		out = append(out, v)
	}
	return out, nil
}

// Grid is the grid that several series have in common.
type Grid struct{ Start, End, Step int64 }

// maxStep bounds the common step of several series: a century.
const maxStep = 100 * 365 * 86400

// Normalize brings series to a common step, the least common multiple of theirs, and returns them with the
// grid of a result. Series of one step stay as they are, even if they begin at different times. Otherwise
// values are consolidated in buckets that begin at multiples of the step. graphite-web consolidates each
// series from its own start, so that one value of the result mixes different times.
func Normalize(list List) (List, Grid, error) {
	g := Grid{Start: list[0].Start, End: list[0].End, Step: list[0].Step}
	mixed := false
	for _, s := range list {
		g.Start, g.End = min(g.Start, s.Start), max(g.End, s.End)
		if mixed = mixed || s.Step != g.Step; mixed {
			if g.Step = lcm(g.Step, s.Step); g.Step > maxStep {
				return nil, g, fmt.Errorf("%w: the common step of the series is more than 100 years", model.ErrInvalid)
			}
		}
	}
	if mixed {
		return align(list, g)
	}
	g.End -= floorMod(g.End-g.Start, g.Step)
	return list, g, nil
}

// align consolidates series in buckets of the grid's step. The first bucket is the first one that is whole,
// unless there is none.
func align(list List, g Grid) (List, Grid, error) {
	aligned := g.Start - floorMod(g.Start, g.Step)
	if aligned < g.Start && aligned+g.Step < g.End {
		aligned += g.Step
	}
	g.Start = aligned
	g.End -= floorMod(g.End-g.Start, g.Step)
	out := make(List, len(list))
	for i, s := range list {
		c := *s
		n := int(g.Step / s.Step)
		if before := (g.Start - s.Start + s.Step - 1) / s.Step; before > 0 { // values before the first bucket
			c.Values = s.Values[min(int(before), len(s.Values)):]
			c.Start += before * s.Step
		}
		skipped := int((c.Start - g.Start) / g.Step) // buckets before the first value
		values, err := c.Consolidate(n, int((c.Start-g.Start)%g.Step/s.Step))
		if err != nil {
			return nil, g, err
		}
		c.Values = append(Nulls(skipped), values...)
		c.Start, c.Step = g.Start, g.Step
		out[i] = &c
	}
	return out, g, nil
}

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

func lcm(a, b int64) int64 {
	g, r := a, b
	for r != 0 {
		g, r = r, g%r
	}
	return a / g * b
}

// Rows calls f with the values of each column of the series, in order. Series that end early have no value
// there. f must not keep the slice.
func Rows(list List, f func(i int, row []float64)) int {
	n := 0
	for _, s := range list {
		n = max(n, len(s.Values))
	}
	row := make([]float64, len(list))
	for i := range n {
		for j, s := range list {
			if i < len(s.Values) {
				row[j] = s.Values[i]
			} else {
				row[j] = Null()
			}
		}
		f(i, row)
	}
	return n
}
