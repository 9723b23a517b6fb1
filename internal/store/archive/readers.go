package archive

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// maxReaderBytes bounds the footers of open blocks. A footer has a few kilobytes, or a megabyte with 10,000
// tenants.
const maxReaderBytes = 16 << 20

// readers keeps open blocks by id. When they exceed the bound, it drops arbitrary ones: reopening a block
// takes one or two requests.
type readers struct {
	mu    sync.Mutex
	open  map[string]*part.Reader
	bytes int64
}

func newReaders() *readers { return &readers{open: make(map[string]*part.Reader)} }

func (rs *readers) get(id string) *part.Reader {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.open[id]
}

func (rs *readers) put(id string, r *part.Reader) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.open[id] != nil {
		return
	}
	for old, reader := range rs.open {
		if rs.bytes+int64(r.FooterBytes()) <= maxReaderBytes {
			break
		}
		rs.bytes -= int64(reader.FooterBytes())
		delete(rs.open, old)
	}
	rs.open[id] = r
	rs.bytes += int64(r.FooterBytes())
}

// block is an open block, bound to one request: its pages count as the request's.
type block struct {
	*part.Reader
	pages *pages
}

// openBlock opens a block. The caller closes it.
func (a *Archive) openBlock(ctx context.Context, b *catalog.Block, req *model.Request, l lanes) (*block, error) {
	mine := a.pagesOf(b, req.Tenant, req.Cost)
	mine.ahead = newAhead(ctx, mine, l, req.Quota)
	if r := a.readers.get(b.ID); r != nil {
		if a.o.Secondary != nil {
			a.o.Secondary.Use(mine.endKey(), mine.tiers.By())
		}
		return &block{r.Bind(mine), mine}, nil
	}
	// The kept reader must not refer to this request, nor to its memory.
	kept := a.pagesOf(b, req.Tenant, new(model.Cost))
	kept.tiers.Asker = mine.tiers.Asker
	open := func() (*part.Reader, error) {
		end := mine.readEnd(b.Bytes)
		defer func() { end = nil }()
		return part.OpenWith(ctx, kept, func(ctx context.Context, off, n int64) ([]byte, error) {
			if end != nil {
				return end(ctx, off, n)
			}
			return kept.read(ctx, off, n)
		}, b.Bytes)
	}
	r, err := open()
	if err != nil && mine.tailFrom != cache.Nowhere {
		mine.tail, mine.tailOff, mine.tailFrom, mine.distrust = nil, 0, cache.Nowhere, true
		r, err = open()
	}
	if err == nil && r.Meta().Seed != a.o.Seed {
		err = fmt.Errorf("%w: expected the key seed %016x of the bucket, got %016x", model.ErrCorrupt, uint64(a.o.Seed), uint64(r.Meta().Seed))
	}
	if err != nil {
		mine.ahead.close()
		return nil, err
	}
	a.readers.put(b.ID, r)
	return &block{r.Bind(mine), mine}, nil
}

// close ends prefetching and gives its memory back.
func (b *block) close() { b.pages.ahead.close() }

// pages reads the pages of a block for one request.
type pages struct {
	*part.CachedPages
	a      *Archive
	object string
	cost   *model.Cost
	tiers  *tiers
	ahead  *ahead
	// tail is the end of the object from tailOff on, while the block is being opened, or the whole object.
	tail    []byte
	tailOff int64
	// tailFrom is the secondary tier that the tail is from, and distrust says that one from it was wrong.
	tailFrom cache.Source
	distrust bool
}

var _ part.Fetcher = (*pages)(nil)

// pagesOf returns the pages of a block for a query of a tenant.
func (a *Archive) pagesOf(b *catalog.Block, tenant string, cost *model.Cost) *pages {
	p := &pages{a: a, object: catalog.ObjectName(b.ID), cost: cost}
	to := &a.o.Accounts
	p.tiers = &tiers{secondary: a.o.Secondary, View: ledger.View{
		Asker: to.Ledger.Asker(tenant, cost.QueryID(), b.Range.Max), Memory: a.o.Pages, Pages: to.Pages, Lists: to.Lists, Version: a.versionOf(b),
	}}
	p.CachedPages = part.NewCachedPages(p.tiers, p.object, p.open, &cost.PagesRAM)
	return p
}

