package part

import (
	"context"
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// rowCursors keeps the memory of closed cursors, that of a decoded page: a query for one long series in ten parts takes a fifth less
// CPU.
var rowCursors = sync.Pool{New: func() any { return new(RowCursor) }}

// newRowCursor reads the rows of a family within rg by rank. Ascending ranks are cheap; pages without a row in rg are not read.
func newRowCursor(ctx context.Context, r *fileReader, f model.Family, rg model.TimeRange) *RowCursor {
	c := rowCursors.Get().(*RowCursor)
	c.pages = newWalk(ctx, r, pointSection(f))
	c.rg, c.open, c.dir = rg, Addr{}, &c.samples
	if f == model.Exemplars {
		c.dir = &exemplarDir{}
	}
	return c
}

// newStreamCursor reads all rows of a family for a walk over all ranks, or returns nil if there are none. A walk goes on for
// as long as a merge, so it copies what it keeps of pages.
func newStreamCursor(ctx context.Context, r *fileReader, f model.Family) *RowCursor {
	if len(r.Index(pointSection(f))) == 0 {
		return nil
	}
	c := newRowCursor(ctx, r, f, model.TimeRange{Min: -1 << 63, Max: 1<<63 - 1})
	c.pages.copies = true
	return c
}

// pointSection returns the section of a family's rows.
func pointSection(f model.Family) *section {
	if f == model.Exemplars {
		return exemplarSection
	}
	return sampleSection
}

// RowCursor reads the rows of one family, of one series after the other.
type RowCursor struct {
	pages   rankWalk
	rg      model.TimeRange
	dir     rowDir
	samples sampleDir
	// open is the page that dir holds; an address with no length means none.
	open Addr
}

// Close gives up the memory of the cursor. It must not be used any more. A cursor that is not closed is left to the collector.
func (c *RowCursor) Close() {
	c.samples.forget()
	c.pages, c.dir = rankWalk{}, nil
	rowCursors.Put(c)
}

// rowDir is the decoded directory of a page of rows.
type rowDir interface {
	open(payload []byte) error
	span() (rank0 uint32, ranks, rows int)
	// extent counts the rows and bounds their times, by looking at each.
	extent() (model.TimeRange, uint64, error)
	// has reports whether the i-th rank of the page has rows in rg.
	has(i int, rg model.TimeRange) (bool, error)
	// appendRows appends them, in the order of the format.
	appendRows(i int, rg model.TimeRange, dst *model.Rows) error
}

// Has reports whether a series has rows within the cursor's range. It decodes no values.
func (c *RowCursor) Has(rank uint32) (bool, error) {
	e, err := c.pages.find(rank)
	for ; err == nil && e != nil && e.rank0 <= rank; e, err = c.pages.following() {
		if e.times.Overlaps(c.rg) {
			if err := c.load(e); err != nil {
				return false, err
			}
			if has, err := c.dir.has(int(rank-e.rank0), c.rg); has || err != nil {
				if err != nil {
					err = atPage(e.addr, err)
				}
				return has, err
			}
		}
		if e.last() > rank {
			break
		}
	}
	return false, err
}

// AppendRows appends the rows of a series within the cursor's range, in the order of the format.
func (c *RowCursor) AppendRows(rank uint32, dst *model.Rows) error {
	e, err := c.pages.find(rank)
	begin := len(dst.Times)
	for ; err == nil && e != nil && e.rank0 <= rank; e, err = c.pages.following() {
		if e.times.Overlaps(c.rg) {
			if err := c.load(e); err != nil {
				return err
			}
			before := len(dst.Times)
			if err := c.dir.appendRows(int(rank-e.rank0), c.rg, dst); err != nil {
				return atPage(e.addr, err)
			}
			if before > begin && len(dst.Times) > before && !c.mayFollow(dst.Times[before-1], dst.Times[before]) {
				return atPage(e.addr, corrupt("page of %s goes on before the one that it follows ends", c.pages.section))
			}
		}
		if e.last() > rank {
			return nil
		}
	}
	return err
}

func (c *RowCursor) load(e *pageEntry) error {
	if c.open == e.addr && e.addr.Len != 0 {
		return nil
	}
	c.open = Addr{}
	payload, err := c.pages.load(e)
	if err != nil {
		return err
	}
	if err := c.dir.open(payload); err != nil {
		return atPage(e.addr, err)
	}
	if rank0, ranks, rows := c.dir.span(); rank0 != e.rank0 || uint32(ranks) != e.ranks || uint64(rows) != e.rows {
		return atPage(e.addr, corrupt("page of %s is not the one that the index names", c.pages.section))
	}
	c.open = e.addr
	return nil
}

// mayFollow reports whether rows of one series may have these times, one after the other: samples have one row a time.
func (c *RowCursor) mayFollow(before, after int64) bool {
	return before < after || before == after && c.pages.section != sampleSection
}

// appendNext is AppendRows for a walk over all ranks, one after the other, without a range.
func (c *RowCursor) appendNext(ctx context.Context, rank uint32, dst *model.Rows) error {
	c.pages.ctx = ctx
	d := &c.samples
	if c.dir == rowDir(d) && c.open.Len > 0 && rank >= d.rank0 && rank-d.rank0 < uint32(len(d.counts))-1 {
		// It is not the last rank of the page, so all its rows are here.
		if err := d.appendRows(int(rank-d.rank0), c.rg, dst); err != nil {
			return atPage(c.open, err)
		}
		return nil
	}
	return c.AppendRows(rank, dst)
}
