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

// copyTo inserts the slots that keep accepts into a table of any size, unless it has them, and notes the
// others in left. It returns false if there is no room near a home.
func (t *table) copyTo(to *table, keep func(tick uint8, tenant uint16) bool, left slotSet) bool {
	for i := range t.slots {
		s := atomic.LoadUint64(&t.slots[i])
		switch {
		case s == 0:
		case keep != nil && !keep(uint8(s), t.tenants[i]):
			left.add(i)
		case !t.copySlot(to, i, s):
			return false
		}
	}
	return true
}

// copyMarked is copyTo for slots that were left out and have been marked since.
func (t *table) copyMarked(to *table, left slotSet, now uint8) bool {
	for i := range left.all() {
		if s := atomic.LoadUint64(&t.slots[i]); uint8(s) == now && !t.copySlot(to, i, s) {
			return false
		}
	}
	return true
}

// copySlot inserts slot i, which is s, into a table that may have it.
func (t *table) copySlot(to *table, i int, s uint64) bool {
	fp := t.fingerprint(i)
	return to.find(fp) >= 0 || to.insert(fp, uint8(s), t.tenants[i])
}

// slotSet is a set of slots of a table, a bit for each.
type slotSet []uint64

func (b slotSet) add(i int) { b[i/64] |= 1 << (i % 64) }

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
