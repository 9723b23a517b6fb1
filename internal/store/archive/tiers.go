package archive

import (
	"context"
	"encoding/binary"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// tiers is the cache in memory as one query asks it. The secondary tier learns which pages the query finds in
// memory, so that it keeps what several queries want.
type tiers struct {
	ledger.View
	secondary cache.Secondary // nil: none
}

// Get is [part.Cache.Get].
func (t *tiers) Get(ctx context.Context, k cache.Key, load func(context.Context) ([]byte, error)) (value []byte, hit bool, err error) {
	value, hit, first, err := t.Ask(ctx, k, load)
	if first && t.secondary != nil {
		t.secondary.Use(t.StoredKey(k.Object, k.Off), t.By())
	}
	return value, hit, err
}

// versionOf tells the object of a block from any other that may have had its name before this process began:
// in another bucket, or in the same one before it was restored from a backup.
func (a *Archive) versionOf(b *catalog.Block) (d cache.Digest) {
	binary.LittleEndian.PutUint64(d[:], uint64(b.Created)^uint64(a.o.Seed))
	binary.LittleEndian.PutUint64(d[8:], uint64(b.Bytes))
	return d
}

// storedKey names a page in the secondary tier.
func (p *pages) storedKey(off int64) cache.Key {
	return p.tiers.StoredKey(p.object, off)
}

// endKey names the end of the object, which is read when its block is opened.
func (p *pages) endKey() cache.Key {
	return cache.Key{Object: p.object, Kind: cache.End, Digest: p.tiers.Version}
}

// Has reports whether a page is in memory or in the secondary tier.
func (p *pages) Has(a part.Addr) bool {
	return p.CachedPages.Has(a) || p.a.o.Secondary != nil && p.a.o.Secondary.Has(p.storedKey(a.Off))
}

// kept returns the stored bytes of a page that the secondary tier has.
func (p *pages) kept(ctx context.Context, at part.Addr) cache.Found {
	if p.a.o.Secondary == nil {
		return cache.Found{}
	}
	return ofLength(p.a.o.Secondary.Get(ctx, p.storedKey(at.Off), p.tiers.By()), at)
}

// keptMany returns the stored bytes of several pages that the secondary tier has, in their order.
func (p *pages) keptMany(ctx context.Context, at []part.Addr) []cache.Found {
	keys, found := make([]cache.Key, len(at)), make([]cache.Found, len(at))
	for i, a := range at {
		keys[i] = p.storedKey(a.Off)
	}
	p.a.o.Secondary.GetMany(ctx, keys, p.tiers.By(), found)
	for i, a := range at {
		found[i] = ofLength(found[i], a)
	}
	return found
}

// ofLength makes a page of another length a miss.
func ofLength(page cache.Found, at part.Addr) cache.Found {
	if len(page.Value) != int(at.Len) {
		return cache.Found{}
	}
	return page
}

// keptEnd returns the end of the object if the secondary tier has it.
func (p *pages) keptEnd(ctx context.Context) cache.Found {
	if p.distrust || p.a.o.Secondary == nil {
		return cache.Found{}
	}
	return p.a.o.Secondary.Get(ctx, p.endKey(), p.tiers.By())
}

// count counts a page of the secondary tier.
func (p *pages) count(from cache.Source, at part.Addr, page []byte) {
	if from == cache.Shared {
		p.cost.PagesShared.Add(1)
		p.served(p.a.o.Accounts.Shared, at, page)
	} else {
		p.cost.PagesDisk.Add(1)
		p.served(p.a.o.Accounts.Disk, at, page)
	}
}

// served counts a page that was not in memory.
func (p *pages) served(from *ledger.Tier, at part.Addr, page []byte) {
	if from != nil {
		p.tiers.Served(from, p.storedKey(at.Off).Hash(), len(page), int(at.Len))
	}
}

// offer gives a value that was read from the bucket to the secondary tier.
func (p *pages) offer(k cache.Key, value []byte) {
	if p.a.o.Secondary != nil {
		p.a.o.Secondary.Offer(k, p.tiers.By(), value)
	}
}
