package items

import "encoding/binary"

// ring is a queue of items in a piece of memory: new ones are put at its head, and leave at its tail. Places
// of items that were removed before are free when the tail passes them.
type ring struct {
	mem        []byte
	base       int    // of mem in the memory of the shard
	head, tail uint64 // they only grow
}

// padding marks a length as that of the unused end of the memory.
const padding = 1 << 31

func (r *ring) used() int { return int(r.head - r.tail) }

// room reports whether an item of n bytes fits at the head, and how many bytes are left unused before it.
func (r *ring) room(n int) (gap int, ok bool) {
	if r.head == r.tail {
		r.head, r.tail = 0, 0
	}
	if at := int(r.head % uint64(len(r.mem))); at+n > len(r.mem) {
		gap = len(r.mem) - at
	}
	return gap, r.used()+gap+n <= len(r.mem)
}

// place returns the place of an item of n bytes, for which there is room, and its offset in the shard. The
// item must be written before the gap is marked: it may be moved from there.
func (r *ring) place(gap, n int) (b []byte, at int) {
	at = int((r.head + uint64(gap)) % uint64(len(r.mem)))
	return r.mem[at : at+n : at+n], r.base + at
}

// advance moves the head beyond a gap and an item.
func (r *ring) advance(gap, n int) {
	if gap > 0 {
		binary.LittleEndian.PutUint32(r.mem[r.head%uint64(len(r.mem)):], uint32(gap)|padding)
	}
	r.head += uint64(gap + n)
}

// oldest takes the item at the tail out, and returns it with its offset in the shard. Its bytes stay until
// something is written to the ring. It returns nil for a gap.
func (r *ring) oldest() (it Item, at int) {
	from := int(r.tail % uint64(len(r.mem)))
	n := binary.LittleEndian.Uint32(r.mem[from:])
	r.tail += uint64(n &^ padding)
	if n&padding != 0 {
		return nil, 0
	}
	return Item(r.mem[from : from+int(n)]), r.base + from
}
