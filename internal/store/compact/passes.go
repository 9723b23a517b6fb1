package compact

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// An estimate of the memory of a cell while its blocks are written, checked by TestPeak. It covers pages of
// each section and the file buffer, of the shared block and of the block of a big tenant. Each tenant adds a
// directory entry. Each series of the current tenant adds its postings, with the text of labels that no other
// series has (six labels, two of them unique).
const (
	cellBytes       = 1 << 20
	cellTextBytes   = 3 << 20 // of lines, in addition: two pages and the buffers to make them
	cellTenantBytes = 120
	cellSeriesBytes = 300
)

// cellCost adds up the memory of a cell. It is an upper bound: it knows how many series the inputs have, but
// not how many of these are equal. A tighter bound would have to read all keys.
type cellCost struct {
	series, tenants int64
	text            bool // there are lines
}

// count adds the tenants of an input.
func (c *cellCost) count(r model.TimeRange, tenants []part.Tenant) {
	// A big tenant and the last one of the shared block are held together: count the two largest. Their sum
	// over the inputs is at least the sum of any two tenants.
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

// passes divides the outputs into lists that are written together: those of neighbouring cells, as many as
// their costs fit a budget, and at least those of one cell.
func passes(cells []*cellOutput, costs []int64, budget int64) [][]*cellOutput {
	var parted [][]*cellOutput
	begin, sum := 0, int64(0)
	for i := 0; i < len(cells); {
		next, cost := i+1, costs[i]
		for next < len(cells) && !cells[next].begins {
			cost += costs[next]
			next++
		}
		if i > begin && cost > budget-sum {
			parted = append(parted, cells[begin:i])
			begin, sum = i, 0
		}
		sum += cost
		i = next
	}
	return append(parted, cells[begin:])
}

// rangeOfCells is the range of neighbouring cells.
func rangeOfCells(cells []*cellOutput) model.TimeRange {
	return model.TimeRange{Min: cells[0].Min, Max: cells[len(cells)-1].Max}
}

// pass merges the rows of some cells, and writes and uploads the blocks of these cells. It does not open
// inputs without rows in the interval.
func (m *merge) pass(cells []*cellOutput) error {
	m.cells, m.tenant = cells, ""
	r := rangeOfCells(cells)
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

// window returns the size of a window of each of the open inputs.
func (m *merge) window(open int) int64 {
	return min(greatestWindow, m.c.o.MemoryBytes/2/windowsPerInput/int64(open))
}

// checkTimes returns an error of class corrupt unless all rows of a series lie in a range. No pass would read
// a row outside of it, so the row would be lost.
func checkTimes(r model.TimeRange, rows *model.SeriesRows, text part.Text) error {
	outside := func(first, last int64) error {
		return fmt.Errorf("%w: rows from %d to %d, expected %d to %d", model.ErrCorrupt, first, last, r.Min, r.Max)
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
