package evict

import (
	"github.com/maypok86/otter/v2"

	"github.com/shaledb/shale/internal/cache/ram"
)

// tinyLFU is the eviction of Shale's tier in memory, on its own.
type tinyLFU struct {
	Ledger
	cache *otter.Cache[uint32, struct{}]
}

func newTinyLFU(in Input) (Cache, error) {
	c := &tinyLFU{Ledger: newLedger(in.Sizes)}
	var err error
	c.cache, err = ram.Eviction[uint32, struct{}]{
		MaxBytes: in.Capacity, Inline: true,
		Weigh: func(key uint32, _ struct{}) uint32 { return max(in.Sizes[key], 1) },
		Left: func(key uint32, _ struct{}, evicted bool) {
			if evicted {
				c.evict(key)
			}
		},
	}.New()
	return c, err
}

func (c *tinyLFU) Has(key uint32) bool {
	_, ok := c.cache.GetEntryQuietly(key)
	return ok
}

func (c *tinyLFU) Get(key, _ uint32) bool {
	_, ok := c.cache.GetIfPresent(key)
	if ok {
		c.read[key] = true
	}
	return ok
}

func (c *tinyLFU) Put(key, _ uint32, _ bool) {
	c.enter(key)
	c.Written += c.size(key)
	c.cache.Set(key, struct{}{})
}

// Resize is [Sampled.Resize].
func (c *tinyLFU) Resize(in Input) { c.cache.SetMaximum(uint64(max(in.Capacity, 1))) }

// Forget is [Sampled.Forget].
func (c *tinyLFU) Forget(key uint32) { c.cache.Invalidate(key) }
