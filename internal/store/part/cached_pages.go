package part

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/text"
)

// Cache is what a part needs of a cache of decoded pages: see [cache.Tier], which every tier is.
type Cache interface {
	// Get returns a value that must not be changed, and whether load was not needed.
	Get(ctx context.Context, k cache.Key, load func(context.Context) ([]byte, error)) (value []byte, hit bool, err error)
	// Peek returns a value if the cache has it.
	Peek(k cache.Key) ([]byte, bool)
	// Has reports whether the cache has a value, without using it.
	Has(k cache.Key) bool
}

// CachedPages are the pages of one object, from a cache or else by a [Fetch]. The cache also keeps ends of
// pages, and lists.
type CachedPages struct {
	cache  Cache
	object string
	fetch  Fetch
	hits   *atomic.Int64
}

var (
	_ Pages            = (*CachedPages)(nil)
	_ text.Ends        = (*CachedPages)(nil)
	_ text.StoredPages = (*CachedPages)(nil)
	_ file.Lists       = (*CachedPages)(nil)
	_ maker            = (*CachedPages)(nil)
)

// NewCachedPages returns the pages of an object, whose name is never used for another. Pages that come from
// the cache are added to hits.
func NewCachedPages(cache Cache, object string, fetch Fetch, hits *atomic.Int64) *CachedPages {
	return &CachedPages{cache, object, fetch, hits}
}

func (p *CachedPages) key(kind cache.Kind, a Addr) cache.Key {
	return cache.Key{Object: p.object, Kind: kind, Off: a.Off}
}

func (p *CachedPages) get(ctx context.Context, kind cache.Kind, a Addr, decode file.Decoder) (value []byte, hit bool, err error) {
	return p.cache.Get(ctx, p.key(kind, a), func(ctx context.Context) ([]byte, error) { return p.fetch(ctx, a, decode) })
}

// Page is [Pages.Page]. A page that the cache has as it is stored is not read a second time.
func (p *CachedPages) Page(ctx context.Context, a Addr) ([]byte, error) {
	page, hit, err := p.cache.Get(ctx, p.key(cache.Page, a), func(ctx context.Context) ([]byte, error) {
		if stored, ok := p.cache.Peek(p.key(cache.Stored, a)); ok {
			p.hits.Add(1)
			return lines.DecodePage(stored)
		}
		return p.fetch(ctx, a, lines.DecodePage)
	})
	if hit {
		p.hits.Add(1)
	}
	return page, err
}

// Has reports whether a page is in the cache, decoded or as it is stored.
func (p *CachedPages) Has(a Addr) bool {
	return p.HasDecoded(a) || p.cache.Has(p.key(cache.Stored, a))
}

// HasDecoded is [text.StoredPages.HasDecoded].
func (p *CachedPages) HasDecoded(a Addr) bool { return p.cache.Has(p.key(cache.Page, a)) }

// Stored is [text.StoredPages.Stored].
func (p *CachedPages) Stored(ctx context.Context, a Addr) ([]byte, error) {
	stored, hit, err := p.get(ctx, cache.Stored, a, undecoded)
	if hit {
		p.hits.Add(1)
	}
	return stored, err
}

// undecoded is a [file.Decoder] that leaves a page as it is stored. A damaged page must not get into the
// cache.
func undecoded(stored []byte) ([]byte, error) { return stored, file.VerifyPage(stored) }

// PageEnd is [text.Ends.PageEnd]. An end in the cache may be longer than this one, or shorter: then the whole
// page is read.
func (p *CachedPages) PageEnd(ctx context.Context, a Addr, t lines.Tail) ([]byte, error) {
	if !p.Has(a) {
		end, hit, err := p.get(ctx, cache.Tail, a, t.Decode)
		if err != nil {
			return nil, err
		}
		if n := len(end) - t.Bytes; n >= 0 {
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
	return t.Of(page)
}

// HasEnd is [text.Ends.HasEnd].
func (p *CachedPages) HasEnd(a Addr) bool { return p.cache.Has(p.key(cache.Tail, a)) || p.Has(a) }

func (p *CachedPages) list(k file.ListKey) cache.Key {
	kind := cache.List
	if k.Off != 0 {
		kind = cache.Verdicts
	}
	return cache.Key{Object: p.object, Kind: kind, Off: k.Off, Digest: k.Query}
}

// List is [file.Lists.List].
func (p *CachedPages) List(ctx context.Context, k file.ListKey, find func(context.Context) ([]byte, error)) ([]byte, error) {
	list, _, err := p.cache.Get(ctx, p.list(k), find)
	return list, err
}

// Kept is [file.Lists.Kept].
func (p *CachedPages) Kept(k file.ListKey) ([]byte, bool) { return p.cache.Peek(p.list(k)) }

// Made keeps what was made of the names of a tenant: see [Names.Made].
func (p *CachedPages) Made(ctx context.Context, tenant string, make func(context.Context) ([]byte, error)) ([]byte, error) {
	k := cache.Key{Object: p.object, Kind: cache.Names, Digest: cache.DigestOf([]byte(tenant))}
	if make == nil {
		value, _ := p.cache.Peek(k)
		return value, nil
	}
	value, _, err := p.cache.Get(ctx, k, make)
	return value, err
}

// Tree returns the tree of names in a page, verified once for as long as the cache keeps it.
func (p *CachedPages) Tree(ctx context.Context, a Addr) ([]byte, error) {
	tree, hit, err := p.get(ctx, cache.Names, a, decodeTree)
	if hit {
		p.hits.Add(1)
	}
	return tree, err
}

// FilePages reads and decodes a page each time it is asked for one. The counter, unless it is nil, counts
// them.
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

// Stored is [text.StoredPages.Stored].
func (f filePages) Stored(ctx context.Context, a file.Addr) ([]byte, error) {
	return f.fetch(ctx, a, undecoded)
}

// HasDecoded is [text.StoredPages.HasDecoded].
func (f filePages) HasDecoded(file.Addr) bool { return false }
