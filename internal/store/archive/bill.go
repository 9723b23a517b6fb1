package archive

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// Bill adds to the bill of the request what [Archive.Select] and its cursors would read. It opens the blocks
// and selects their series, which a query does in any case, and reads index pages. A coarse bill reads
// nothing.
func (a *Archive) Bill(ctx context.Context, req *model.Request) error {
	opened, err := a.estimateAll(ctx, req, func(e *estimate) error { return e.notePages(ctx) })
	for _, e := range opened {
		_ = e.Close() // giving back does not fail
	}
	return err
}

// BillText returns cursors over the series of a request for lines. Their chunks have no rows, and add to the
// bill of the request the pages that are asked for. The cursors of a coarse bill have no series.
func (a *Archive) BillText(ctx context.Context, req *model.Request) ([]model.TextCursor, error) {
	text := *req
	text.Family = model.Text
	opened, err := a.estimateAll(ctx, &text, func(e *estimate) error {
		if err := e.notePages(ctx); err != nil {
			return err
		}
		// Keys tell which chunks of several blocks are of one series and overlap, so they are read.
		if err := e.from.PrefetchSeries(ctx, e.ranks, false, 0, text.Range); err != nil {
			return err
		}
		e.keys = e.from.SeriesAt(ctx, text.Tenant, false)
		var err error
		e.text, err = e.from.EstimateText(ctx, e.ranks, &text, e.block.Order(), e.cut, e)
		return err
	})
	slices.SortStableFunc(opened, func(a, b *estimate) int { return cmp.Compare(a.block.OrderLo, b.block.OrderLo) })
	cursors := make([]model.TextCursor, 0, len(opened))
	for _, e := range opened {
		cursors = append(cursors, e)
	}
	return cursors, err
}

// estimateAll opens the blocks of a request, or none if one of them fails.
func (a *Archive) estimateAll(ctx context.Context, req *model.Request, begin func(*estimate) error) ([]*estimate, error) {
	if err := a.o.Catalog.Missing(req.Range, req.Signal, req.Tenant); err != nil {
		return nil, err
	}
	blocks := a.blocks(req)
	if req.Cost.Bill.Coarse {
		for i := range blocks {
			req.Cost.Bill.AddCoarse(blocks[i].ID, blocks[i].Bytes)
		}
		return nil, nil
	}
	// A small block is not read whole: its bytes would be dropped, and read again by the query.
	ends := *a
	ends.reach.whole = 0
	opened, l := make([]*estimate, len(blocks)), newLanes()
	var g errgroup.Group
	g.SetLimit(openAtOnce)
	for i := range blocks {
		g.Go(model.Catching(func() (err error) {
			b := &blocks[i]
			req.Cost.Bill.Add(&model.BillItem{Block: b.ID, Most: a.wholeBlock(b)})
			if opened[i], err = ends.estimate(ctx, b, requestOf(req, b), l, begin); err != nil {
				return a.damage.named(b, err)
			}
			return nil
		}))
	}
	err := g.Wait()
	opened = slices.DeleteFunc(opened, func(e *estimate) bool { return e == nil })
	if err == nil {
		return opened, nil
	}
	for _, e := range opened {
		_ = e.Close() // giving back does not fail
	}
	return nil, err
}

// wholeBlock returns what a query reads besides its pages if it is the first to open a small block: all of
// it, of which an estimate reads the end.
func (a *Archive) wholeBlock(b *catalog.Block) (r model.Reads) {
	if b.Bytes <= a.reach.whole && a.readers.get(b.ID) == nil {
		r.Bytes = max(0, b.Bytes-a.reach.tail)
	}
	return r
}

// estimate is what a request would read of one block. For lines it is a cursor as well.
type estimate struct {
	a      *Archive
	block  *catalog.Block
	req    *model.Request
	from   *block
	held   int64 // bytes of quota to give back
	ranks  part.Ranks
	at     int
	labels bool // labels are read
	cut    bool // rows of the block may be hidden
	text   *part.TextEstimate
	keys   *part.SeriesCursor
	err    error

	mu    sync.Mutex
	noted map[int64]notedPage // by offset
}

// notedPage is a page that the request may read.
type notedPage struct {
	len                   uint32
	must, overlaps, twice bool
}

// notedPageBytes is about the memory of a noted page in the map.
const notedPageBytes = 48

// estimate opens a block for a request, or returns nil if the block has nothing that the request wants.
func (a *Archive) estimate(ctx context.Context, b *catalog.Block, req *model.Request, l lanes, begin func(*estimate) error) (_ *estimate, err error) {
	e := &estimate{a: a, block: b, req: req, at: -1, noted: make(map[int64]notedPage)}
	defer func() {
		if err != nil {
			_ = e.Close() // giving back does not fail
		}
	}()
	if err := e.hold(cursorCharge(b)); err != nil {
		return nil, err
	}
	if e.from, err = a.openBlock(ctx, b, req, l); err != nil {
		return nil, err
	}
	if err := e.hold(e.from.FooterBytes()); err != nil {
		return nil, err
	}
	if !hasRows(e.from.Reader, req) {
		return nil, e.Close()
	}
	e.cut = len(a.o.Catalog.Deletions(b, req.Tenant)) > 0 || horizonOf(b, req) != nil
	e.labels = !req.Unlabelled || e.cut
	if e.ranks, err = e.from.Charged(e.hold).Select(ctx, req.Tenant, req.Matchers); err != nil {
		return nil, err
	}
	if err := e.from.FetchMasks(ctx, e.ranks, req.Range); err != nil {
		return nil, err
	}
	if e.ranks, err = e.from.Active(ctx, e.ranks, req.Range); err != nil {
		return nil, err
	}
	if err = begin(e); err != nil {
		return nil, err
	}
	e.from.pages.tail = nil
	return e, nil
}

