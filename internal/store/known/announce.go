package known

import (
	"slices"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// spreadPart is the part of maxAge by which the marks of different series expire earlier. Series that were
// all announced at once, after a start, are then announced again one after the other.
const spreadPart = 4

// unannounced appends to dst the indexes of the keys that are not in the set or whose mark is too old at tick
// now, ascending. No mark older than maxAge ticks counts. It marks nothing.
func (k *Set) unannounced(l *Lookup, tenant uint16, signal model.Signal, keys []model.Key, now uint8, maxAge int, dst []uint32) []uint32 {
	l.byShard(k, tenant, signal, keys)
	first := len(dst)
	for s := range k.shards {
		if order := l.inShard(s); len(order) > 0 {
			dst = k.shards[s].unannounced(l.fps, order, now, maxAge, dst)
		}
	}
	slices.Sort(dst[first:])
	return dst
}

func (s *shard) unannounced(fps []uint64, order []uint32, now uint8, maxAge int, dst []uint32) []uint32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.table
	for len(order) > 0 {
		chunk := order[:min(touchBatch, len(order))]
		order = order[len(chunk):]
		t.touch(fps, chunk)
		for _, i := range chunk {
			at := t.find(fps[i])
			if at < 0 || age(uint8(atomic.LoadUint64(&t.slots[at])), now) > maxAge-spread(fps[i], maxAge) {
				dst = append(dst, i)
			}
		}
	}
	return dst
}

// spread returns how many ticks before the others of its age a mark expires.
func spread(fp uint64, maxAge int) int {
	return int((fp & 0xffff) * uint64(maxAge/spreadPart+1) >> 16)
}

// announce adds keys with the mark of a tick, and renews older marks. It returns how many keys the set had no
// room for.
func (k *Set) announce(l *Lookup, tenant uint16, signal model.Signal, keys []model.Key, tick, now uint8) (noRoomFor int) {
	l.byShard(k, tenant, signal, keys)
	for i := range k.shards {
		order, s := l.inShard(i), &k.shards[i]
		if len(order) == 0 {
			continue
		}
		s.writer.Lock()
		for _, j := range order {
			fp := l.fps[j]
			at := s.table.find(fp)
			if at < 0 {
				if s.add(k, fp, tick, tenant) == NoRoom {
					noRoomFor++
				}
				continue
			}
			if slot := s.table.slots[at]; age(tick, now) < age(uint8(slot), now) {
				atomic.StoreUint64(&s.table.slots[at], slot&^0xff|uint64(tick))
			}
		}
		s.writer.Unlock()
	}
	return noRoomFor
}

// drop takes keys out of the set while lookups go on. It gets the key's lower half back from the slot.
//
// It allocates nothing, so it cannot fail. A key that lies after a slot that was freed may be called new
// from then on, and may then be twice in a table, and in the counts, until the next copy. Both cost an
// announcement at most.
func (k *Set) drop(gone func(tenant uint16, lo uint64) bool, signalOf func(tenant uint16) model.Signal) (dropped int64) {
	for i := range k.shards {
		s := &k.shards[i]
		s.writer.Lock()
		t := s.table
		for at, slot := range t.slots {
			if slot == 0 {
				continue
			}
			tenant := t.tenants[at]
			if !gone(tenant, keyLo(t.fingerprint(at), tenant, signalOf(tenant))) {
				continue
			}
			atomic.StoreUint64(&t.slots[at], 0)
			t.used--
			k.count.Add(-1)
			k.tenants[tenant].Add(-1)
			dropped++
		}
		s.writer.Unlock()
	}
	return dropped
}

// EachKey calls of[tenant], unless it is nil, with the lower half of the key of each series. A slot of a head
// does not tell the signal of its series, so that it is called for both: one half of the two is that of no
// series. A closed set has no series.
func (k *Set) EachKey(of []func(lo uint64)) {
	for i := range k.shards {
		s := &k.shards[i]
		s.writer.Lock()
		if s.table != nil {
			s.table.eachKey(of)
		}
		s.writer.Unlock()
	}
}

func (t *table) eachKey(of []func(lo uint64)) {
	for at := range t.slots {
		if atomic.LoadUint64(&t.slots[at]) == 0 {
			continue
		}
		if tenant := t.tenants[at]; int(tenant) < len(of) && of[tenant] != nil {
			fp := t.fingerprint(at)
			of[tenant](keyLo(fp, tenant, model.Metrics))
			of[tenant](keyLo(fp, tenant, model.Logs))
		}
	}
}

// salt keeps the keys of tenants and signals apart.
func salt(tenant uint16, signal model.Signal) uint64 {
	return (uint64(tenant)<<8 | uint64(signal)) * 0x9e3779b97f4a7c15
}

const (
	mixer   = 0xd6e8feb86659fd93
	unmixer = 0xcfee444d8b59a89b // mixer * unmixer = 1 in 64 bits
)

// keyLo returns the lower half of a key from its fingerprint.
func keyLo(fp uint64, tenant uint16, signal model.Signal) uint64 {
	fp ^= fp >> 32
	fp *= unmixer
	fp ^= fp >> 32
	return fp ^ salt(tenant, signal)
}
