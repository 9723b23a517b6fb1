package known

import (
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// ticks are the values that the activity of a slot may have: 1 to 255, in a ring. 0 is an empty slot.
const ticks = 255

// ticksAgo returns the tick that was n ticks before now.
func ticksAgo(now uint8, n int) uint8 { return uint8((int(now)-1-n%ticks+ticks)%ticks) + 1 }

// age returns how many ticks ago a tick was.
func age(tick, now uint8) int { return (int(now) - int(tick) + ticks) % ticks }

// Retire makes a key that has been idle for some ticks or more leave the set with the second sweep of any
// kind from now instead of after maxIdle ticks, unless it becomes active again. The first sweep is too early:
// a batch that was told that the series is known may still be on its way.
func (k *Set) Retire(tenant uint16, signal model.Signal, key model.Key, idle, maxIdle int) {
	fp, shard := k.fingerprint(tenant, signal, key)
	s := &k.shards[shard]
	s.mu.RLock()
	defer s.mu.RUnlock()
	at := s.table.find(fp)
	if at < 0 {
		return
	}
	now := uint8(k.tick.Load())
	slot := atomic.LoadUint64(&s.table.slots[at])
	if n := age(uint8(slot), now); n >= idle && n < maxIdle-1 {
		// After a lost race the slot has the mark of a later batch.
		atomic.CompareAndSwapUint64(&s.table.slots[at], slot, slot&^0xff|uint64(ticksAgo(now, maxIdle-1)))
		s.mayRetire.Store(true)
	}
}

// Advance starts the next tick and drops the keys that have been idle for more than maxIdle ticks (at most
// 200).
func (k *Set) Advance(maxIdle int) error { return k.AdvanceFull(maxIdle, maxIdle) }

// AdvanceFull is Advance for a set that is nearly full: it also drops the keys that have been idle for more
// than idle ticks. Those that Retire has marked since the last sweep stay, as without pressure.
func (k *Set) AdvanceFull(idle, maxIdle int) error {
	tick := uint8(k.tick.Load()%ticks) + 1
	k.tick.Store(uint32(tick))
	return k.sweep(tick, idle, maxIdle)
}

// SweepRetired drops the keys that Retire has marked before the last sweep, without a new tick. It takes
// those that have been idle for maxIdle ticks with them. Shards in which nothing has retired are not looked
// at.
func (k *Set) SweepRetired(maxIdle int) error {
	if maxIdle < 2 {
		return nil // Retire marks nothing: keys leave with the next tick
	}
	now := uint8(k.tick.Load())
	for i := range k.shards {
		s := &k.shards[i]
		s.writer.Lock()
		err := s.sweepRetired(k, now, maxIdle)
		s.writer.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *shard) sweepRetired(k *Set, now uint8, maxIdle int) error {
	if !s.mayRetire.Swap(false) {
		return nil
	}
	leaving, retired := s.ageRetired(now, maxIdle)
	err := s.drop(k, leaving, now, maxIdle, maxIdle)
	if retired > 0 || err != nil {
		s.mayRetire.Store(true)
	}
	return err
}

// ageRetired makes the keys that Retire has marked leave with the next sweep, and those that were to leave
// with this one too old to stay. It returns the numbers of the latter and of the former.
func (s *shard) ageRetired(now uint8, maxIdle int) (leaving, retired int) {
	for i := range s.table.slots {
		slot := atomic.LoadUint64(&s.table.slots[i])
		if slot == 0 {
			continue
		}
		switch n := age(uint8(slot), now); {
		case n < maxIdle-1:
		case n == maxIdle-1:
			retired++
			atomic.CompareAndSwapUint64(&s.table.slots[i], slot, slot&^0xff|uint64(ticksAgo(now, maxIdle)))
		default:
			leaving++
			atomic.CompareAndSwapUint64(&s.table.slots[i], slot, slot&^0xff|uint64(ticksAgo(now, maxIdle+1)))
		}
	}
	return leaving, retired
}

// sweep drops the keys whose mark is more than idle ticks old, unless it is maxIdle ticks old.
func (k *Set) sweep(tick uint8, idle, maxIdle int) error {
	for i := range k.shards {
		s := &k.shards[i]
		s.writer.Lock()
		err := s.drop(k, s.leaving(tick, idle, maxIdle), tick, idle, maxIdle)
		s.writer.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// leaving returns how many slots a sweep drops.
func (s *shard) leaving(now uint8, idle, maxIdle int) (n int) {
	fateOf := sweeping(now, idle, maxIdle)
	for i := range s.table.slots {
		if slot := atomic.LoadUint64(&s.table.slots[i]); slot != 0 && fateOf(uint8(slot)) == left {
			n++
		}
	}
	return n
}

// sweeping returns the rule of a sweep. It watches what the next one may drop.
func sweeping(now uint8, idle, maxIdle int) func(tick uint8) fate {
	return func(tick uint8) fate {
		switch n := age(tick, now); {
		case n > idle && n != maxIdle:
			return left
		case n >= min(idle, maxIdle-1):
			return watched
		}
		return kept
	}
}

// drop does a sweep that about so many slots leave.
func (s *shard) drop(k *Set, leaving int, now uint8, idle, maxIdle int) error {
	if leaving == 0 {
		return nil
	}
	groups := s.table.groups
	if stay := s.table.used - leaving; stay*100 < int(groups)*slotsPerGroup*loadPercent/2 {
		groups = uint64(stay)*100/(slotsPerGroup*loadPercent)*growPercent/100 + 1
	}
	return s.rebuild(k, groups, sweeping(now, idle, maxIdle))
}

// NearlyFull reports whether 95 % of the set is in use.
func (k *Set) NearlyFull() bool { return k.count.Load() > k.maxKeys/20*19 }
