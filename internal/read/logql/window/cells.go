package window

import (
	"math"
	"math/bits"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// Cells are the cells of the windows of a query. They never change.
type Cells struct {
	// bounds are the ends of all windows and what is just before their beginnings, ascending. Stretch i of time
	// is what lies after bounds[i-1], up to and including bounds[i].
	bounds []int64
	cellOf []int32 // the number of the cell that a stretch is, or -1 if no window has it
	// first and last are the cells of each window, both included. Neither decreases. A window beyond all times
	// has none: last < first.
	first, last []int32
	ends        []int32 // the last stretch of each window that has cells
	count       int
	rng         model.TimeRange
}

// NewCells returns the cells of windows that end offset before the times start, start+step and so on, and are
// width long. Windows may reach beyond the least and the greatest time.
func NewCells(start, step int64, count int, width, offset int64) *Cells {
	c := &Cells{
		first: make([]int32, count), last: make([]int32, count), ends: make([]int32, count), rng: model.TimeRange{Min: 1, Max: 0},
	}
	var before, ends []int64
	for i := range count {
		t := start + int64(i)*step
		if v, out := difference(t, offset, width); out == 0 {
			before = append(before, v)
		}
		if v, out := difference(t, offset, 0); out == 0 {
			ends = append(ends, v)
		}
	}
	c.bounds = merged(before, ends)
	c.cellOf = make([]int32, len(c.bounds)+1)
	for i := range c.cellOf {
		c.cellOf[i] = -1
	}
	for i := range count {
		from, to := c.stretches(start+int64(i)*step, width, offset)
		if c.first[i], c.last[i] = int32(c.count), int32(c.count)-1; from > to {
			continue
		}
		for s := from; s <= to; s++ {
			if c.cellOf[s] < 0 {
				c.cellOf[s] = int32(c.count)
				c.count++
			}
		}
		c.first[i], c.last[i], c.ends[i] = c.cellOf[from], c.cellOf[to], int32(to)
		least, most := c.stretch(from), c.stretch(to)
		if c.rng.Min > c.rng.Max {
			c.rng.Min = least.Min
		}
		c.rng.Max = most.Max
	}
	return c
}

// stretches returns the first and the last stretch of the window of a step.
func (c *Cells) stretches(t, width, offset int64) (from, to int) {
	switch begin, out := difference(t, offset, width); {
	case out > 0:
		return 1, 0
	case out == 0:
		from = c.find(begin) + 1
	}
	switch end, out := difference(t, offset, 0); {
	case out < 0:
		return 1, 0
	case out == 0:
		return from, c.find(end)
	}
	return from, len(c.bounds)
}

// find returns the stretch of a time.
func (c *Cells) find(t int64) int {
	return sort.Search(len(c.bounds), func(i int) bool { return c.bounds[i] >= t })
}

func (c *Cells) stretch(i int) model.TimeRange {
	r := model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}
	if i > 0 {
		r.Min = c.bounds[i-1] + 1 // a stretch that begins after the last time is part of no window
	}
	if i < len(c.bounds) {
		r.Max = c.bounds[i]
	}
	return r
}

// Count returns the number of cells, and Steps that of windows.
func (c *Cells) Count() int { return c.count }

// Steps returns the number of windows.
func (c *Cells) Steps() int { return len(c.first) }

// Range returns the times from the beginning of the first window to the end of the last. It is empty, with
// Min above Max, if no window has any time.
func (c *Cells) Range() model.TimeRange { return c.rng }

// FirstStep returns the first window that has a cell.
func (c *Cells) FirstStep(cell int32) int {
	return sort.Search(len(c.last), func(i int) bool { return c.last[i] >= cell })
}

// End returns the last time of the window of a step, which must have cells.
func (c *Cells) End(step int) int64 { return c.stretch(int(c.ends[step])).Max }

// Cursor finds the cells of times that mostly lie near each other. It is used by one goroutine.
type Cursor struct {
	cells *Cells
	at    model.TimeRange // of the stretch of the last time
	cell  int32
}

// NewCursor returns a cursor.
func (c *Cells) NewCursor() Cursor { return Cursor{cells: c, at: model.TimeRange{Min: 1, Max: 0}} }

// Find returns the cell of a time, or -1 if no window has it. Until is the last time of the same cell.
func (c *Cursor) Find(t int64) (cell int32, until int64) {
	if t < c.at.Min || t > c.at.Max {
		s := c.cells.find(t)
		c.at, c.cell = c.cells.stretch(s), c.cells.cellOf[s]
	}
	return c.cell, c.at.Max
}

// difference returns t - a - b, or the sign of what it is if it is beyond all times.
func difference(t, a, b int64) (v int64, out int) {
	lo, borrow := bits.Sub64(uint64(t), uint64(a), 0)
	hi := t>>63 - a>>63 - int64(borrow)
	lo, borrow = bits.Sub64(lo, uint64(b), 0)
	hi -= b>>63 + int64(borrow)
	switch v = int64(lo); {
	case hi == v>>63:
		return v, 0
	case hi < 0:
		return 0, -1
	}
	return 0, 1
}

// merged merges two ascending lists into one without repeats.
func merged(a, b []int64) []int64 {
	out := make([]int64, 0, len(a)+len(b))
	for len(a)+len(b) > 0 {
		var v int64
		if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
			v, a = a[0], a[1:]
		} else {
			v, b = b[0], b[1:]
		}
		if n := len(out); n == 0 || out[n-1] != v {
			out = append(out, v)
		}
	}
	return out
}
