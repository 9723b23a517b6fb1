package window

// Count is a series of counts, of lines or bytes. They are whole numbers, so that a window slides by adding
// and taking away.
type Count struct {
	track[uint64]
	divisor float64
}

// AddCount adds a count to a cell.
func (c *Count) AddCount(cell int32, n uint64, charge Charge) error {
	p, err := c.at(cell, charge)
	if err == nil {
		*p += n
	}
	return err
}

// Add counts a sample as one.
func (c *Count) Add(cell int32, _ *Sample, charge Charge) error { return c.AddCount(cell, 1, charge) }

// Merge adds the counts of another series.
func (c *Count) Merge(o Series, charge Charge) error {
	return o.(*Count).each(func(cell int32, n *uint64) error { return c.AddCount(cell, *n, charge) })
}

// Values gives the count of each window, divided by what the series was made with.
func (c *Count) Values(give Result) {
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
