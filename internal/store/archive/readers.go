package archive

import (
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

// reader returns a reader of the block whose pages are counted as the request's.
func (a *Archive) reader(ctx context.Context, b *catalog.Block, req *model.Request) (*part.Reader, error) {
	object := catalog.ObjectName(b.ID)
	mine := &pages{a: a, object: object, cost: req.Cost}
	if r := a.readers.get(b.ID); r != nil {
		return r.Bind(mine), nil
	}
	// What is kept must not count as this request's for ever.
	kept := &pages{a: a, object: object, cost: new(model.Cost)}
	r, err := part.OpenWith(ctx, kept, kept.read, b.Bytes)
	req.Cost.BucketRequests.Add(kept.cost.BucketRequests.Load())
	req.Cost.BytesBucket.Add(kept.cost.BytesBucket.Load())
	if err != nil {
		return nil, err
	}
	if seed := r.Meta().Seed; seed != a.o.Seed {
		return nil, fmt.Errorf("%w: its key seed is %016x and the bucket's %016x", model.ErrCorrupt, uint64(seed), uint64(a.o.Seed))
	}
	a.readers.put(b.ID, r)
	return r.Bind(mine), nil
}

// pages reads the pages of a block for one request.
type pages struct {
	a      *Archive
	object string
	cost   *model.Cost
}

// Page returns a decoded page, from the cache or from the bucket.
func (p *pages) Page(ctx context.Context, at part.Addr) ([]byte, error) {
	page, hit, err := p.a.o.Pages.Page(ctx, p.object, at.Off, func(ctx context.Context) ([]byte, error) {
		stored, err := p.read(ctx, at.Off, int64(at.Len))
		if err != nil {
			return nil, err
		}
		p.cost.PagesBucket.Add(1)
		return part.DecodePage(stored)
	})
	if hit {
		p.cost.PagesRAM.Add(1)
	}
	return page, err
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
