package part

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
)

// postings collects, for one tenant at a time, which ranks have which label. It is the one thing in a writer that grows
// with the number of series, so it holds lists as runs, packed into one arena, and nothing of its own on the Go heap per
// label but 48 bytes and the text: a label that all series share is a single run, one that a single series has is no list
// at all.
type postings struct {
	seed  uint64
	pairs []pairState
	table []uint32 // open addressing: index into pairs, plus one
	text  []byte
	lists arena

	// last are the pairs of the series before, by place: neighbours share most of their labels.
	last []uint32
}

// pairState is a label and the ranks that have it.
type pairState struct {
	text             uint32 // offset of the name; the value follows
	nameLen, textLen uint32
	hash             uint32
	count            uint32
	first            uint32
	// The run [start, end) is not yet in the list; prev is the end of the last run that is, or first.
	start, end, prev uint32
	list             list
}

// maxTextBytes bounds the text of the labels of one tenant in one part, whose offsets have 32 bits. A block of 2^24
// series with a label of 200 bytes that is unique to each stays below.
const maxTextBytes = 1<<32 - 1

func (p *postings) reset() {
	// Ten thousand small tenants after a big one should not each clear its table.
	if len(p.table) > 1<<14 && len(p.pairs) < len(p.table)/8 {
		p.table = nil
	}
	clear(p.table)
	p.pairs, p.text, p.last = p.pairs[:0], p.text[:0], p.last[:0]
	p.lists.reset()
}

// add notes the labels of a rank. Ranks ascend. The labels must be canonical, which it checks on the way.
func (p *postings) add(rank uint32, l model.Labels) error {
	var before []byte
	place := 0
	for rest := l; len(rest) > 0; place++ {
		name, value, after, ok := rest.Next()
		if !ok || len(value) == 0 || place > 0 && bytes.Compare(before, name) >= 0 {
			return invalid("labels %q are not canonical", []byte(l))
		}
		before, rest = name, after
		if place < len(p.last) && p.is(&p.pairs[p.last[place]], name, value) {
			p.pairs[p.last[place]].add(rank, &p.lists)
			continue
		}
		id, err := p.id(name, value)
		if err != nil {
			return err
		}
		p.pairs[id].add(rank, &p.lists)
		if place < len(p.last) {
			p.last[place] = id
		} else {
			p.last = append(p.last, id)
		}
	}
	p.last = p.last[:place]
	return nil
}

func (p *postings) is(s *pairState, name, value []byte) bool {
	text := p.text[s.text : s.text+s.textLen]
	return int(s.nameLen) == len(name) && len(text) == len(name)+len(value) &&
		string(text[len(name):]) == string(value) && string(text[:len(name)]) == string(name)
}

func (p *postings) name(s *pairState) []byte { return p.text[s.text : s.text+s.nameLen] }

func (p *postings) value(s *pairState) []byte { return p.text[s.text+s.nameLen : s.text+s.textLen] }

func (p *postings) id(name, value []byte) (uint32, error) {
	if 4*(len(p.pairs)+1) > 3*len(p.table) {
		p.rehash()
	}
	h := xxh3.HashSeed(value, p.seed) ^ xxh3.HashSeed(name, p.seed+1)
	mask := uint32(len(p.table) - 1)
	slot := uint32(h) & mask
	for ; p.table[slot] != 0; slot = (slot + 1) & mask {
		id := p.table[slot] - 1
		if s := &p.pairs[id]; s.hash == uint32(h>>32) && p.is(s, name, value) {
			return id, nil
		}
	}
	if len(p.text)+len(name)+len(value) > maxTextBytes {
		return 0, invalid("labels of more than %d bytes in one tenant of one part", maxTextBytes)
	}
	id := uint32(len(p.pairs))
	p.table[slot] = id + 1
	s := pairState{text: uint32(len(p.text)), nameLen: uint32(len(name)), textLen: uint32(len(name) + len(value)), hash: uint32(h >> 32)}
	p.text = append(append(p.text, name...), value...)
	p.pairs = append(p.pairs, s)
	return id, nil
}

