package series

import "encoding/binary"

// slabs is a list that grows without moving what it holds: a slice that doubles would, for a moment, need
// three times the memory, at the very size where memory is short. Elements that are allocated together lie in
// one slab of 1<<bits elements. The first slab alone starts small.
type slabs[T any] struct {
	bits uint
	list [][]T
	len  uint32 // also the next id
}

func (s *slabs[T]) reset() { s.len = 0 }

// alloc returns the id of n elements of any content; n is at most a slab. It fails when ids run out.
func (s *slabs[T]) alloc(n uint32) (id uint32, ok bool) {
	whole := uint64(1) << s.bits
	at := uint64(s.len)
	if used := at & (whole - 1); used+uint64(n) > whole {
		at += whole - used
	}
	end := at + uint64(n)
	if end > 1<<32-1 {
		return 0, false
	}
	slab := int(at >> s.bits)
	if slab == len(s.list) {
		s.list = append(s.list, nil)
	}
	if need := int(end - uint64(slab)<<s.bits); need > len(s.list[slab]) {
		size := int(whole)
		if slab == 0 {
			size = min(size, max(need, 2*len(s.list[0]), 256))
		}
		grown := make([]T, size)
		copy(grown, s.list[slab])
		s.list[slab] = grown
	}
	s.len = uint32(end)
	return uint32(at), true
}

func (s *slabs[T]) get(id uint32) *T { return &s.list[id>>s.bits][id&(1<<s.bits-1)] }

// slice returns elements that were allocated together.
func (s *slabs[T]) slice(id, n uint32) []T {
	if n == 0 {
		return nil
	}
	from := id & (1<<s.bits - 1)
	return s.list[id>>s.bits][from : from+n]
}

// arena holds byte lists as chains of chunks. A chunk is [4: id of the next][bytes]; chunks of a list double
// from 12 bytes to 1 KiB.
type arena struct {
	bytes slabs[byte]
	// full says that a list did not fit, which makes all lists invalid.
	full bool
}

// list is a chain in an arena.
type list struct {
	head, tail uint32 // ids of chunks, plus one; 0: none
	used, size uint16 // of the tail, in bytes
}

const (
	firstChunk = 12
	lastChunk  = 1024
	linkBytes  = 4
)

func (a *arena) reset() {
	a.bytes.reset()
	a.full = false
}

func (a *arena) append(l *list, b []byte) {
	for len(b) > 0 {
		if l.used == l.size && !a.extend(l) {
			return
		}
		chunk := a.bytes.slice(l.tail-1, linkBytes+uint32(l.size))
		n := copy(chunk[linkBytes+int(l.used):], b)
		l.used += uint16(n)
		b = b[n:]
	}
}

func (a *arena) extend(l *list) bool {
	size := uint16(firstChunk)
	if l.size > 0 {
		size = min(2*l.size, lastChunk)
	}
	id, ok := a.bytes.alloc(linkBytes + uint32(size))
	if !ok {
		a.full = true
		return false
	}
	if id++; l.tail == 0 {
		l.head = id
	} else {
		binary.LittleEndian.PutUint32(a.bytes.slice(l.tail-1, linkBytes), id)
	}
	l.tail, l.used, l.size = id, 0, size
	return true
}

// read appends the whole list to dst.
func (a *arena) read(dst []byte, l *list) []byte {
	size := uint16(firstChunk)
	for id := l.head; id != 0; {
		chunk := a.bytes.slice(id-1, linkBytes+uint32(size))
		if id == l.tail {
			return append(dst, chunk[linkBytes:linkBytes+l.used]...)
		}
		dst = append(dst, chunk[linkBytes:]...)
		id = binary.LittleEndian.Uint32(chunk)
		size = min(2*size, lastChunk)
	}
	return dst
}
