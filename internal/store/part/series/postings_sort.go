package series

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// pieceBytes is how many bytes of a value are compared at once.
const pieceBytes = 7

// valuePiece is a pair that is being sorted, with the piece of its value that is compared.
type valuePiece struct {
	piece uint64
	id    uint32
}

// sorted returns the pairs by name and value. It sorts values piece by piece, from the first difference of
// the values of a name. Comparing whole values, which are spread over memory, was tried and is slower in
// BenchmarkNewSeries of package head.
func (p *postings) sorted() []valuePiece {
	slices.SortFunc(p.names, func(x, y uint32) int { return bytes.Compare(p.value(p.pairs.get(x)), p.value(p.pairs.get(y))) })
	end := uint32(0)
	for _, n := range p.names {
		s := p.pairs.get(n)
		s.start = end
		end += s.count
		s.end = s.start
	}
	order := make([]valuePiece, end)
	for id := range p.pairs.len {
		if s := p.pairs.get(id); s.name != isName {
			name := p.pairs.get(s.name)
			order[name.end].id = id
			name.end++
		}
	}
	for _, n := range p.names {
		s := p.pairs.get(n)
		p.sortValues(order[s.start:s.end], 0)
	}
	return order
}

// sortValues sorts pairs whose values differ, but not in their first bytes.
func (p *postings) sortValues(group []valuePiece, same int) {
	if len(group) < 2 {
		return
	}
	first := p.value(p.pairs.get(group[0].id))
	common := len(first)
	for _, g := range group[1:] {
		common = same + commonPrefix(first[same:common], p.value(p.pairs.get(g.id))[same:])
		if common == same {
			break
		}
	}
	for i := range group {
		group[i].piece = pieceOf(p.value(p.pairs.get(group[i].id))[common:])
	}
	slices.SortFunc(group, func(a, b valuePiece) int { return cmp.Compare(a.piece, b.piece) })
	for i := 0; i < len(group); {
		next := i + 1
		for next < len(group) && group[next].piece == group[i].piece {
			next++
		}
		p.sortValues(group[i:next], common+pieceBytes)
		i = next
	}
}

// pieceOf orders values by their first bytes, and equal ones that end there by length: the lowest byte is
// the number of bytes left, at most one more than a piece has. Two values with one piece are equal, or both
// longer.
func pieceOf(b []byte) uint64 {
	if len(b) > pieceBytes {
		return binary.BigEndian.Uint64(b)&^0xff | (pieceBytes + 1)
	}
	var whole [8]byte
	copy(whole[:], b)
	return binary.BigEndian.Uint64(whole[:]) | uint64(len(b))
}
