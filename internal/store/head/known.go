package head

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// known is the set of series whose labels are durable: the only memory that Shale holds for every series. It answers
// "is this series new?" for each row that comes in.
//
// A false "new" costs a duplicate label set that merging removes. A false "known" would lose labels; it takes two
// series that agree in 64 bits of fingerprint and in the bits of their shard.
//
// Lookups take a shard's lock for reading once for a batch, and never wait for a table that grows: growing copies beside
// them and only the exchange excludes them. Inserts are serialised for each shard.
type known struct {
	shards  []knownShard
	maxKeys int64
	count   atomic.Int64
	tick    atomic.Uint32
	tenants [1 << 16]atomic.Int32 // series of each tenant
}

type knownShard struct {
	writer sync.Mutex   // held by insert and sweep; before mu
	mu     sync.RWMutex // guards the table against being exchanged
	table  *knownTable
}

// newKnown returns a set that uses at most about maxBytes.
func newKnown(maxBytes int64) (*known, error) {
	shards := 64
	for shards > 4 && int64(shards)*minGroups*groupBytes > maxBytes/4 {
		shards /= 2
	}
	k := &known{shards: make([]knownShard, shards)}
	// A shard that grows exists twice for a moment.
	k.maxKeys = (maxBytes - maxBytes/int64(shards)*2) / groupBytes * slotsPerGroup * loadPercent / 100 * 100 / growPercent
	k.tick.Store(1)
	for i := range k.shards {
		t, err := newKnownTable(minGroups)
		if err != nil {
			return nil, err
		}
		k.shards[i].table = t
	}
	return k, nil
}

func (k *known) close() {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		freeArena(s.table.arena)
		s.table = nil
		s.mu.Unlock()
	}
}

// fingerprint spreads tenant, signal and key over 64 bits, and picks a shard with bits of the key that have no part in
// those.
func (k *known) fingerprint(tenant uint16, signal model.Signal, key model.Key) (fp uint64, shard int) {
	salt := (uint64(tenant)<<8 | uint64(signal)) * 0x9e3779b97f4a7c15
	fp = key.Lo ^ salt
	fp ^= fp >> 32
	fp *= 0xd6e8feb86659fd93
	fp ^= fp >> 32
	return fp, int((key.Hi ^ salt>>48) & uint64(len(k.shards)-1))
}

// lookup is the memory of resolving one batch.
type lookup struct {
	fps    []uint64
	shards []uint8
	order  []uint32
	starts [65]uint32
}

// touchAhead is how many lookups are started before the first is finished, so that their cache misses overlap: three
// times faster than one by one, and more than 32 brings nothing.
const touchAhead = 32

// missing appends to dst the indexes of the keys that are not in the set, ascending, and marks the others as active.
func (k *known) missing(l *lookup, tenant uint16, signal model.Signal, keys []model.Key, dst []uint32) []uint32 {
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
	first, tick := len(dst), uint64(k.tick.Load())
	for s := range k.shards {
		if order := l.order[l.starts[s]:l.starts[s+1]]; len(order) > 0 {
			dst = k.shards[s].missing(l.fps, order, tick, dst)
		}
	}
	slices.Sort(dst[first:])
	return dst
}

func (s *knownShard) missing(fps []uint64, order []uint32, tick uint64, dst []uint32) []uint32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.table
	for len(order) > 0 {
		chunk := order[:min(touchAhead, len(order))]
		order = order[len(chunk):]
		var touched uint64
		for _, i := range chunk {
			touched += atomic.LoadUint64(&t.slots[t.home(fps[i])*slotsPerGroup])
		}
		_ = touched
		for _, i := range chunk {
			at := t.find(fps[i])
			if at < 0 {
				dst = append(dst, i)
			} else if slot := atomic.LoadUint64(&t.slots[at]); slot&0xff != tick {
				// A lost race leaves the slot as somebody else marked it, which is as good.
				atomic.CompareAndSwapUint64(&t.slots[at], slot, slot&^0xff|tick)
			}
		}
	}
	return dst
}

// has reports whether a key is in the set, and marks nothing.
func (k *known) has(tenant uint16, signal model.Signal, key model.Key) bool {
	fp, shard := k.fingerprint(tenant, signal, key)
	s := &k.shards[shard]
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.find(fp) >= 0
}

