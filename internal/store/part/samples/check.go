package samples

import (
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// CheckSampleTimes verifies what the index says about pages of samples.
func CheckSampleTimes(c *file.Checking) error { return checkTimes(c, Section, &sampleDir{}) }

// CheckExemplarTimes verifies what the index says about pages of exemplars.
func CheckExemplarTimes(c *file.Checking) error {
	return checkTimes(c, ExemplarSection, &exemplarDir{})
}

// checkTimes verifies the rows and times that the index gives for pages of rows, since readers skip pages by
// them.
func checkTimes(c *file.Checking, s *file.Section, dir rowDir) error {
	for i := range c.Entries[s.Number] {
		e := &c.Entries[s.Number][i]
		payload, err := c.Reader.Page(c.Ctx, e.Addr)
		if err != nil {
			return err
		}
		if err := dir.decode(payload); err != nil {
			return file.AtPage(e.Addr, err)
		}
		times, rows, err := dir.extent()
		if err != nil {
			return file.AtPage(e.Addr, err)
		}
		if times != e.Times || rows != e.Rows {
			return file.AtPage(e.Addr, column.Corrupt("%d rows in %v, the index says %d in %v", rows, times, e.Rows, e.Times))
		}
	}
	return nil
}
