package ledger

import (
	"context"

	"github.com/shaledb/shale/internal/cache"
)

// View is the tier in memory as one query asks it for values of one object. It counts what the query finds
// there; what loads a value counts where it came from, by [Asker.Served].
type View struct {
	Asker
	Memory cache.Tier
	// Pages is the account of the pages in memory, and Lists that of derived values.
	Pages, Lists *Tier
	// Version is part of the keys of the object's pages in the tiers after memory.
	Version cache.Digest
}

// StoredKey returns the key of a page as all tiers after memory know it.
func (v *View) StoredKey(object string, off int64) cache.Key {
	return cache.Key{Object: object, Kind: cache.Stored, Off: off, Digest: v.Version}
}

// Ask returns a value from memory, or else from load, and whether load was not needed. First says that the
// value was there and that the query asks for it for the first time.
func (v *View) Ask(ctx context.Context, k cache.Key, load func(context.Context) ([]byte, error)) (value []byte, hit, first bool, err error) {
	if k.Kind.Derived() {
		value, hit, err = v.Memory.Get(ctx, k, load)
		if err == nil {
			v.Asked(v.Lists, k.Hash(), len(value), hit)
		}
		return value, hit, false, err
	}
	value, hit, err = v.Memory.Get(ctx, k, load)
	if hit && err == nil {
		first = v.served(k, len(value))
	}
	return value, hit, first, err
}

// Peek returns a value if it is in memory.
func (v *View) Peek(k cache.Key) ([]byte, bool) {
	value, ok := v.Memory.Peek(k)
	if ok && !k.Kind.Derived() {
		v.served(k, len(value))
	}
	return value, ok
}

// Has reports whether a value is in memory, without using it.
func (v *View) Has(k cache.Key) bool { return v.Memory.Has(k) }

// served counts a page that was in memory, and reports whether this is its first touch by the query.
func (v *View) served(k cache.Key, bytes int) bool {
	if v.l == nil {
		return true
	}
	stored := v.StoredKey(k.Object, k.Off)
	return v.Served(v.Pages, stored.Hash(), bytes, 0)
}
