package part

import (
	"context"
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// rowCursors keeps the memory of closed cursors, that of a decoded page: a query for one long series in ten parts takes a fifth less
// CPU.
var rowCursors = sync.Pool{New: func() any { return new(RowCursor) }}

// RowsAt reads the rows of a family within rg by rank. Ascending ranks are cheap; pages without a row in rg are not read.
func (r *Reader) RowsAt(ctx context.Context, f model.Family, rg model.TimeRange) *RowCursor {
	c := rowCursors.Get().(*RowCursor)
	c.pages = rankWalk{ctx: ctx, r: r, section: sectionOf(f)}
	c.rg, c.open, c.dir = rg, Addr{}, &c.samples
	if f == model.Exemplars {
		c.dir = &exemplarDir{}
	}
	return c
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
					err = at(e, err)
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
				return at(e, err)
			}
			if before > begin && len(dst.Times) > before && !c.pages.section.ascend(dst.Times[before-1], dst.Times[before]) {
				return at(e, corrupt("page of %s goes on before the one that it follows ends", c.pages.section))
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
		return at(e, err)
	}
	if rank0, ranks, rows := c.dir.span(); rank0 != e.rank0 || uint32(ranks) != e.ranks || uint64(rows) != e.rows {
		return at(e, corrupt("page of %s is not the one that the index names", c.pages.section))
	}
	c.open = e.addr
	return nil
}

// RowPages lists, in order, the pages that reading the ranks within rg will need, so that they can be fetched side by side
// beforehand.
func (r *Reader) RowPages(ctx context.Context, f model.Family, ranks Ranks, rg model.TimeRange) ([]Addr, error) {
	return r.rankPages(ctx, nil, sectionOf(f), ranks, &rg)
}
