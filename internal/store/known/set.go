package known

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// Set is the set of series whose labels are durable. It is safe for concurrent use.
//
// A false "new" costs a duplicate label set that merging removes. A false "known" would lose labels. It takes
// two series that agree in the 64 bits of their fingerprint and in the bits of their shard.
//
// Lookups take the read lock of a shard once per batch and do not wait while a table grows: growing copies
// the table while lookups go on, and only the exchange excludes them. Inserts are serialised per shard.
type Set struct {
	shards  []shard
	maxKeys int64
	// maxGroups is the size up to which the tables of shards grow.
	maxGroups uint64
	count     atomic.Int64
	tick      atomic.Uint32
	tenants   [1 << 16]atomic.Int32 // series of each tenant
}

type shard struct {
	writer sync.Mutex   // held by insert and sweep; before mu
	mu     sync.RWMutex // guards the table against being exchanged
	table  *table
	// mayRetire is set when Retire marks a key, until a sweep has found none that is to leave with the next.
	mayRetire atomic.Bool
}

// LeastBytes is what the smallest set takes.
const LeastBytes = minGroups * groupBytes

// New returns a set that uses at most about maxBytes, and at least LeastBytes.
func New(maxBytes int64) (*Set, error) {
	shards := 64 // fewer for a small set
	for shards > 1 && int64(shards)*LeastBytes > maxBytes/4 {
		shards /= 2
	}
	k := &Set{shards: make([]shard, shards)}
	// While a shard grows, its table exists twice. Of few shards that is much, but a set of one or two has small
	// tables: growing takes less than the rest, and only a sweep at the full size takes all of it.
	groups := (maxBytes - maxBytes/int64(max(shards, 4))*2) / groupBytes
	k.maxGroups = uint64(max(minGroups, groups/int64(shards)-maxDistance))
	k.maxKeys = groups * slotsPerGroup * loadPercent / skewPercent
	k.tick.Store(1)
	for i := range k.shards {
		t, err := newTable(minGroups)
		if err != nil {
			return nil, err
		}
		k.shards[i].table = t
	}
	return k, nil
}

// Close frees the memory. Of the methods, only Has, EachKey and those that count may still run or come later.
func (k *Set) Close() {
	for i := range k.shards {
		s := &k.shards[i]
		s.writer.Lock()
		s.mu.Lock()
		if s.table != nil {
			freeArena(s.table.arena)
			s.table = nil
		}
		s.mu.Unlock()
		s.writer.Unlock()
	}
}

// fingerprint spreads tenant, signal and key over 64 bits. Other bits of the key pick the shard.
func (k *Set) fingerprint(tenant uint16, signal model.Signal, key model.Key) (fp uint64, shard int) {
	by := salt(tenant, signal)
	fp = key.Lo ^ by
	fp ^= fp >> 32
	fp *= mixer
	fp ^= fp >> 32
	return fp, int((key.Hi ^ by>>48) & uint64(len(k.shards)-1))
}

// Lookup is the memory of resolving one batch.
type Lookup struct {
	fps      []uint64
	shards   []uint8
	order    []uint32
	starts   [65]uint32
	outcomes []Outcome
	touched  uint16
}

// touchBatch is how many lookups are started before the first one is finished, so that their cache misses
// overlap. See BenchmarkKnownHit.
const touchBatch = 32

// Missing appends to dst the indexes of the keys that are not in the set, ascending, and marks the others as
// active.
func (k *Set) Missing(l *Lookup, tenant uint16, signal model.Signal, keys []model.Key, dst []uint32) []uint32 {
	l.byShard(k, tenant, signal, keys)
	first, tick := len(dst), uint64(k.tick.Load())
	for s := range k.shards {
		if order := l.inShard(s); len(order) > 0 {
			dst = k.shards[s].missing(l.fps, order, tick, dst)
		}
	}
	slices.Sort(dst[first:])
	return dst
}

// byShard computes the fingerprints of keys and orders them by shard.
func (l *Lookup) byShard(k *Set, tenant uint16, signal model.Signal, keys []model.Key) {
	n := len(keys)
	if cap(l.fps) < n {
		l.fps, l.shards, l.order = make([]uint64, n), make([]uint8, n), make([]uint32, n)
	}
	l.fps, l.shards, l.order = l.fps[:n], l.shards[:n], l.order[:n]
	clear(l.starts[:])
	for i, key := range keys {
		fp, shard := k.fingerprint(tenant, signal, key)
		l.fps[i], l.shards[i] = fp, uint8(shard)
		l.starts[shard+1]++
	}
	for s := range k.shards {
		l.starts[s+1] += l.starts[s]
	}
	next := l.starts
	for i := range keys {
		s := l.shards[i]
		l.order[next[s]] = uint32(i)
		next[s]++
	}
}

// inShard returns the indexes of the keys of a shard.
func (l *Lookup) inShard(shard int) []uint32 { return l.order[l.starts[shard]:l.starts[shard+1]] }

// touch starts the cache misses of several lookups, so that they overlap.
func (t *table) touch(fps []uint64, order []uint32) (sum uint64) {
	for _, i := range order {
		sum += atomic.LoadUint64(&t.slots[t.home(fps[i])*slotsPerGroup])
	}
	return sum
}

func (s *shard) missing(fps []uint64, order []uint32, tick uint64, dst []uint32) []uint32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.table
	for len(order) > 0 {
		chunk := order[:min(touchBatch, len(order))]
		order = order[len(chunk):]
		t.touch(fps, chunk)
		for _, i := range chunk {
			at := t.find(fps[i])
			if at < 0 {
				dst = append(dst, i)
			} else if slot := atomic.LoadUint64(&t.slots[at]); slot&0xff != tick {
				// After a lost race the slot has the mark of another batch, which is as good.
				atomic.CompareAndSwapUint64(&t.slots[at], slot, slot&^0xff|tick)
			}
		}
	}
	return dst
}

// Has reports whether a key is in the set, and marks nothing.
func (k *Set) Has(tenant uint16, signal model.Signal, key model.Key) bool {
	fp, shard := k.fingerprint(tenant, signal, key)
	s := &k.shards[shard]
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table != nil && s.table.find(fp) >= 0
}

// Len returns the number of series in the set.
func (k *Set) Len() int64 { return k.count.Load() }

// OfTenant returns the number of series of a tenant.
func (k *Set) OfTenant(tenant uint16) int64 { return int64(k.tenants[tenant].Load()) }

// Cap returns the number of series that the set has room for.
func (k *Set) Cap() int64 { return k.maxKeys }

// Bytes returns the memory of the set.
func (k *Set) Bytes() (n int64) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.RLock()
		if s.table != nil {
			n += int64(len(s.table.arena))
		}
		s.mu.RUnlock()
	}
	return n
}
