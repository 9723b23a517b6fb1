package archive

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// tiers is the cache in memory as one query asks it. The secondary tier learns which pages the query finds in
// memory, so that it keeps what several queries want.
type tiers struct {
	part.Cache
	secondary cache.Secondary
	by        cache.Asker
	version   cache.Digest
}

// Get is [part.Cache.Get].
func (t tiers) Get(ctx context.Context, k cache.Key, load func(context.Context) ([]byte, error)) (value []byte, hit bool, err error) {
	value, hit, err = t.Cache.Get(ctx, k, load)
	if hit && err == nil && !k.Kind.Derived() {
		t.secondary.Use(cache.Key{Object: k.Object, Kind: cache.Stored, Off: k.Off, Digest: t.version}, t.by)
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
	return cache.Key{Object: p.object, Kind: cache.Stored, Off: off, Digest: p.version}
}

// endKey names the end of the object, which is read when its block is opened.
func (p *pages) endKey() cache.Key {
	return cache.Key{Object: p.object, Kind: cache.End, Digest: p.version}
}

// Has reports whether a page is in memory or in the secondary tier.
func (p *pages) Has(a part.Addr) bool {
	return p.CachedPages.Has(a) || p.a.o.Secondary != nil && p.a.o.Secondary.Has(p.storedKey(a.Off))
}

// kept returns the stored bytes of a page from the secondary tier, or nil.
func (p *pages) kept(ctx context.Context, at part.Addr) []byte {
	if p.inTail(at) && p.tailKept {
		return bytes.Clone(p.tail[at.Off-p.tailOff:][:at.Len])
	}
	if stored := p.fromSecondary(ctx, p.storedKey(at.Off)); len(stored) == int(at.Len) {
		return stored
	}
	return nil
}

// keptEnd returns the end of the object from the secondary tier, or nil.
func (p *pages) keptEnd(ctx context.Context) []byte {
	if p.distrust {
		return nil
	}
	return p.fromSecondary(ctx, p.endKey())
}

// fromSecondary returns a value of the secondary tier, or nil.
func (p *pages) fromSecondary(ctx context.Context, k cache.Key) []byte {
	if p.a.o.Secondary == nil {
		return nil
	}
	value, ok := p.a.o.Secondary.Get(ctx, k, p.by)
	if !ok {
		return nil
	}
	return value
}

// offer gives a value that was read from the bucket to the secondary tier.
func (p *pages) offer(k cache.Key, value []byte) {
	if p.a.o.Secondary != nil {
		p.a.o.Secondary.Offer(k, p.by, value)
	}
}
