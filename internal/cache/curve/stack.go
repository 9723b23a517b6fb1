package curve

import (
	"math"

	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/plan/evict"
)

// Factors are the sizes that are simulated, in multiples of the size that a tier has.
var Factors = [...]float64{0.5, 1, 2, 4, 6, 10, 15, 20}

// joint bounds the factors that are simulated in all combinations. Beyond it, one of the two tiers has the
// size that it has.
const joint = 4

// Sizes are the sizes of the tiers as they are, in bytes.
type Sizes struct {
	RAM int64 `json:"ram"`
	// SSD is the size of the tier on disk. If NoSSD is set there is none, and the size is assumed.
	SSD   int64 `json:"ssd"`
	NoSSD bool  `json:"no_ssd,omitempty"`
	// Queue is the memory for pages that wait for a second query, and Ghosts the number of hashes of pages that
	// have left the queue.
	Queue  int64 `json:"queue"`
	Ghosts int64 `json:"ghosts"`
}

// pair is a combination of factors.
type pair struct{ RAM, SSD float64 }

// pairs returns what is simulated.
func pairs() (list []pair) {
	for _, ram := range Factors {
		for _, ssd := range Factors {
			if ram == 1 || ssd == 1 || ram <= joint && ssd <= joint {
				list = append(list, pair{ram, ssd})
			}
		}
	}
	return list
}

// caches are all simulated caches.
type caches struct {
	ram    []evict.Sampled // by factor
	hit    []bool          // of the current touch, by factor
	stacks []stack
}

// stack is a tier on disk after a tier in memory.
type stack struct {
	pair
	memory int // index of Factors
	disk   evict.Sampled
	n      *Point
	minute minute
}

// minute is what a stack has counted in the current minute.
type minute struct{ missed, served, servedBytes int64 }

// newCaches makes all caches for a share of the keys. The slices are by key, and may be changed while a key
// is in no cache.
func newCaches(s Sizes, share float64, ramBytes, diskBytes []uint32, hashes []uint64) (*caches, error) {
	m := &caches{hit: make([]bool, len(Factors))}
	open := func(policy string, in evict.Input) (evict.Sampled, error) {
		c, err := evict.New(policy, in)
		if err != nil {
			return nil, err
		}
		return c.(evict.Sampled), nil
	}
	for _, f := range Factors {
		c, err := open(evict.TinyLFU, evict.Input{Sizes: ramBytes, Capacity: s.memory(f, share)})
		if err != nil {
			return nil, err
		}
		m.ram = append(m.ram, c)
	}
	for _, p := range pairs() {
		in := s.disk(p, share)
		in.Sizes, in.Hashes = diskBytes, hashes
		c, err := open(evict.Shale, in)
		if err != nil {
			return nil, err
		}
		m.stacks = append(m.stacks, stack{pair: p, memory: factorIndex(p.RAM), disk: c, n: new(Point)})
	}
	return m, nil
}

// resize makes the caches those of another share of the keys. sampled says which hashes are in it.
func (m *caches) resize(s Sizes, share float64, sampled func(hash uint64) bool) {
	for i, c := range m.ram {
		c.Resize(evict.Input{Capacity: s.memory(Factors[i], share)})
	}
	for i := range m.stacks {
		in := s.disk(m.stacks[i].pair, share)
		in.Keep = sampled
		m.stacks[i].disk.Resize(in)
	}
}

// memory returns the size of a cache in memory for a share of the keys.
func (s Sizes) memory(factor, share float64) int64 {
	return int64(math.Round(float64(s.RAM) * factor * share))
}

// disk returns the sizes of a cache on disk. The memory for its queue grows with the rest of the memory.
func (s Sizes) disk(p pair, share float64) evict.Input {
	disk, queue := float64(s.SSD)*p.SSD*share, float64(s.Queue)*p.RAM*share
	return evict.Input{Capacity: int64(disk + queue), Queue: queue / max(disk+queue, 1), Ghosts: max(int(float64(s.Ghosts)*p.SSD*share), 8)}
}

func factorIndex(f float64) int {
	for i, g := range Factors {
		if f == g {
			return i
		}
	}
	return -1
}

// touch runs a touch through all caches.
func (m *caches) touch(key uint32, t *ledger.Touch, ramBytes, diskBytes uint32) {
	query := uint32(t.Query)
	if t.Fresh {
		for i := range m.stacks {
			if d := m.stacks[i].disk; !d.Has(key) {
				d.Put(key, query, true)
			}
		}
		return
	}
	for i, c := range m.ram {
		if m.hit[i] = c.Get(key, query); !m.hit[i] {
			c.Put(key, query, false)
		}
	}
	if t.Local { // never in a tier after memory
		return
	}
	for i := range m.stacks {
		s := &m.stacks[i]
		n := s.n
		n.First++
		n.FirstBytes += int64(ramBytes)
		switch inMemory, onDisk := m.hit[s.memory], s.disk.Get(key, query); {
		case inMemory:
			n.RAMHits++
		case onDisk:
			n.SSDHits++
			s.minute.served++
			s.minute.servedBytes += int64(diskBytes)
			n.SSDBytes += int64(diskBytes)
		default:
			n.Missed++
			n.MissedBytes += int64(diskBytes)
			s.minute.missed++
			s.disk.Put(key, query, false)
		}
	}
}

// endMinute notes the peaks of a minute.
func (m *caches) endMinute() {
	for i := range m.stacks {
		s := &m.stacks[i]
		s.n.PeakMissed = max(s.n.PeakMissed, s.minute.missed)
		s.n.PeakServed = max(s.n.PeakServed, s.minute.served)
		s.n.PeakServedBytes = max(s.n.PeakServedBytes, s.minute.servedBytes)
		s.minute = minute{}
	}
}

// points returns the counts of all stacks since the last call of reset.
func (m *caches) points() []Point {
	list := make([]Point, len(m.stacks))
	for i := range m.stacks {
		s := &m.stacks[i]
		p, l := *s.n, s.disk.Counted()
		p.RAM, p.SSD = s.RAM, s.pair.SSD
		p.Written, p.Evicted, p.Unread, p.EvictedBytes = l.Written, l.Evicted, l.Unread, l.EvictedBytes
		p.PeakMissed, p.PeakServed = max(p.PeakMissed, s.minute.missed), max(p.PeakServed, s.minute.served)
		p.PeakServedBytes = max(p.PeakServedBytes, s.minute.servedBytes)
		list[i] = p
	}
	return list
}

// reset begins to count from zero.
func (m *caches) reset() {
	for i := range m.stacks {
		*m.stacks[i].n = Point{}
		m.stacks[i].disk.Counted().Reset()
	}
}

// has reports whether any cache has a key.
func (m *caches) has(key uint32) bool {
	for _, c := range m.ram {
		if c.Has(key) {
			return true
		}
	}
	for i := range m.stacks {
		if m.stacks[i].disk.Has(key) {
			return true
		}
	}
	return false
}

// forget drops a key from all caches.
func (m *caches) forget(key uint32) {
	for _, c := range m.ram {
		c.Forget(key)
	}
	for i := range m.stacks {
		m.stacks[i].disk.Forget(key)
	}
}