func (e *estimate) hold(n int64) error {
	if err := e.req.Quota.TakeBytes(n); err != nil {
		return err
	}
	e.held += n
	return nil
}

// notePages notes the pages that a cursor announces when it is opened.
func (e *estimate) notePages(ctx context.Context) error {
	family := max(e.req.Family, model.Samples)
	if e.req.LabelsOnly || family == model.Text {
		family = 0
	}
	pages, err := e.from.SeriesPages(ctx, e.ranks, e.labels, family, e.req.Range)
	if err != nil {
		return err
	}
	if err := e.hold(notedPageBytes * int64(len(pages))); err != nil {
		return err
	}
	for _, p := range pages {
		// A query for labels alone may stop at a limit.
		if e.May(p); !e.req.LabelsOnly && family != 0 {
			e.Must(p, false)
		}
	}
	return nil
}

// May is [part.Ledger.May].
func (e *estimate) May(p part.Addr) { e.note(p, func(*notedPage) {}) }

// Must is [part.Ledger.Must].
func (e *estimate) Must(p part.Addr, overlaps bool) {
	e.note(p, func(n *notedPage) {
		n.must, n.overlaps = n.must || !overlaps, n.overlaps || overlaps
	})
}

// MayTwice is [part.Ledger.MayTwice].
func (e *estimate) MayTwice(p part.Addr) { e.note(p, func(n *notedPage) { n.twice = true }) }

func (e *estimate) note(p part.Addr, mark func(*notedPage)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.noted[p.Off]
	n.len = p.Len
	mark(&n)
	e.noted[p.Off] = n
}

// Next moves to the next series.
func (e *estimate) Next(ctx context.Context) bool {
	if e.err == nil {
		e.err = ctx.Err()
	}
	if e.at++; e.err != nil || e.at >= len(e.ranks) {
		return false
	}
	if err := e.keys.Seek(e.ranks[e.at]); err != nil {
		e.err = e.a.damage.named(e.block, err)
		return false
	}
	return true
}

// Key returns the key of the series.
func (e *estimate) Key() model.Key { return e.keys.Key() }

// Labels returns nil: labels are not read.
func (e *estimate) Labels() model.Labels { return nil }

// Chunks appends the chunks of the series.
func (e *estimate) Chunks(ctx context.Context, dst []model.TextChunk) ([]model.TextChunk, error) {
	from := len(dst)
	dst, err := e.text.Chunks(ctx, e.ranks[e.at], dst)
	if err == nil {
		// Each chunk has two or three pages.
		err = e.hold(3 * notedPageBytes * int64(len(dst)-from))
	}
	if err != nil {
		return dst, e.a.damage.named(e.block, err)
	}
	return dst, nil
}

// Err returns the error that ended the walk.
func (e *estimate) Err() error { return e.err }

// Close adds what was noted to the bill, and gives the memory back.
func (e *estimate) Close() error {
	if e.from != nil {
		e.req.Cost.Bill.Add(e.item())
		e.from.close()
	}
	held := e.held
	e.held, e.from, e.ranks = 0, nil, nil
	return e.req.Quota.TakeBytes(-held)
}

// item returns what was noted. A page that is prefetched comes with its neighbours, or by itself if the query
// has no memory to spare, so there may be as many requests as pages. Pages of lines are announced in several
// lists, and the gap before a page may be read with each of them.
func (e *estimate) item() *model.BillItem {
	e.mu.Lock()
	defer e.mu.Unlock()
	reach := &e.a.reach
	it := &model.BillItem{Block: e.block.ID, Gap: reach.gap, Span: reach.span, Pages: int64(len(e.noted))}
	missing := make([]model.StoredRange, 0, len(e.noted))
	for off, n := range e.noted {
		size := int64(n.len)
		if e.from.pages.Has(part.Addr{Off: off, Len: n.len}) {
			it.PagesCached++
			continue
		}
		missing = append(missing, model.StoredRange{Off: off, Len: size})
		it.Most = it.Most.Add(model.Reads{Requests: 1, Bytes: size})
		if n.twice {
			it.Most = it.Most.Add(model.Reads{Requests: 1, Bytes: size})
		}
		switch at := (model.StoredRange{Off: off, Len: size}); {
		case n.must:
			it.Certain = append(it.Certain, at)
		case n.overlaps:
			it.Overlap = append(it.Overlap, at)
		}
	}
	slices.SortFunc(missing, func(a, b model.StoredRange) int { return cmp.Compare(a.Off, b.Off) })
	for i := 1; i < len(missing); i++ {
		before := missing[i-1].Off + missing[i-1].Len
		if e.text != nil {
			before = missing[0].Off + missing[0].Len
			it.Most.Bytes += min(reach.gap, missing[i].Off-before)
		} else if gap := missing[i].Off - before; gap <= reach.gap {
			it.Most.Bytes += gap
		}
	}
	it.Possible = missing
	return it
}
