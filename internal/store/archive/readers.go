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

// maxReaders bounds the open blocks. What an open block holds is its footer, some kilobytes.
const maxReaders = 2048

// readers keeps open blocks, by id. When there are too many it forgets any of them: opening one again takes one or two
// requests.
type readers struct {
	mu   sync.Mutex
	open map[string]*part.Reader
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
	for old := range rs.open {
		if len(rs.open) < maxReaders {
			break
		}
		delete(rs.open, old)
	}
	rs.open[id] = r
}

// reader returns a reader of the block whose pages are counted as the request's.
func (a *Archive) reader(ctx context.Context, b catalog.Block, req *model.Request) (*part.Reader, error) {
	object := catalog.ObjectName(b.ID)
	pages := &pages{a: a, object: object, cost: req.Cost}
	if r := a.readers.get(b.ID); r != nil {
		return r.Bind(pages), nil
	}
	r, err := part.OpenWith(ctx, pages, pages.read, b.Bytes)
	if err != nil {
		return nil, err
	}
	if seed := r.Meta().Seed; seed != a.o.Seed {
		return nil, fmt.Errorf("%w: its key seed is %016x and the bucket's %016x", model.ErrCorrupt, uint64(seed), uint64(a.o.Seed))
	}
	a.readers.put(b.ID, r.Bind(nil)) // not to keep this request's cost
	return r, nil
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
