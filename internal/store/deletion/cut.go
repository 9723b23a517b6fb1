package deletion

import (
	"bytes"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Cut is what a deletion takes of one series.
type Cut struct {
	model.TimeRange
	// lines is the filter, for the labels of the series; nil: all rows in the range.
	lines  LineFilter
	labels model.Labels
}

// Cuts are what deletions take of one series.
type Cuts []Cut

// Add appends what the deletion takes of a series. It keeps no reference to the labels.
func (cs Cuts) Add(d *Deletion, l model.Labels) Cuts {
	if d.Filter != "" && d.lines == nil || !d.Matches(l) {
		return cs
	}
	c := Cut{TimeRange: d.Range, lines: d.lines}
	if c.lines != nil {
		c.labels = bytes.Clone(l)
	}
	return append(cs, c)
}

// Before appends what retention takes of a series: its rows before a time.
func (cs Cuts) Before(t int64) Cuts {
	if t == math.MinInt64 {
		return cs
	}
	return append(cs, Cut{TimeRange: model.TimeRange{Min: math.MinInt64, Max: t - 1}})
}

// Widened returns cuts that take a rollup if they take any instant of its slot, whose last instant is the
// time of the rollup. The cuts themselves are changed.
func (cs Cuts) Widened(resolution int64) Cuts {
	if resolution == 0 {
		return cs
	}
	for i := range cs {
		cs[i].Max += min(resolution-1, math.MaxInt64-cs[i].Max)
	}
	return cs
}

// Cover reports whether one of the cuts takes every row of a range.
func (cs Cuts) Cover(r model.TimeRange) bool {
	return slices.ContainsFunc(cs, func(c Cut) bool { return c.lines == nil && c.Min <= r.Min && r.Max <= c.Max })
}

// Touch reports whether any of the cuts may take a row of a range.
func (cs Cuts) Touch(r model.TimeRange) bool {
	return slices.ContainsFunc(cs, func(c Cut) bool { return c.Overlaps(r) })
}

// Ranges returns the ranges of which all rows are taken.
func (cs Cuts) Ranges() (ranges []model.TimeRange) {
	for _, c := range cs {
		if c.lines == nil {
			ranges = append(ranges, c.TimeRange)
		}
	}
	return ranges
}

// Filtered reports whether any of the cuts has a filter and may take a row of a range.
func (cs Cuts) Filtered(r model.TimeRange) bool {
	return slices.ContainsFunc(cs, func(c Cut) bool { return c.lines != nil && c.Overlaps(r) })
}

// Rows removes the samples or exemplars of r from index from on that the cuts take.
func (cs Cuts) Rows(r *model.Rows, from int) {
	if len(cs) == 0 {
		return
	}
	out := from
	for i := from; i < len(r.Times); i++ {
		if slices.ContainsFunc(cs, func(c Cut) bool { return c.lines == nil && c.Contains(r.Times[i]) }) {
			continue
		}
		if out != i {
			r.Times[out], r.Values[out] = r.Times[i], r.Values[i]
			if len(r.Starts) > 0 {
				r.Starts[out] = r.Starts[i]
			}
			if len(r.Kinds) > 0 {
				r.Kinds[out] = r.Kinds[i]
			}
		}
		out++
	}
	r.Truncate(out)
}

// tester runs the tests of several cuts. It is used by one goroutine.
type tester struct {
	cuts  Cuts
	tests []LineTest // nil: the cut has no filter
}

func (cs Cuts) tester() *tester {
	t := &tester{cuts: cs, tests: make([]LineTest, len(cs))}
	for i, c := range cs {
		if c.lines != nil {
			t.tests[i] = c.lines(c.labels)
		}
	}
	return t
}

// takes reports whether row i is deleted. The rows have lines and metadata if any cut has a filter.
func (t *tester) takes(r *model.TextRows, i int) bool {
	for k, c := range t.cuts {
		if c.Contains(r.Times[i]) && (t.tests[k] == nil || t.tests[k](r.Times[i], r.Line(i), r.MetadataAt(i))) {
			return true
		}
	}
	return false
}

// Text removes the lines that the cuts take, and reports whether there were any. The remaining lines are
// copied, since those of dst may belong to a page; its other columns are changed in place. If a cut has a
// filter, dst must have lines and metadata.
func (cs Cuts) Text(dst *model.TextRows) bool {
	t := cs.tester()
	first := 0
	for first < len(dst.Times) && !t.takes(dst, first) {
		first++
	}
	if first == len(dst.Times) {
		return false
	}
	// Lines must be adjacent. If only lengths are wanted, there are no lines to copy.
	var lines []byte
	var ends []uint32
	out, begin, end := 0, dst.Begin, uint32(0)
	for i, at := range dst.Times {
		gone := i == first || i > first && t.takes(dst, i)
		from := begin
		if len(dst.Ends) > 0 {
			begin = dst.Ends[i]
		}
		if gone {
			continue
		}
		if len(dst.Ends) > 0 {
			if len(dst.Bytes) > 0 {
				lines = append(lines, dst.Bytes[from:begin]...)
			}
			end += begin - from
			ends = append(ends, end)
		}
		if dst.Times[out] = at; len(dst.MetadataOf) > 0 {
			dst.MetadataOf[out] = dst.MetadataOf[i]
		}
		out++
	}
	dst.Times, dst.Bytes, dst.Begin, dst.Ends = dst.Times[:out], lines, 0, ends
	if len(dst.MetadataOf) > 0 {
		dst.MetadataOf = dst.MetadataOf[:out]
	}
	return true
}
