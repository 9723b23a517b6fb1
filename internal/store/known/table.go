package known

import (
	"fmt"
	"iter"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// A slot of the known set is 8 bytes: 56 check bits above an 8-bit tick of the last activity, which is never
// 0. A parallel array holds the tenant, for counting. At the highest load that is 12.8 bytes a series.
//
// A fingerprint has 64 bits, besides those that choose the shard. Its home is group mulhi(fingerprint,
// groups), a cache line of 8 slots; the check bits are the low 56 bits. A slot lies at most maxDistance
// groups after its home, and a group spans at most 2^52 fingerprints. So position and check bits together
// give the whole fingerprint back, and a table can be copied from its slots alone into one of any size, which
// need not be a power of two.
const (
	slotsPerGroup = 8
	checkBits     = 56
	checkMask     = 1<<checkBits - 1
	maxDistance   = 15
	minGroups     = 4096 // 2^64 / 4096 = 2^52
	groupBytes    = slotsPerGroup * (8 + 2)

	// loadPercent is the share of slots that may be in use before a table grows. Lookups of new series slow
	// down beyond it.
	loadPercent = 76
	// growPercent is by how much a table grows. Shards grow one by one, so the set as a whole grows smoothly.
	growPercent = 125
	// skewPercent is the size of the largest shard, in per cent of the mean, that is allowed for.
	skewPercent = 103
)

// table is the memory of one shard.
type table struct {
	arena   []byte
	slots   []uint64 // groups + maxDistance groups: the last homes overflow past the end and do not wrap around
	tenants []uint16
	groups  uint64
	used    int
}

func newTable(groups uint64) (*table, error) {
	n := int(groups+maxDistance) * slotsPerGroup
	arena, err := newArena(n * 10)
	if err != nil {
		return nil, fmt.Errorf("%w: known set: cannot allocate memory for %d series: %v", model.ErrTransient, n, err)
	}
	return &table{
		arena:   arena,
		slots:   unsafe.Slice((*uint64)(unsafe.Pointer(&arena[0])), n),
		tenants: unsafe.Slice((*uint16)(unsafe.Pointer(&arena[n*8])), n),
		groups:  groups,
	}, nil
}

func (t *table) home(fp uint64) uint64 {
	g, _ := bits.Mul64(fp, t.groups)
	return g
}

// find returns the slot of a fingerprint, or -1. It may run during an insert.
func (t *table) find(fp uint64) int {
	at := int(t.home(fp)) * slotsPerGroup
	for range maxDistance + 1 {
		free := false
		for i := at; i < at+slotsPerGroup; i++ {
			s := atomic.LoadUint64(&t.slots[i])
			if s>>8 == fp&checkMask && s != 0 {
				return i
			}
			free = free || s == 0
		}
		if free {
			return -1
		}
		at += slotsPerGroup
	}
	return -1
}

// insert stores a fingerprint that is not in the table. It returns false if there is no free slot near its
// home.
func (t *table) insert(fp uint64, tick uint8, tenant uint16) bool {
	at := int(t.home(fp)) * slotsPerGroup
	for i := at; i < at+(maxDistance+1)*slotsPerGroup; i++ {
		if t.slots[i] == 0 {
			t.tenants[i] = tenant
			atomic.StoreUint64(&t.slots[i], fp<<8|uint64(tick))
			t.used++
			return true
		}
	}
	return false
}

// fingerprint returns the fingerprint that is stored in slot i.
func (t *table) fingerprint(i int) uint64 {
	group := uint64(i / slotsPerGroup)
	low := uint64(0)
	if group > maxDistance {
		// The least fingerprint whose home is maxDistance before this group: ceil((group-maxDistance) * 2^64
		// / groups).
		var rem uint64
		low, rem = bits.Div64(group-maxDistance, 0, t.groups)
		if rem != 0 {
			low++
		}
	}
	fp := low&^uint64(checkMask) | atomic.LoadUint64(&t.slots[i])>>8
	if fp < low {
		fp += 1 << checkBits
	}
	return fp
}

// full reports whether the table must grow before the next insert.
func (t *table) full() bool {
	return t.used*100 >= int(t.groups)*slotsPerGroup*loadPercent
}

// fate is what a copy of a table does with a slot.
type fate uint8

const (
	kept fate = iota
	// watched is kept, and a mark that is set during the copy is not lost.
	watched
	// left is left out, unless it is marked during the copy.
	left
)

// copying is a copy of a table to one of any size.
type copying struct {
	from, to *table
	fateOf   func(tick uint8) fate
	// out has the slots that are not in the copy: left ones, and second slots of keys (see Set.drop).
	out, watched slotSet
}

// all copies the slots. It returns false if there is no room near a home.
func (c *copying) all() bool {
	for i := range c.from.slots {
		s := atomic.LoadUint64(&c.from.slots[i])
		if s == 0 {
			continue
		}
		switch c.fateOf(uint8(s)) {
		case left:
			c.out.add(i)
			continue
		case watched:
			c.watched.add(i)
		}
		fp := c.from.fingerprint(i)
		if c.to.find(fp) >= 0 {
			c.out.add(i)
		} else if !c.to.insert(fp, uint8(s), c.from.tenants[i]) {
			return false
		}
	}
	return true
}

// marked copies what has been marked since: slots that were left out, and the marks of watched ones. No mark
// may be set meanwhile.
func (c *copying) marked() bool {
	for i := range c.out.all() {
		s := c.from.slots[i]
		if c.fateOf(uint8(s)) == left {
			continue
		}
		if fp := c.from.fingerprint(i); c.to.find(fp) < 0 {
			if !c.to.insert(fp, uint8(s), c.from.tenants[i]) {
				return false
			}
			c.out.remove(i)
		}
	}
	for i := range c.watched.all() {
		if s := c.from.slots[i]; c.fateOf(uint8(s)) == kept {
			at := c.to.find(c.from.fingerprint(i))
			c.to.slots[at] = c.to.slots[at]&^0xff | s&0xff
		}
	}
	return true
}

// slotSet is a set of slots of a table, a bit for each.
type slotSet []uint64

func (b slotSet) add(i int) { b[i/64] |= 1 << (i % 64) }

func (b slotSet) remove(i int) { b[i/64] &^= 1 << (i % 64) }

// all walks the slots in order.
func (b slotSet) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for w, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(64*w + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