func (p *postings) rehash() {
	p.table = make([]uint32, max(256, 2*len(p.table)))
	mask := uint32(len(p.table) - 1)
	for i := range p.pairs {
		s := &p.pairs[i]
		h := xxh3.HashSeed(p.value(s), p.seed) ^ xxh3.HashSeed(p.name(s), p.seed+1)
		slot := uint32(h) & mask
		for ; p.table[slot] != 0; slot = (slot + 1) & mask {
		}
		p.table[slot] = uint32(i) + 1
	}
}

// add appends a rank to the list of the pair.
func (s *pairState) add(rank uint32, a *arena) {
	s.count++
	switch {
	case s.count == 1:
		s.first, s.start, s.end, s.prev = rank, rank, rank+1, rank
	case rank == s.end:
		s.end++
	default:
		s.flush(a)
		s.start, s.end = rank, rank+1
	}
}

// flush moves the open run to the list.
func (s *pairState) flush(a *arena) {
	var b [2 * binary.MaxVarintLen64]byte
	a.append(&s.list, appendRun(b[:0], s.start-s.prev, s.end-s.start))
	s.prev = s.end
}

// appendRun writes a run of ranks: how many are left out since the run before, with a bit that says whether it is longer
// than one, and its length less two if it is.
func appendRun(dst []byte, gap, length uint32) []byte {
	if length == 1 {
		return binary.AppendUvarint(dst, uint64(gap)<<1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(gap)<<1|1), uint64(length-2))
}

// readRun reads what appendRun wrote.
func readRun(s *scan) (gap, length uint64) {
	gap = s.uvarint()
	if gap&1 == 0 {
		return gap >> 1, 1
	}
	return gap >> 1, s.uvarint() + 2
}

// sorted returns the pairs by name and value.
func (p *postings) sorted() []uint32 {
	order := make([]uint32, len(p.pairs))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int {
		a, b := &p.pairs[x], &p.pairs[y]
		if c := bytes.Compare(p.name(a), p.name(b)); c != 0 {
			return c
		}
		return bytes.Compare(p.value(a), p.value(b))
	})
	return order
}

// arena holds byte lists as chains of chunks. A chunk is [4: offset of the next][bytes]; chunks of a list double from 12
// bytes to 1 KiB.
type arena struct {
	buf []byte
}

// list is a chain in an arena. Offsets are in units of 4 bytes, so that they reach 16 GiB.
type list struct {
	head, tail uint32 // chunk offsets plus one unit; 0: none
	used       uint16 // of the tail's bytes
	size       uint16
}

const (
	firstChunk = 12
	lastChunk  = 1024
)

func (a *arena) reset() { a.buf = a.buf[:0] }

func (a *arena) append(l *list, b []byte) {
	for len(b) > 0 {
		if l.used == l.size {
			a.extend(l)
		}
		at := int(l.tail-1)*4 + 4 + int(l.used)
		n := copy(a.buf[at:at+int(l.size-l.used)], b)
		l.used += uint16(n)
		b = b[n:]
	}
}

func (a *arena) extend(l *list) {
	size := uint16(firstChunk)
	if l.size > 0 {
		size = min(2*l.size, lastChunk)
	}
	at := len(a.buf)
	a.buf = grow(a.buf, 4+int(size))
	binary.LittleEndian.PutUint32(a.buf[at:], 0)
	id := uint32(at/4) + 1
	if l.tail == 0 {
		l.head = id
	} else {
		binary.LittleEndian.PutUint32(a.buf[int(l.tail-1)*4:], id)
	}
	l.tail, l.used, l.size = id, 0, size
}

// bytes appends the whole list to dst.
func (a *arena) bytes(dst []byte, l *list) []byte {
	size := uint16(firstChunk)
	for id := l.head; id != 0; {
		at := int(id-1) * 4
		n := size
		if id == l.tail {
			n = l.used
		}
		dst = append(dst, a.buf[at+4:at+4+int(n)]...)
		if id == l.tail {
			break
		}
		id = binary.LittleEndian.Uint32(a.buf[at:])
		size = min(2*size, lastChunk)
	}
	return dst
}
