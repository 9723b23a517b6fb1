package compact

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// What a cell holds while its blocks are being written, about, as measured: pages of each section and the buffer of the
// file, of the block that tenants share and of the one that a big tenant has for itself; a directory entry of each
// tenant; and of each series of the tenant at hand its place in the postings, with the text of labels that no other
// series has (six labels, of which two are unique).
const (
	cellBytes       = 1 << 20
	cellTextBytes   = 3 << 20 // of lines, beside that: two pages and what they are made with
	cellTenantBytes = 120
	cellSeriesBytes = 300
)

// cellCost adds up what a cell will take. Of the inputs it knows how many series they have and not how many of these are
// the same, so it is an upper bound; a tighter one would have to read all keys.
type cellCost struct {
	series, tenants int64
	text            bool // there are lines
}

// count adds the tenants of an input.
func (c *cellCost) count(r model.TimeRange, tenants []part.Tenant) {
	// A big tenant and the last one of the shared block are there at one time: the two greatest. Their sum over the
	// inputs is not below the sum of any two tenants.
	var first, second, n int64
	for i := range tenants {
		t := &tenants[i]
		if !t.Range.Overlaps(r) {
			continue
		}
		n++
		c.text = c.text || t.Text > 0
		if s := int64(t.Series); s > first {
			first, second = s, first
		} else if s > second {
			second = s
		}
	}
	c.series += first + second
	c.tenants += n
}

// bytes is the estimate, given how many tenants all inputs have together.
func (c *cellCost) bytes(tenants int) int64 {
	n := cellBytes + cellSeriesBytes*c.series + cellTenantBytes*min(c.tenants, int64(tenants))
	if c.text {
		n += cellTextBytes
	}
	return n
}

// passes parts the cells into those that are written at one time: neighbours, as many as stay within a budget by their
// costs, and one at least.
func passes(cells []*cellOutput, costs []int64, budget int64) [][]*cellOutput {
	var parted [][]*cellOutput
	begin, sum := 0, int64(0)
	for i := range cells {
		if i > begin && costs[i] > budget-sum {
			parted = append(parted, cells[begin:i])
			begin, sum = i, 0
		}
		sum += costs[i]
	}
	return append(parted, cells[begin:])
}

// times is the range of neighbouring cells.
func times(cells []*cellOutput) model.TimeRange {
	return model.TimeRange{Min: cells[0].Min, Max: cells[len(cells)-1].Max}
}

// pass merges what the inputs have of some cells, and writes and uploads the blocks of these. Inputs without rows of such
// times are not opened.
func (m *merge) pass(cells []*cellOutput) error {
	m.cells, m.tenant = cells, ""
	r := times(cells)
	var inputs []catalog.Block
	for i := range m.job.inputs {
		if b := &m.job.inputs[i]; b.Range.Overlaps(r) {
			inputs = append(inputs, *b)
		}
	}
	if len(inputs) == 0 {
		return nil
	}
	runs := chains(inputs)
	streams := make([]part.Stream, len(runs))
	for i, blocks := range runs {
		streams[i] = &chain{m: m, blocks: blocks, most: m.window(len(runs))}
	}
	err := part.Merge(m.ctx, streams, m.add, part.MergeOptions{OnCollision: m.c.collided})
	if err == nil {
		err = m.endTenant()
	}
	for _, out := range m.cells {
		if w := out.shared; err == nil && w != nil {
			out.shared = nil
			err = w.finish(m.ctx)
		}
	}
	return err
}

// window returns the size of a window of one of so many inputs that are open at one time.
func (m *merge) window(open int) int64 {
	return min(greatestWindow, m.c.o.MemoryBytes/2/windowsPerInput/int64(open))
}

// within returns an error of class corrupt unless all rows of a series lie in a range. What does not would be in no pass that
// reads the block, and be lost.
func within(r model.TimeRange, rows *model.SeriesRows, text part.Text) error {
	outside := func(first, last int64) error {
		return fmt.Errorf("%w: rows of %d to %d, and it is to have them of %d to %d", model.ErrCorrupt, first, last, r.Min, r.Max)
	}
	for _, f := range model.PointFamilies() {
		times := rows.Family(f).Times
		if n := len(times); n > 0 && (times[0] < r.Min || times[n-1] > r.Max) {
			return outside(times[0], times[n-1])
		}
	}
	if text != nil {
		// Bounds may be those of a page that other series share, which lies in the range as well.
		if times, n := text.Extent(); n > 0 && (times.Min < r.Min || times.Max > r.Max) {
			return outside(times.Min, times.Max)
		}
	}
	return nil
}
