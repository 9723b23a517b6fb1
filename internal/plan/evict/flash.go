package evict

import (
	"slices"

	"github.com/shaledb/shale/internal/cache/admit"
)

// flashSegments is the number of segments on the disk.
const flashSegments = 100

// flash is Shale's tier on disk. Its filter in memory admits what a second query asks for. The disk reclaims
// its oldest segment, and writes those values again that queries have used most since they were written,
// within a bound.
type flash struct {
	Ledger
	filter *admit.Filter[uint32]
	queue  []uint32 // the keys that the filter may hold, the oldest first, from first on
	first  int
	disk   list
	onDisk []bool
	// asked is the last query that asked for a key, and uses how many have since it was written.
	asked             []uint16
	uses              []uint8
	reclaimed         []uint32 // reused by reclaim
	capacity, segment int64
	hashes            []uint64 // nil: see hash
}

func newFlash(in Input) *flash {
	keys := len(in.Sizes)
	c := &flash{
		Ledger: newLedger(in.Sizes), hashes: in.Hashes,
		disk: newList(newLinks(keys), in.Sizes), onDisk: make([]bool, keys), asked: make([]uint16, keys), uses: make([]uint8, keys),
	}
	c.Resize(in)
	return c
}

// Resize is [Sampled.Resize].
func (c *flash) Resize(in Input) {
	memory, ghosts := int64(in.Queue*float64(in.Capacity)), in.Ghosts
	if ghosts == 0 {
		ghosts = int(min(in.Capacity/meanSize(in.Sizes), int64(len(in.Sizes))))
	}
	if c.filter == nil {
		c.filter = admit.New[uint32](memory, ghosts)
	} else {
		c.filter.Resize(memory, ghosts, in.Keep)
		c.queue = slices.DeleteFunc(c.queue[c.first:], func(key uint32) bool { return !c.waits(key) })
		c.first = 0
	}
	c.capacity = in.Capacity - memory
	c.segment = c.capacity / flashSegments
	for c.disk.bytes > c.capacity {
		c.reclaim()
	}
}

// query16 is how the filter knows a query.
func query16(query uint32) uint16 { return uint16(hash(query)) }

func (c *flash) hash(key uint32) uint64 {
	if c.hashes != nil {
		return c.hashes[key]
	}
	return hash(key)
}

// Forget is [Sampled.Forget]. A value that waits stays until it has left the queue, or Resize drops it.
func (c *flash) Forget(key uint32) {
	if c.onDisk[key] {
		c.disk.remove(key)
		c.onDisk[key] = false
	}
}

func (c *flash) waits(key uint32) bool {
	_, ok := c.filter.Peek(c.hash(key))
	return ok
}

func (c *flash) Has(key uint32) bool { return c.onDisk[key] || c.waits(key) }

func (c *flash) Get(key, query uint32) bool {
	switch {
	case c.onDisk[key]:
		c.read[key] = true
		if q := query16(query); c.asked[key] != q {
			c.asked[key], c.uses[key] = q, min(c.uses[key]+1, admit.MostUses)
		}
	case c.waits(key):
		if _, admitted := c.filter.Use(c.hash(key), query16(query)); admitted {
			c.store(key, query)
		}
	default:
		return false
	}
	return true
}

func (c *flash) Put(key, query uint32, fresh bool) {
	if c.size(key) > c.capacity {
		return
	}
	if fresh {
		query = 0 // the one that ships
	}
	if c.filter.Offer(c.hash(key), query16(query), c.size(key), key) {
		c.store(key, query)
		return
	}
	c.queue = append(c.queue, key)
	c.leaveQueue()
}

// leaveQueue counts what the filter has refused.
func (c *flash) leaveQueue() {
	for c.first < len(c.queue) && !c.waits(c.queue[c.first]) {
		if !c.onDisk[c.queue[c.first]] {
			c.Refused++
		}
		c.first++
	}
	if c.first > 1<<12 && c.first > len(c.queue)/2 {
		c.queue = append(c.queue[:0], c.queue[c.first:]...)
		c.first = 0
	}
}

func (c *flash) store(key, query uint32) {
	c.asked[key], c.onDisk[key] = query16(query), true
	c.write(key)
	for c.disk.bytes > c.capacity {
		c.reclaim()
	}
}

func (c *flash) write(key uint32) {
	c.enter(key)
	c.uses[key] = 0
	c.Written += c.size(key)
	c.disk.push(key)
}

// reclaim frees the oldest segment.
func (c *flash) reclaim() {
	c.reclaimed = c.reclaimed[:0]
	for seen := int64(0); seen < max(c.segment, 1); {
		key := uint32(c.disk.tail)
		seen += c.size(key)
		c.disk.remove(key)
		c.reclaimed = append(c.reclaimed, key)
	}
	_ = admit.Reinsert(c.segment, len(c.reclaimed), c.value, c.reinsert) // reinsert returns no error
	for _, key := range c.reclaimed {
		if key != kept {
			c.onDisk[key] = false
			c.evict(key)
		}
	}
}

// kept marks a key that was written again.
const kept = ^uint32(0)

// value returns the uses and the size of a value of the segment that is reclaimed.
func (c *flash) value(i int) (uses int, bytes int64) {
	if key := c.reclaimed[i]; key != kept {
		return int(c.uses[key]), c.size(key)
	}
	return 0, 0
}

func (c *flash) reinsert(i int) (bool, error) {
	c.write(c.reclaimed[i])
	c.reclaimed[i] = kept
	return true, nil
}
