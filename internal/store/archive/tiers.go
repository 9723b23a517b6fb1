package archive

import (
	"bytes"
	"context"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// tiers is the cache in memory as one query asks it. The secondary tier learns which pages the query finds in
// memory, so that it keeps what several queries want.
type tiers struct {
	part.Cache
	secondary cache.Secondary
	cost      *model.Cost
}

// Get is [part.Cache.Get].
func (t tiers) Get(ctx context.Context, k cache.Key, load func(context.Context) ([]byte, error)) (value []byte, hit bool, err error) {
	value, hit, err = t.Cache.Get(ctx, k, load)
	if hit && err == nil && !k.Kind.Derived() {
		t.secondary.Use(storedKey(k.Object, k.Off), t.cost.QueryID())
	}
	return value, hit, err
}

func storedKey(object string, off int64) cache.Key {
	return cache.Key{Object: object, Kind: cache.Stored, Off: off}
}

// endKey names the end of an object, which is read when its block is opened.
func endKey(object string) cache.Key { return cache.Key{Object: object, Kind: cache.End} }

// Has reports whether a page is in memory or in the secondary tier.
func (p *pages) Has(a part.Addr) bool {
	return p.CachedPages.Has(a) || p.a.o.Secondary != nil && p.a.o.Secondary.Has(storedKey(p.object, a.Off))
}

// kept returns the stored bytes of a page from the secondary tier, or nil.
func (p *pages) kept(ctx context.Context, at part.Addr) []byte {
	if p.inTail(at) && p.tailKept {
		return bytes.Clone(p.tail[at.Off-p.tailOff:][:at.Len])
	}
	if stored := p.fromSecondary(ctx, storedKey(p.object, at.Off)); len(stored) == int(at.Len) {
		return stored
	}
	return nil
}

// keptEnd returns the end of the object from the secondary tier, or nil.
func (p *pages) keptEnd(ctx context.Context) []byte {
	if p.distrust {
		return nil
	}
	return p.fromSecondary(ctx, endKey(p.object))
}

// fromSecondary returns a value of the secondary tier, or nil.
func (p *pages) fromSecondary(ctx context.Context, k cache.Key) []byte {
	if p.a.o.Secondary == nil {
		return nil
	}
	value, ok := p.a.o.Secondary.Get(ctx, k, p.cost.QueryID())
	if !ok {
		return nil
	}
	return value
}

// offer gives a value that was read from the bucket to the secondary tier.
func (p *pages) offer(k cache.Key, value []byte) {
	if p.a.o.Secondary != nil {
		p.a.o.Secondary.Offer(k, p.cost.QueryID(), value)
	}
}
