package text

import (
	"context"
	"fmt"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Cursor finds the pages with the lines of series, one series after the other. It is used by one goroutine.
type Cursor struct {
	r        *file.Reader
	req      *model.Request
	order    uint64
	named    func(error) error
	verdicts *Verdicts
	pages    file.Walk

	// at is the last unit; out says that no line of it is wanted, and page is set once it has a chunk.
	at   file.Addr
	out  bool
	page *page
	// dir are the rows of the unit at held, if it has several series and they had to be counted.
	dir  unit
	held file.Addr
}

// NewCursor reads the lines of a request's range by rank: see [Reader.TextAt].
func NewCursor(ctx context.Context, r *file.Reader, req *model.Request, known *Verdicts, order uint64, named func(error) error) *Cursor {
	if known == nil {
		known = newVerdicts(r, newEvaluator(req.TextFilter))
	}
	return &Cursor{
		r: r, req: req, order: order, named: named, verdicts: known, pages: file.NewWalk(ctx, r, Section),
	}
}

// Chunks appends those chunks of a series that may have rows in the request's range, by time.
func (c *Cursor) Chunks(ctx context.Context, rank uint32, dst []model.TextChunk) ([]model.TextChunk, error) {
	if c.verdicts != nil && c.verdicts.allAsked {
		return c.leftChunks(ctx, rank, dst)
	}
	c.pages.Ctx = ctx
	e, err := c.pages.Find(rank)
	for ; err == nil && e != nil && e.Rank0 <= rank; e, err = c.pages.Following() {
		if e.Times.Overlaps(c.req.Range) {
			if dst, err = c.chunk(ctx, e, rank, dst); err != nil {
				return dst, err
			}
		}
		if e.Last() > rank {
			break
		}
	}
	return dst, err
}

// leftChunks is Chunks after all units of the selection have been asked.
func (c *Cursor) leftChunks(ctx context.Context, rank uint32, dst []model.TextChunk) (_ []model.TextChunk, err error) {
	left := c.verdicts.left
	for i := sort.Search(len(left), func(i int) bool { return left[i].Last() >= rank }); i < len(left) && left[i].Rank0 <= rank && err == nil; i++ {
		dst, err = c.chunk(ctx, &left[i], rank, dst)
	}
	return dst, err
}

func (c *Cursor) chunk(ctx context.Context, e *file.Entry, rank uint32, dst []model.TextChunk) ([]model.TextChunk, error) {
	if c.at != e.Addr {
		c.at, c.page = e.Addr, nil
		// Units that an earlier query has ruled out are skipped before a page is made.
		if c.out = c.verdicts != nil && e.Text.Filter.Len > 0 && c.verdicts.add(e.Text.Filter, e.Text.Number); c.out {
			c.req.Cost.TextPages.Add(1)
			c.req.Cost.TextPagesSkipped.Add(1)
		}
	}
	if c.out {
		return dst, nil
	}
	chunk := model.TextChunk{TimeRange: e.Times, Rows: int(e.Rows), Bytes: int64(e.Text.Bytes), Order: c.order}
	if e.Ranks > 1 {
		if err := c.decodeUnit(ctx, e); err != nil {
			return dst, err
		}
		var rows model.TextRows
		chunk.Index = int(rank - e.Rank0)
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
		c.page = &page{r: c.r, e: *e, req: c.req, verdicts: c.verdicts, named: c.named}
		c.req.Cost.TextPages.Add(1)
	}
	chunk.Page = c.page
	return append(dst, chunk), nil
}

// decodeUnit decodes the rows of a page that several series share.
func (c *Cursor) decodeUnit(ctx context.Context, e *file.Entry) error {
	if c.held == e.Addr && e.Addr.Len > 0 {
		return nil
	}
	c.held = file.Addr{}
	payload, err := c.r.Page(ctx, e.Addr)
	if err != nil {
		return fmt.Errorf("part: text: %w", err)
	}
	if err = c.dir.decode(payload); err == nil {
		err = c.dir.checkEntry(e)
	}
	if err != nil {
		return file.AtPage(e.Addr, err)
	}
	c.held = e.Addr
	return nil
}
