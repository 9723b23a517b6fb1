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
			err = s.rebuild(k, groups, 0, nil)
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
		if last || s.rebuild(k, min(s.table.groups*growPercent/100, k.maxGroups), 0, nil) != nil {
			return NoRoom
		}
	}
	k.count.Add(1)
	k.tenants[tenant].Add(1)
	return Added
}

// rebuild copies the table into one of the given size while lookups go on, and exchanges them. The caller
// holds writer. Marks of activity that are set meanwhile may be lost, and the next batch of the series sets
// them again. A series that keep refuses stays if it is marked meanwhile: a batch has been told that it is
// known. What the copy leaves out, which may be a key's second slot (see drop), is no longer counted.
func (s *shard) rebuild(k *Set, groups uint64, now uint8, keep func(tick uint8, tenant uint16) bool) error {
	var left slotSet
	if keep != nil {
		left = make(slotSet, len(s.table.slots)/64+1)
	}
	for {
		to, err := newTable(max(groups, minGroups))
		if err != nil {
			return err
		}
		clear(left)
		if !s.table.copyTo(to, keep, left) { // too many neighbours: a larger table spreads them
			freeArena(to.arena)
			groups = groups * growPercent / 100
			continue
		}
		s.mu.Lock()
		// Only slots that were left out are looked at, so lookups wait for a short time.
		if !s.table.copyMarked(to, left, now) {
			s.mu.Unlock()
			freeArena(to.arena)
			groups = groups * growPercent / 100
			continue
		}
		old := s.table
		s.table = to
		s.mu.Unlock()
		if old.used != to.used {
			k.discount(old, to)
		}
		freeArena(old.arena)
		return nil
	}
}

// discount lowers the counts of the set by the series that a copy of a table has left out.
func (k *Set) discount(from, to *table) {
	after := to.tally()
	for tenant, n := range from.tally() {
		k.tenants[tenant].Add(after[tenant] - n)
		k.count.Add(int64(after[tenant] - n))
	}
}
