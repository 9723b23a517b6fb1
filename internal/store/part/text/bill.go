package text

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Ledger is told which pages a query would read. Many goroutines use it at once.
type Ledger interface {
	// May notes a page that the query may read, and Must one that it reads unless it fails. If overlaps is set,
	// it reads the page because the times of its rows overlap others.
	May(a file.Addr)
	Must(a file.Addr, overlaps bool)
	// MayTwice notes a page of lines of which the query may read the end, and later the whole.
	MayTwice(a file.Addr)
}

// Estimate lists the chunks of series as a [Cursor] does, and tells a ledger which pages a query would read.
// It reads index pages only. It is used by one goroutine, and its pages by many.
type Estimate struct {
	req    *model.Request
	order  uint64
	ledger Ledger
	cut    bool // rows are deleted, so every chunk may be read to count what is left of it
	pages  file.Walk
	page   *billedPage
	filter file.Addr // the page of filters that was noted last
}

// NewEstimate returns an estimate of a request for the series of the ranks. cut says that rows of the part
// are deleted. It reads the index pages, and prefetches the pages that say how filters are divided.
func NewEstimate(ctx context.Context, r *file.Reader, ranks file.Ranks, req *model.Request, order uint64, cut bool, l Ledger) (*Estimate, error) {
	b := &Estimate{req: req, order: order, ledger: l, cut: cut, pages: file.NewWalk(ctx, r, Section)}
	var filters []file.Addr
	err := eachUnit(&b.pages, ranks, req.Range, func(e *file.Entry) {
		if b.filters(e) && (len(filters) == 0 || filters[len(filters)-1] != e.Text.Filter) {
			filters = append(filters, e.Text.Filter)
		}
	})
	if f, ok := r.Pages().(file.Fetcher); ok && err == nil && len(filters) > 0 {
		f.Fetch(ctx, filters)
	}
	return b, err
}

// filters reports whether the query asks the filter of a unit.
func (b *Estimate) filters(e *file.Entry) bool {
	return b.req.TextFilter != nil && e.Text.Filter.Len > 0
}

// Chunks appends the chunks of a series that may have rows in the request's range. The chunks of a unit that
// several series share have the times of the whole unit, since its page of rows is not read.
func (b *Estimate) Chunks(ctx context.Context, rank uint32, dst []model.TextChunk) ([]model.TextChunk, error) {
	b.pages.Ctx = ctx
	e, err := b.pages.Find(rank)
	for ; err == nil && e != nil && e.Rank0 <= rank; e, err = b.pages.Following() {
		if e.Times.Overlaps(b.req.Range) {
			if err = b.enter(ctx, e); err != nil {
				return dst, err
			}
			c := model.TextChunk{TimeRange: e.Times, Rows: int(e.Rows), Bytes: int64(e.Text.Bytes), Order: b.order, Page: b.page}
			if e.Ranks > 1 {
				c.Index, c.Rows, c.Bytes = int(rank-e.Rank0), 1, 0
			}
			dst = append(dst, c)
		}
		if e.Last() > rank {
			break
		}
	}
	return dst, err
}

// enter makes the page of a unit, and notes what a cursor reads of the unit to list its chunks.
func (b *Estimate) enter(ctx context.Context, e *file.Entry) error {
	if b.page != nil && b.page.e.Addr == e.Addr {
		return nil
	}
	b.page = &billedPage{e: *e, ledger: b.ledger, uncertain: e.Ranks > 1 || b.filters(e) || b.req.Cost.Bill.EndsEarly()}
	if b.filters(e) && b.filter != e.Text.Filter {
		if err := b.noteFilter(ctx, e.Text.Filter); err != nil {
			return err
		}
		b.filter = e.Text.Filter
	}
	if e.Ranks > 1 {
		b.req.Cost.Bill.Blur()
	}
	if e.Ranks > 1 || b.cut {
		b.page.note(false)
	}
	return nil
}

// noteFilter notes a page of filters with all its slices. The page says how many there are, so it is read.
func (b *Estimate) noteFilter(ctx context.Context, a file.Addr) error {
	slices, err := sliceAddrs(ctx, b.pages.Reader.Pages(), a)
	b.ledger.May(a)
	for _, s := range slices {
		b.ledger.May(s)
	}
	return err
}

// billedPage is a unit of text in a query that is not run. It has no rows.
type billedPage struct {
	e      file.Entry
	ledger Ledger
	// uncertain says that the unit may not be read: its times are those of several series, a filter may rule it
	// out, or the query may end before it.
	uncertain bool
}

// note notes the page of rows, and that of lines: what a query reads of a unit may depend on the rows. After
// their times alone it may want their lines.
func (p *billedPage) note(end bool) {
	p.ledger.May(p.e.Addr)
	if a := p.e.Text.Lines; a.Len > 0 {
		if p.ledger.May(a); end {
			p.ledger.MayTwice(a)
		}
	}
}

// Skip returns false: the filter is not asked.
func (p *billedPage) Skip(context.Context) (bool, error) { return false, nil }

// ReadText notes the pages of the unit, and returns no rows.
func (p *billedPage) ReadText(_ context.Context, _ int, want model.TextWant, dst *model.TextRows) error {
	dst.Reset()
	end := want&model.WantNewest != 0
	p.note(end)
	if p.uncertain {
		return nil
	}
	// A query that wants no lines counts most units without reading them.
	lines := want&model.WantLines != 0
	p.ledger.Must(p.e.Addr, !lines)
	if a := p.e.Text.Lines; lines && !end && a.Len > 0 {
		p.ledger.Must(a, false)
	}
	return nil
}

// Release has nothing to give up.
func (p *billedPage) Release() {}
