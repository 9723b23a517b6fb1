package known

import "github.com/shaledb/shale/internal/model"

// Outcome is the result of adding a key to the set.
type Outcome uint8

const (
	AlreadyKnown Outcome = iota
	Added
	// NoRoom: active series take all memory of the set. The series stays unknown and carries its labels with
	// every batch.
	NoRoom
)

// InsertAll adds many keys at once, which costs a fraction of adding them one by one. It returns the outcome
// for each key, valid until the next call with the same lookup.
func (k *Set) InsertAll(l *Lookup, tenant uint16, signal model.Signal, keys []model.Key) []Outcome {
	return k.RestoreAll(l, tenant, signal, keys, 0)
}

// RestoreAll is [Set.InsertAll] for keys that have had no row for a number of ticks, as far as is known.
func (k *Set) RestoreAll(l *Lookup, tenant uint16, signal model.Signal, keys []model.Key, idle int) []Outcome {
	l.byShard(k, tenant, signal, keys)
	if cap(l.outcomes) < len(keys) {
		l.outcomes = make([]Outcome, len(keys))
	}
	l.outcomes = l.outcomes[:len(keys)]
	for i := range k.shards {
		order, s := l.inShard(i), &k.shards[i]
		if len(order) == 0 {
			continue
		}
		s.writer.Lock()
		for len(order) > 0 {
			chunk := order[:min(touchBatch, len(order))]
			order = order[len(chunk):]
			s.table.touch(l.fps, chunk)
			l.touched += s.table.touchTenants(l.fps, chunk)
			for _, j := range chunk {
				l.outcomes[j] = s.insert(k, l.fps[j], ticksAgo(uint8(k.tick.Load()), idle), tenant)
			}
		}
		s.writer.Unlock()
	}
	return l.outcomes
}

// touchTenants is touch for the tenants, which an insert writes: otherwise their cache misses come one by
// one. The sum keeps the compiler from removing the loads.
func (t *table) touchTenants(fps []uint64, order []uint32) (sum uint16) {
	for _, i := range order {
		sum += t.tenants[t.home(fps[i])*slotsPerGroup]
	}
	return sum
}

// Reserve makes room for a number of keys, so that filling the set does not grow it step by step.
func (k *Set) Reserve(keys int64) error {
	perShard := uint64(min(keys, k.maxKeys)) / uint64(len(k.shards))
	groups := min(perShard*100/(slotsPerGroup*loadPercent)*skewPercent/100+1, k.maxGroups)
	for i := range k.shards {
		s := &k.shards[i]
		s.writer.Lock()
		var err error
		if groups > s.table.groups {
			err = s.rebuild(k, groups, keepAll)
		}
		s.writer.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *shard) insert(k *Set, fp uint64, tick uint8, tenant uint16) Outcome {
	if s.table.find(fp) >= 0 {
		return AlreadyKnown
	}
	return s.add(k, fp, tick, tenant)
}

// add stores a fingerprint that is not in the table.
func (s *shard) add(k *Set, fp uint64, tick uint8, tenant uint16) Outcome {
	if k.count.Load() >= k.maxKeys {
		return NoRoom
	}
	for {
		last := s.table.groups >= k.maxGroups
		if (last || !s.table.full()) && s.table.insert(fp, tick, tenant) {
			break
		}
		if last || s.rebuild(k, min(s.table.groups*growPercent/100, k.maxGroups), keepAll) != nil {
			return NoRoom
		}
	}
	k.count.Add(1)
	k.tenants[tenant].Add(1)
	return Added
}

// keepAll is the rule of a copy that leaves nothing out.
func keepAll(uint8) fate { return kept }

// rebuild copies the table into one of the given size while lookups go on, and exchanges them. The caller
// holds writer. Marks of activity that are set meanwhile may be lost, and the next batch of the series sets
// them again. Those of series that are left out or watched are not: a batch has been told that the series is
// known, so it stays. What the copy leaves out, which may be a key's second slot (see drop), is no longer
// counted.
func (s *shard) rebuild(k *Set, groups uint64, fateOf func(tick uint8) fate) error {
	words := len(s.table.slots)/64 + 1
	for ; ; groups = groups * growPercent / 100 { // too many neighbours: a larger table spreads them
		to, err := newTable(max(groups, minGroups))
		if err != nil {
			return err
		}
		c := copying{from: s.table, to: to, fateOf: fateOf, out: make(slotSet, words), watched: make(slotSet, words)}
		if !c.all() {
			freeArena(to.arena)
			continue
		}
		s.mu.Lock()
		// Few slots are looked at, so lookups wait for a short time.
		if !c.marked() {
			s.mu.Unlock()
			freeArena(to.arena)
			continue
		}
		s.table = to
		s.mu.Unlock()
		for i := range c.out.all() {
			k.tenants[c.from.tenants[i]].Add(-1)
			k.count.Add(-1)
		}
		freeArena(c.from.arena)
		return nil
	}
}
