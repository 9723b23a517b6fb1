package part

func checkSampleTimes(c *checking) error { return checkTimes(c, sampleSection, &sampleDir{}) }

func checkExemplarTimes(c *checking) error { return checkTimes(c, exemplarSection, &exemplarDir{}) }

// checkTimes verifies the rows and times that the index gives for pages of rows, since readers skip pages by them.
func checkTimes(c *checking, s *section, dir rowDir) error {
	for i := range c.entries[s.number] {
		e := &c.entries[s.number][i]
		payload, err := c.r.Page(c.ctx, e.addr)
		if err != nil {
			return err
		}
		if err := dir.open(payload); err != nil {
			return atPage(e.addr, err)
		}
		times, rows, err := dir.extent()
		if err != nil {
			return atPage(e.addr, err)
		}
		if times != e.times || rows != e.rows {
			return atPage(e.addr, corrupt("%d rows in %v, the index says %d in %v", rows, times, e.rows, e.times))
		}
	}
	return nil
}
