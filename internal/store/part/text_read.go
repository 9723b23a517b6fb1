package part

import (
	"context"
	"fmt"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// TextCursor says in which pages the lines of series are, one series after the other. It is used by one goroutine.
type TextCursor struct {
	r        *fileReader
	req      *model.Request
	order    uint64
	named    func(error) error
	verdicts *TextVerdicts
	pages    rankWalk

	// at is the unit that was looked at last; out says that no line of it is wanted, and page is made of it once it has a chunk.
	at   Addr
	out  bool
	page *textPage
	// dir are the rows of the unit at held, if it has several series and they had to be counted.
	dir  textUnit
	held Addr
}

// newTextCursor reads the lines of a request's range by rank: see [Reader.TextAt].
func newTextCursor(ctx context.Context, r *fileReader, req *model.Request, known *TextVerdicts, order uint64, named func(error) error) *TextCursor {
	if known == nil {
		known = newVerdicts(r, newTextSkip(req.TextFilter))
	}
	return &TextCursor{
		r: r, req: req, order: order, named: named, verdicts: known, pages: newWalk(ctx, r, textSection),
	}
}

// Chunks appends those chunks of a series that may have rows in the request's range, by time.
func (c *TextCursor) Chunks(ctx context.Context, rank uint32, dst []model.TextChunk) ([]model.TextChunk, error) {
	if c.verdicts != nil && c.verdicts.foreseen {
		return c.leftChunks(ctx, rank, dst)
	}
	c.pages.ctx = ctx
	e, err := c.pages.find(rank)
	for ; err == nil && e != nil && e.rank0 <= rank; e, err = c.pages.following() {
		if e.times.Overlaps(c.req.Range) {
			if dst, err = c.chunk(ctx, e, rank, dst); err != nil {
				return dst, err
			}
		}
		if e.last() > rank {
			break
		}
	}
	return dst, err
}

// leftChunks is Chunks where it is known which units are left.
func (c *TextCursor) leftChunks(ctx context.Context, rank uint32, dst []model.TextChunk) (_ []model.TextChunk, err error) {
	left := c.verdicts.left
	for i := sort.Search(len(left), func(i int) bool { return left[i].last() >= rank }); i < len(left) && left[i].rank0 <= rank && err == nil; i++ {
		dst, err = c.chunk(ctx, &left[i], rank, dst)
	}
	return dst, err
}

func (c *TextCursor) chunk(ctx context.Context, e *pageEntry, rank uint32, dst []model.TextChunk) ([]model.TextChunk, error) {
	if c.at != e.addr {
		c.at, c.page = e.addr, nil
		// What an earlier query has found out is left out here, before anything is made of it.
		if c.out = c.verdicts != nil && e.text.filter.Len > 0 && c.verdicts.add(e.text.filter, e.text.number); c.out {
			c.req.Cost.TextPages.Add(1)
			c.req.Cost.TextPagesSkipped.Add(1)
		}
	}
	if c.out {
		return dst, nil
	}
	chunk := model.TextChunk{TimeRange: e.times, Rows: int(e.rows), Bytes: int64(e.text.bytes), Order: c.order}
	if e.ranks > 1 {
		if err := c.open(ctx, e); err != nil {
			return dst, err
		}
		var rows model.TextRows
		chunk.Index = int(rank - e.rank0)
		c.dir.view(chunk.Index, &rows)
		n := len(rows.Times)
		if n == 0 {
			return dst, nil
		}
		chunk.TimeRange = model.TimeRange{Min: rows.Times[0], Max: rows.Times[n-1]}
		chunk.Rows, chunk.Bytes = n, int64(rows.Ends[n-1]-rows.Begin)
		if !chunk.Overlaps(c.req.Range) {
			return dst, nil
		}
	}
	if c.page == nil {
		c.page = &textPage{r: c.r, e: *e, req: c.req, verdicts: c.verdicts, named: c.named}
		c.req.Cost.TextPages.Add(1)
	}
	chunk.Page = c.page
	return append(dst, chunk), nil
}

// open decodes the rows of a page that several series share.
func (c *TextCursor) open(ctx context.Context, e *pageEntry) error {
	if c.held == e.addr && e.addr.Len > 0 {
		return nil
	}
	c.held = Addr{}
	payload, err := c.r.Page(ctx, e.addr)
	if err != nil {
		return fmt.Errorf("part: text: %w", err)
	}
	if err = c.dir.open(payload); err == nil {
		err = c.dir.is(e)
	}
	if err != nil {
		return atPage(e.addr, err)
	}
	c.held = e.addr
	return nil
}
