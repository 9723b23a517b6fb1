package part

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/text"
)

// Cache keeps decoded pages. A page is named by its object and its offset there.
type Cache interface {
	// Page returns a page that must not be changed, and whether fetch was not needed.
	Page(ctx context.Context, object string, off int64, fetch func(context.Context) ([]byte, error)) (page []byte, hit bool, err error)
	// Kept returns a page if it is in the cache.
	Kept(object string, off int64) ([]byte, bool)
	// Has reports whether a page is in the cache, which does not count as a use of it.
	Has(object string, off int64) bool
}

// CachedPages are the pages of one object, from a cache or else by Fetch. Beside them the cache keeps ends of pages and lists.
type CachedPages struct {
	cache  Cache
	object string
	fetch  file.Fetch
	hits   *atomic.Int64
}

var (
	_ file.Pages = (*CachedPages)(nil)
	_ text.Ends  = (*CachedPages)(nil)
	_ file.Lists = (*CachedPages)(nil)
)

// NewCachedPages returns the pages of an object, the name of which is never used for another. Pages that come from the cache are added
// to hits.
func NewCachedPages(cache Cache, object string, fetch file.Fetch, hits *atomic.Int64) *CachedPages {
	return &CachedPages{cache, object, fetch, hits}
}

// Page is [Pages.Page].
func (p *CachedPages) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	page, hit, err := p.get(ctx, p.object, a, lines.DecodePage)
	if hit {
		p.hits.Add(1)
	}
	return page, err
}

func (p *CachedPages) get(ctx context.Context, object string, a file.Addr, decode file.Decoder) (page []byte, hit bool, err error) {
	return p.cache.Page(ctx, object, a.Off, func(ctx context.Context) ([]byte, error) { return p.fetch(ctx, a, decode) })
}

// Has reports whether a page is in the cache.
func (p *CachedPages) Has(a file.Addr) bool { return p.cache.Has(p.object, a.Off) }

// ends names the ends of the object's pages.
func (p *CachedPages) ends() string { return p.object + " end" }

// PageEnd is [Ends.PageEnd]. An end that is kept may be longer than this one, or shorter: then all of the page is read.
func (p *CachedPages) PageEnd(ctx context.Context, a file.Addr, e lines.Tail) ([]byte, error) {
	if !p.Has(a) {
		end, hit, err := p.get(ctx, p.ends(), a, e.Decode)
		if err != nil {
			return nil, err
		}
		if n := len(end) - e.Bytes; n >= 0 {
			if hit {
				p.hits.Add(1)
			}
			return end[n:], nil
		}
	}
	page, err := p.Page(ctx, a)
	if err != nil {
		return nil, err
	}
	return e.Of(page)
}

// HasEnd is [Ends.HasEnd].
func (p *CachedPages) HasEnd(a file.Addr) bool { return p.cache.Has(p.ends(), a.Off) || p.Has(a) }

// listOffset stands in the place of the offset of a page, for lists.
const listOffset = -1

// List is [Lists.List].
func (p *CachedPages) List(ctx context.Context, key string, find func(context.Context) ([]byte, error)) ([]byte, error) {
	list, _, err := p.cache.Page(ctx, p.object+" "+key, listOffset, find)
	return list, err
}

// Kept is [Lists.Kept].
func (p *CachedPages) Kept(key string) ([]byte, bool) {
	return p.cache.Kept(p.object+" "+key, listOffset)
}

// FilePages reads and decodes a page each time it is asked for one. The counter, unless it is nil, counts them.
func FilePages(r io.ReaderAt, c *atomic.Int64) file.Pages { return filePages{file.FetchFile(r, c)} }

type filePages struct{ fetch file.Fetch }

func (f filePages) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	return f.fetch(ctx, a, lines.DecodePage)
}

// PageEnd is [Ends.PageEnd].
func (f filePages) PageEnd(ctx context.Context, a file.Addr, t lines.Tail) ([]byte, error) {
	return f.fetch(ctx, a, t.Decode)
}

// HasEnd is [Ends.HasEnd].
func (f filePages) HasEnd(file.Addr) bool { return false }
