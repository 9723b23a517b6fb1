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
	present := 0
	from, to := int32(0), int32(0)
	for step, first := range c.of.first {
		last := c.of.last[step]
		if last < first {
			continue
		}
		for ; to <= last; to++ {
			if n := c.find(to); n != nil {
				sum += *n
				present++
			}
		}
		for ; from < first; from++ {
			if n := c.find(from); n != nil {
				sum -= *n
				present--
			}
		}
		if present > 0 {
			give(step, float64(sum)/c.divisor)
		}
	}
}
