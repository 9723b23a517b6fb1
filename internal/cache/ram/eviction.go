package ram

import (
	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
)

// Eviction says how the tier keeps its entries: W-TinyLFU with a window that adapts, by the library otter. It
// is apart from the tier so that the simulator of `shale plan cache` runs it, too.
type Eviction[K comparable, V any] struct {
	// MaxBytes bounds the weights of all entries.
	MaxBytes int64
	// Weigh returns the bytes that an entry takes.
	Weigh func(K, V) uint32
	// Stats counts evictions. It may be nil.
	Stats stats.Recorder
	// Left is called for each entry that leaves, and told whether it leaves for others. It may be nil.
	Left func(k K, v V, evicted bool)
	// Inline does all work in the calls of the cache, so that what an only caller sees does not depend on
	// goroutines.
	Inline bool
}

// New returns an empty cache.
func (e Eviction[K, V]) New() (*otter.Cache[K, V], error) {
	o := otter.Options[K, V]{
		MaximumWeight: uint64(max(e.MaxBytes, 1)), // 1 keeps nothing; otter takes 0 for a missing limit
		Weigher:       e.Weigh,
		StatsRecorder: e.Stats,
	}
	if e.Left != nil {
		o.OnDeletion = func(d otter.DeletionEvent[K, V]) {
			e.Left(d.Key, d.Value, d.WasEvicted())
		}
	}
	if e.Inline {
		o.Executor = func(work func()) { work() }
	}
	return otter.New(&o)
}
