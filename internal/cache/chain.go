package cache

import (
	"context"
	"errors"
)

// Chain makes one tier of several, which are asked in turn. What a later tier has is offered to those before
// it, each of which decides whether to keep it. Chain returns nil if there are no tiers.
func Chain(tiers ...Secondary) Secondary {
	switch len(tiers) {
	case 0:
		return nil
	case 1:
		return tiers[0]
	}
	return chain(tiers)
}

type chain []Secondary

// Get is [Secondary.Get].
func (c chain) Get(ctx context.Context, k Key, by Asker) Found {
	for i, t := range c {
		if f := t.Get(ctx, k, by); f.From != Nowhere {
			c[:i].Offer(k, by, f.Value)
			return f
		}
	}
	return Found{}
}

// GetMany is [Secondary.GetMany]. A tier is asked for what none of those before it has.
func (c chain) GetMany(ctx context.Context, keys []Key, by Asker, found []Found) {
	c[0].GetMany(ctx, keys, by, found)
	for i, t := range c[1:] {
		var missing []Key
		var places []int
		for at, f := range found {
			if f.From == Nowhere {
				missing, places = append(missing, keys[at]), append(places, at)
			}
		}
		if len(missing) == 0 {
			return
		}
		more := make([]Found, len(missing))
		t.GetMany(ctx, missing, by, more)
		for at, f := range more {
			if f.From != Nowhere {
				found[places[at]] = f
				c[:i+1].Offer(missing[at], by, f.Value)
			}
		}
	}
}

// Has is [Secondary.Has].
func (c chain) Has(k Key) bool {
	for _, t := range c {
		if t.Has(k) {
			return true
		}
	}
	return false
}

// Offer is [Secondary.Offer].
func (c chain) Offer(k Key, by Asker, value []byte) {
	for _, t := range c {
		t.Offer(k, by, value)
	}
}

// Use is [Secondary.Use].
func (c chain) Use(k Key, by Asker) {
	for _, t := range c {
		t.Use(k, by)
	}
}

// Fresh is [Secondary.Fresh].
func (c chain) Fresh(ctx context.Context, k Key, value []byte) (more bool) {
	for _, t := range c {
		more = t.Fresh(ctx, k, value) || more
	}
	return more
}

// Close is [Secondary.Close].
func (c chain) Close() error {
	var errs []error
	for _, t := range c {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}
