package head

import "github.com/shaledb/shale/internal/model"

// insertion is what came of adding a key to the known set.
type insertion uint8

const (
	wasKnown insertion = iota
	isKnown
	// noRoom: the memory of the set is used up by active series. The series stays unknown and carries its labels with
	// every batch.
	noRoom
)

// insertAll adds many keys at once, which costs a fraction of adding them one by one. It returns the outcome for each
// key, valid until the next call with the same lookup.
func (k *known) insertAll(l *lookup, tenant uint16, signal model.Signal, keys []model.Key) []insertion {
	l.byShard(k, tenant, signal, keys)
	if cap(l.outcomes) < len(keys) {
		l.outcomes = make([]insertion, len(keys))
	}
	l.outcomes = l.outcomes[:len(keys)]
	for i := range k.shards {
		order, s := l.inShard(i), &k.shards[i]
		if len(order) == 0 {
			continue
		}
		s.writer.Lock()
		for len(order) > 0 {
			chunk := order[:min(touchAhead, len(order))]
			order = order[len(chunk):]
			s.table.touch(l.fps, chunk)
			l.touched += s.table.touchTenants(l.fps, chunk)
			for _, j := range chunk {
				l.outcomes[j] = s.insert(k, l.fps[j], tenant)
			}
		}
		s.writer.Unlock()
	}
	return l.outcomes
}

// touchTenants is touch for the tenants, which an insert writes: their cache misses otherwise come one by one, and were
// half of the time of filling the set. The sum keeps the loads from being left out.
func (t *knownTable) touchTenants(fps []uint64, order []uint32) (sum uint16) {
	for _, i := range order {
		sum += t.tenants[t.home(fps[i])*slotsPerGroup]
	}
	return sum
}

// reserve makes room for so many keys, so that filling the set need not grow it again and again.
func (k *known) reserve(keys int64) error {
	perShard := uint64(min(keys, k.maxKeys)) / uint64(len(k.shards))
	groups := perShard*100/(slotsPerGroup*loadPercent)*103/100 + 1 // shards differ a little
	for i := range k.shards {
		s := &k.shards[i]
		s.writer.Lock()
		var err error
		if groups > s.table.groups {
			err = s.rebuild(groups, 0, nil)
		}
		s.writer.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *knownShard) insert(k *known, fp uint64, tenant uint16) insertion {
	if s.table.find(fp) >= 0 {
		return wasKnown
	}
	if k.count.Load() >= k.maxKeys {
		return noRoom
	}
	for s.table.full() || !s.table.insert(fp, uint8(k.tick.Load()), tenant) {
		if err := s.rebuild(s.table.groups*growPercent/100, 0, nil); err != nil {
			return noRoom
		}
	}
	k.count.Add(1)
	k.tenants[tenant].Add(1)
	return isKnown
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
