package window

import "github.com/shaledb/shale/internal/read/logql/syntax"

// Count is a series of counts, of lines or bytes. They are whole numbers, so that a window slides by adding
// and taking away.
//
// A query may have a series for each line. So the counts of a few cells are part of the series, and only more
// of them go to pages.
type Count struct {
	track[uint64]
	divisor float64
	few     [fewCells]cellCount
	n       int // of few; paged: the pages have all counts
}

type cellCount struct {
	cell int32
	n    uint64
}

const (
	fewCells = 3
	paged    = -1
)

// NewCounts returns n series without samples. The aggregation must count.
func (a Aggregation) NewCounts(c *Cells, n int) []Count {
	divisor := 1.0
	if a.Op == syntax.Rate || a.Op == syntax.BytesRate {
		divisor = seconds(a.Width)
	}
	counts := make([]Count, n)
	for i := range counts {
		counts[i].of, counts[i].divisor = c, divisor
	}
	return counts
}

// AddCount adds a count to a cell.
func (c *Count) AddCount(cell int32, n uint64, charge Charge) error {
	if c.n != paged {
		for i := range c.few[:c.n] {
			if c.few[i].cell == cell {
				c.few[i].n += n
				return nil
			}
		}
		if c.n < fewCells {
			c.few[c.n] = cellCount{cell, n}
			c.n++
			return nil
		}
		if err := c.toPages(charge); err != nil {
			return err
		}
	}
	p, err := c.at(cell, charge)
	if err == nil {
		*p += n
	}
	return err
}

// toPages moves the counts to pages.
func (c *Count) toPages(charge Charge) error {
	for _, x := range c.few[:c.n] {
		p, err := c.at(x.cell, charge)
		if err != nil {
			return err
		}
		*p = x.n
	}
	c.n = paged
	return nil
}

// Add counts a sample as one.
func (c *Count) Add(cell int32, _ *Sample, charge Charge) error { return c.AddCount(cell, 1, charge) }

// Merge adds the counts of another series.
func (c *Count) Merge(o Series, charge Charge) error {
	from := o.(*Count)
	if from.n != paged {
		for _, x := range from.few[:from.n] {
			if err := c.AddCount(x.cell, x.n, charge); err != nil {
				return err
			}
		}
		return nil
	}
	return from.each(func(cell int32, n *uint64) error { return c.AddCount(cell, *n, charge) })
}

// Values gives the count of each window, divided by what the series was made with.
func (c *Count) Values(give Result) {
	if c.n != paged {
		c.fewValues(give)
		return
	}
	var sum uint64
	from, to := int32(0), int32(0) // the window
	c.windows(func(step int, first, last int32) {
		for cell := c.next(to); cell <= last; cell = c.next(cell + 1) {
			sum += *c.find(cell)
		}
		for cell := c.next(from); cell < first; cell = c.next(cell + 1) {
			sum -= *c.find(cell)
		}
		from, to = first, last+1
		give(step, float64(sum)/c.divisor)
	})
}

// fewValues is Values for counts that are not in pages.
func (c *Count) fewValues(give Result) {
	few := c.few[:c.n]
	var begins [fewCells]int // the first steps that have the cells
	for i := range few {
		begins[i] = c.of.FirstStep(few[i].cell)
	}
	for step := 0; ; step++ {
		next, sum := len(c.of.first), uint64(0)
		for i := range few {
			if at := max(step, begins[i]); at < next && c.of.first[at] <= few[i].cell {
				next = at
			}
		}
		if step = next; step == len(c.of.first) {
			return
		}
		for _, x := range few {
			if c.of.first[step] <= x.cell && x.cell <= c.of.last[step] {
				sum += x.n
			}
		}
		give(step, float64(sum)/c.divisor)
	}
}
