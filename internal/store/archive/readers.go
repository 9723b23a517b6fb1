package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// maxReaderBytes bounds the footers of open blocks: some kilobytes each, and a megabyte with 10,000 tenants.
const maxReaderBytes = 16 << 20

// readers keeps open blocks, by id. When they are too large together it forgets any of them: opening one again takes
// one or two requests.
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
	object := catalog.ObjectName(b.ID)
	mine := &pages{a: a, object: object, ends: object + endsOf, cost: req.Cost}
	mine.ahead = newAhead(ctx, mine, l, req.Quota)
	if r := a.readers.get(b.ID); r != nil {
		return &block{r.Bind(mine), mine}, nil
	}
	// What is kept must not count as this request's for ever, nor hold what it holds.
	kept := &pages{a: a, object: object, ends: mine.ends, cost: new(model.Cost)}
	end := mine.readEnd(b.Bytes)
	r, err := part.OpenWith(ctx, kept, func(ctx context.Context, off, n int64) ([]byte, error) {
		if end != nil {
			return end(ctx, off, n)
		}
		return kept.read(ctx, off, n)
	}, b.Bytes)
	end = nil
	if err == nil && r.Meta().Seed != a.o.Seed {
		err = fmt.Errorf("%w: its key seed is %016x and the bucket's %016x", model.ErrCorrupt, uint64(r.Meta().Seed), uint64(a.o.Seed))
	}
	if err != nil {
		mine.ahead.close()
		return nil, err
	}
	a.readers.put(b.ID, r)
	return &block{r.Bind(mine), mine}, nil
}

// close ends reading ahead and gives back what that holds.
func (b *block) close() { b.pages.ahead.close() }

// pages reads the pages of a block for one request.
type pages struct {
	a      *Archive
	object string
	ends   string // names the ends of its pages
	cost   *model.Cost
	ahead  *ahead
	// tail is the end of the object from tailOff on, as long as the block is being opened, or all of it.
	tail    []byte
	tailOff int64
}

var (
	_ part.Fetcher = (*pages)(nil)
	_ part.Lists   = (*pages)(nil)
	_ part.Ends    = (*pages)(nil)
)

// readEnd reads the end of the object with one request, whatever of it is asked for first, and keeps it.
func (p *pages) readEnd(size int64) part.ReadRange {
	return func(ctx context.Context, off, n int64) ([]byte, error) {
		if reach := &p.a.reach; p.tail == nil && off+n == size && n <= max(reach.tail, reach.whole) {
			if size > reach.whole {
				p.tailOff = max(0, size-max(n, reach.tail))
			}
			tail, err := p.read(ctx, p.tailOff, size-p.tailOff)
			if err != nil {
				return nil, err
			}
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

// Fetch reads ahead what is not cached.
func (p *pages) Fetch(_ context.Context, pages []part.Addr) {
	if p.ahead != nil {
		p.ahead.plan(pages)
	}
}

// listOffset stands in the place of the offset of a page, for lists.
const listOffset = -1

// List keeps what matchers and filters have found beside the pages.
func (p *pages) List(ctx context.Context, key string, find func(context.Context) ([]byte, error)) ([]byte, error) {
	list, _, err := p.a.o.Pages.Page(ctx, p.object+" "+key, listOffset, find)
	return list, err
}

// Kept returns what List has kept.
func (p *pages) Kept(key string) ([]byte, bool) {
	return p.a.o.Pages.Kept(p.object+" "+key, listOffset)
}

// Page returns a decoded page, from the cache or from the bucket.
func (p *pages) Page(ctx context.Context, at part.Addr) ([]byte, error) {
	page, hit, err := p.a.o.Pages.Page(ctx, p.object, at.Off, func(ctx context.Context) ([]byte, error) {
		return p.open(ctx, at, part.DecodePage)
	})
	if hit {
		p.cost.PagesRAM.Add(1)
	}
	return page, err
}

// endsOf stands behind the name of an object, for the ends of its pages.
const endsOf = " end"

// PageEnd returns the end of a page of lines. Ends are kept as pages are, beside these.
func (p *pages) PageEnd(ctx context.Context, at part.Addr, e part.PageEnd) ([]byte, error) {
	cache := p.a.o.Pages
	if !cache.Has(p.object, at.Off) {
		end, hit, err := cache.Page(ctx, p.ends, at.Off, func(ctx context.Context) ([]byte, error) {
			return p.open(ctx, at, func(stored []byte) ([]byte, error) { return part.DecodeEnd(stored, e) })
		})
		if err != nil {
			return nil, err
		}
		if n := len(end) - e.Bytes; n >= 0 {
			if hit {
				p.cost.PagesRAM.Add(1)
			}
			return end[n:], nil
		}
	}
	page, err := p.Page(ctx, at)
	if err != nil {
		return nil, err
	}
	return e.Of(page)
}

// HasEnd reports whether the end of a page of lines, or all of it, is cached.
func (p *pages) HasEnd(at part.Addr) bool {
	return p.a.o.Pages.Has(p.ends, at.Off) || p.a.o.Pages.Has(p.object, at.Off)
}

// open reads a page and decodes it.
func (p *pages) open(ctx context.Context, at part.Addr, decode func(stored []byte) ([]byte, error)) ([]byte, error) {
	stored, err := p.stored(ctx, at)
	if err != nil {
		return nil, err
	}
	p.cost.PagesBucket.Add(1)
	return decode(stored)
}

// stored returns the stored bytes of a page.
func (p *pages) stored(ctx context.Context, at part.Addr) ([]byte, error) {
	if p.inTail(at) {
		return bytes.Clone(p.tail[at.Off-p.tailOff:][:at.Len]), nil
	}
	if p.ahead != nil {
		if stored, err := p.ahead.take(ctx, at); stored != nil || err != nil {
			return stored, err
		}
	}
	return p.read(ctx, at.Off, int64(at.Len))
}

// A read is tried so many times, with pauses that begin with firstPause and grow fourfold.
const (
	tries      = 4
	firstPause = 20 * time.Millisecond
)

// read fetches bytes of the block and tries again while the bucket has a transient error.
func (p *pages) read(ctx context.Context, off, n int64) ([]byte, error) {
	pause := p.a.firstPause
	for try := 1; ; try++ {
		p.cost.BucketRequests.Add(1)
		b, err := p.a.o.Bucket.GetRange(ctx, p.object, off, n)
		if err == nil && int64(len(b)) != n {
			return nil, fmt.Errorf("%w: %s: %d bytes read from %d, should be %d", model.ErrCorrupt, p.object, len(b), off, n)
		}
		if err == nil {
			p.cost.BytesBucket.Add(n)
			return b, nil
		}
		if try == tries || !errors.Is(err, model.ErrTransient) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
			pause *= 4
		}
	}
}