// insert adds a key and reports whether it was new. Beyond the memory of the set it adds nothing and reports true:
// the series stays "new" and carries its labels with every batch.
func (k *known) insert(tenant uint16, signal model.Signal, key model.Key) bool {
	fp, shard := k.fingerprint(tenant, signal, key)
	s := &k.shards[shard]
	s.writer.Lock()
	defer s.writer.Unlock()
	if s.table.find(fp) >= 0 {
		return false
	}
	if k.count.Load() >= k.maxKeys {
		return true
	}
	for s.table.full() || !s.table.insert(fp, uint8(k.tick.Load()), tenant) {
		if err := s.rebuild(s.table.groups*growPercent/100, 0, nil); err != nil {
			return true
		}
	}
	k.count.Add(1)
	k.tenants[tenant].Add(1)
	return true
}

// rebuild copies the table into one of the given size while lookups go on, and exchanges them. The caller holds writer.
// Activity that is marked meanwhile may be lost, and the next batch of the series marks it again; but what keep refuses
// and is marked meanwhile stays: somebody has been told that it is known.
func (s *knownShard) rebuild(groups uint64, now uint8, keep func(tick uint8, tenant uint16) bool) error {
	for {
		to, err := newKnownTable(max(groups, minGroups))
		if err != nil {
			return err
		}
		if !s.table.copyTo(to, keep) { // an unlucky cluster: more room resolves it
			freeArena(to.arena)
			groups = groups * growPercent / 100
			continue
		}
		s.mu.Lock()
		// Few have been marked since the tick began, so lookups wait for a short walk only.
		if keep != nil && !s.table.copyTo(to, func(tick uint8, _ uint16) bool { return tick == now }) {
			s.mu.Unlock()
			freeArena(to.arena)
			groups = groups * growPercent / 100
			continue
		}
		old := s.table
		s.table = to
		s.mu.Unlock()
		freeArena(old.arena)
		return nil
	}
}

// room returns an error if the set cannot take n more keys.
func (k *known) room(n int) error {
	if have := k.count.Load(); have+int64(n) > k.maxKeys {
		return &model.LimitError{Limit: "memory", Text: fmt.Sprintf(
			"%d series are active and the memory budget has room for %d; give it more, or send fewer series", have, k.maxKeys)}
	}
	return nil
}

// advance starts the next tick and drops the keys that have been idle for more than maxIdle ticks (at most 200).
func (k *known) advance(maxIdle int) error {
	tick := uint8(k.tick.Load()%255) + 1
	k.tick.Store(uint32(tick))
	for i := range k.shards {
		s := &k.shards[i]
		s.writer.Lock()
		err := s.sweep(k, tick, maxIdle)
		s.writer.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *knownShard) sweep(k *known, now uint8, maxIdle int) error {
	active := func(tick uint8, _ uint16) bool { return (int(now)-int(tick)+255)%255 <= maxIdle }
	before, idle := s.table.tally(), 0
	for i := range s.table.slots {
		if slot := atomic.LoadUint64(&s.table.slots[i]); slot != 0 && !active(uint8(slot), 0) {
			idle++
		}
	}
	if idle == 0 {
		return nil
	}
	groups := s.table.groups
	if left := s.table.used - idle; left*100 < int(groups)*slotsPerGroup*loadPercent/2 {
		groups = uint64(left)*100/(slotsPerGroup*loadPercent)*growPercent/100 + 1
	}
	if err := s.rebuild(groups, now, active); err != nil {
		return err
	}
	after := s.table.tally()
	for tenant, n := range before {
		k.tenants[tenant].Add(after[tenant] - n)
		k.count.Add(int64(after[tenant] - n))
	}
	return nil
}

// tally counts the series of each tenant.
func (t *knownTable) tally() map[uint16]int32 {
	n := make(map[uint16]int32)
	for i := range t.slots {
		if atomic.LoadUint64(&t.slots[i]) != 0 {
			n[t.tenants[i]]++
		}
	}
	return n
}

// bytes returns the memory of the set.
func (k *known) bytes() (n int64) {
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
