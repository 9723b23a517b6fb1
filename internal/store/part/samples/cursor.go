package samples

import (
	"context"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// rowCursors keeps the memory of closed cursors, about a decoded page each, for queries that open many parts.
var rowCursors = sync.Pool{New: func() any { return new(Cursor) }}

// NewCursor reads the rows of a family within rg by rank. Ascending ranks are cheap; pages without a row in
// rg are not read.
func NewCursor(ctx context.Context, r *file.Reader, f model.Family, rg model.TimeRange) *Cursor {
	c := rowCursors.Get().(*Cursor)
	c.pages = file.NewWalk(ctx, r, SectionOf(f))
	c.rg, c.open, c.dir = rg, file.Addr{}, &c.samples
	if f == model.Exemplars {
		c.dir = &exemplarDir{}
	}
	return c
}

// NewStreamCursor reads all rows of a family for a walk over all ranks, or returns nil if there are none. A
// walk goes on for as long as a merge, so it copies what it keeps of pages.
func NewStreamCursor(ctx context.Context, r *file.Reader, f model.Family) *Cursor {
	if len(r.Index(SectionOf(f))) == 0 {
		return nil
	}
	c := NewCursor(ctx, r, f, model.Always())
	c.pages.Copies = true
	return c
}

// SectionOf returns the section of a family's rows.
func SectionOf(f model.Family) *file.Section {
	if f == model.Exemplars {
		return ExemplarSection
	}
	return Section
}

// Cursor reads the rows of one family, of one series after the other.
type Cursor struct {
	pages   file.Walk
	rg      model.TimeRange
	dir     rowDir
	samples sampleDir
	// open is the page that dir holds; an address with no length means none.
	open file.Addr
}

// Close returns the memory of the cursor to the pool. The cursor must not be used any more. The garbage
// collector gets a cursor that is not closed.
func (c *Cursor) Close() {
	c.samples.forget()
	c.pages, c.dir = file.Walk{}, nil
	rowCursors.Put(c)
}

// rowDir is the decoded directory of a page of rows.
type rowDir interface {
	decode(payload []byte) error
	span() (rank0 uint32, ranks, rows int)
	// extent counts the rows and returns the range of their times. It decodes all of them.
	extent() (model.TimeRange, uint64, error)
	// has reports whether the i-th rank of the page has rows in rg.
	has(i int, rg model.TimeRange) (bool, error)
	// appendRows appends them, in the order of the format.
	appendRows(i int, rg model.TimeRange, dst *model.Rows) error
}

// Has reports whether a series has rows within the cursor's range. It decodes no values.
func (c *Cursor) Has(rank uint32) (bool, error) {
	e, err := c.pages.Find(rank)
	for ; err == nil && e != nil && e.Rank0 <= rank; e, err = c.pages.Following() {
		if e.Times.Overlaps(c.rg) {
			if err := c.load(e); err != nil {
				return false, err
			}
			if has, err := c.dir.has(int(rank-e.Rank0), c.rg); has || err != nil {
				if err != nil {
					err = file.AtPage(e.Addr, err)
				}
				return has, err
			}
		}
		if e.Last() > rank {
			break
		}
	}
	return false, err
}

// AppendRows appends the rows of a series within the cursor's range, in the order of the format.
func (c *Cursor) AppendRows(rank uint32, dst *model.Rows) error {
	e, err := c.pages.Find(rank)
	begin := len(dst.Times)
	for ; err == nil && e != nil && e.Rank0 <= rank; e, err = c.pages.Following() {
		if e.Times.Overlaps(c.rg) {
			if err := c.load(e); err != nil {
				return err
			}
			before := len(dst.Times)
			if err := c.dir.appendRows(int(rank-e.Rank0), c.rg, dst); err != nil {
				return file.AtPage(e.Addr, err)
			}
			if before > begin && len(dst.Times) > before && !c.mayFollow(dst.Times[before-1], dst.Times[before]) {
				return file.AtPage(e.Addr, column.Corrupt("page of %s goes on before the one that it follows ends", c.pages.Section))
			}
		}
		if e.Last() > rank {
			return nil
		}
	}
	return err
}

func (c *Cursor) load(e *file.Entry) error {
	if c.open == e.Addr && e.Addr.Len != 0 {
		return nil
	}
	c.open = file.Addr{}
	payload, err := c.pages.Load(e)
	if err != nil {
		return err
	}
	if err := c.dir.decode(payload); err != nil {
		return file.AtPage(e.Addr, err)
	}
	if rank0, ranks, rows := c.dir.span(); rank0 != e.Rank0 || uint32(ranks) != e.Ranks || uint64(rows) != e.Rows {
		return file.AtPage(e.Addr, column.Corrupt("page of %s is not the one that the index names", c.pages.Section))
	}
	c.open = e.Addr
	return nil
}

// mayFollow reports whether rows of one series may have these times, one after the other: samples have one
// row a time.
func (c *Cursor) mayFollow(before, after int64) bool {
	return before < after || before == after && c.pages.Section != Section
}

// AppendNext is AppendRows for a walk over all ranks, one after the other, without a range.
func (c *Cursor) AppendNext(ctx context.Context, rank uint32, dst *model.Rows) error {
	c.pages.Ctx = ctx
	d := &c.samples
	if c.dir == rowDir(d) && c.open.Len > 0 && rank >= d.rank0 && rank-d.rank0 < uint32(len(d.counts))-1 {
		// It is not the last rank of the page, so all its rows are here.
		if err := d.appendRows(int(rank-d.rank0), c.rg, dst); err != nil {
			return file.AtPage(c.open, err)
		}
		return nil
	}
	return c.AppendRows(rank, dst)
}