// readEnd reads the end of the object with one request, unless the secondary tier has it, and keeps it for
// the reads that follow.
func (p *pages) readEnd(size int64) part.ReadRange {
	return func(ctx context.Context, off, n int64) ([]byte, error) {
		if reach := &p.a.reach; p.tail == nil && off+n == size && n <= max(reach.tail, reach.whole) {
			if end := p.keptEnd(ctx); int64(len(end.Value)) >= n && int64(len(end.Value)) <= size {
				p.tail, p.tailOff, p.tailFrom = end.Value, size-int64(len(end.Value)), end.From
				return p.tail[int64(len(p.tail))-n:], nil
			}
			if size > reach.whole {
				p.tailOff = max(0, size-max(n, reach.tail))
			}
			tail, err := p.read(ctx, p.tailOff, size-p.tailOff)
			if err != nil {
				return nil, err
			}
			p.offer(p.endKey(), tail)
			p.tail = tail
		}
		if at := off - p.tailOff; p.tail != nil && at >= 0 && at+n <= int64(len(p.tail)) {
			return p.tail[at : at+n], nil
		}
		return p.read(ctx, off, n)
	}
}

func (p *pages) inTail(a part.Addr) bool {
	return p.tail != nil && a.Off >= p.tailOff && a.Off+int64(a.Len) <= p.tailOff+int64(len(p.tail))
}

// Fetch prefetches the pages that are not cached.
func (p *pages) Fetch(_ context.Context, pages []part.Addr) {
	if p.ahead != nil {
		p.ahead.plan(pages)
	}
}

// open reads a page and decodes it. A page of the secondary tier that does not decode is read from the
// bucket.
func (p *pages) open(ctx context.Context, at part.Addr, decode func(stored []byte) ([]byte, error)) ([]byte, error) {
	stored, err := p.stored(ctx, at)
	if err != nil {
		return nil, err
	}
	if stored.From != cache.Nowhere {
		if page, err := decode(stored.Value); err == nil {
			p.count(stored.From, at, page)
			return page, nil
		}
		stored.Value = nil
	}
	if stored.Value == nil {
		if p.ahead != nil {
			ctx = p.ahead.near(ctx, at)
		}
		if stored.Value, err = p.read(ctx, at.Off, int64(at.Len)); err != nil {
			return nil, err
		}
	}
	p.cost.PagesBucket.Add(1)
	page, err := decode(stored.Value)
	if err == nil {
		p.served(p.a.o.Accounts.Bucket, at, page)
		p.offer(p.storedKey(at.Off), stored.Value)
	}
	return page, err
}

// stored returns the stored bytes of a page that has been read, from the bucket (Nowhere) or from the
// secondary tier. It returns a miss without a value if the page is to be read from the bucket.
func (p *pages) stored(ctx context.Context, at part.Addr) (cache.Found, error) {
	if p.inTail(at) {
		return cache.Found{Value: bytes.Clone(p.tail[at.Off-p.tailOff:][:at.Len]), From: p.tailFrom}, nil
	}
	if p.ahead != nil {
		if page, err := p.ahead.take(ctx, at); err != nil || page.Value != nil {
			return page, err
		}
	}
	return p.kept(ctx, at), nil
}

// read fetches bytes of the block.
func (p *pages) read(ctx context.Context, off, n int64) ([]byte, error) {
	if err := p.cost.Ask(n); err != nil {
		return nil, err
	}
	model.ProcessorOf(ctx).Leave()
	began := time.Now()
	b, err := p.a.o.Bucket.GetRange(ctx, p.object, off, n)
	if err != nil {
		return nil, ofBlock(err)
	}
	p.a.o.Accounts.Bucket.Took(time.Since(began), n)
	if int64(len(b)) != n {
		return nil, fmt.Errorf("%w: %s: got %d bytes at offset %d, expected %d", model.ErrCorrupt, p.object, len(b), off, n)
	}
	p.cost.BytesBucket.Add(n)
	return b, nil
}
