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
	pairs slabs[pairState]
	table []uint32 // open addressing: index into pairs, plus one
	text  slabs[byte]
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

func newPostings(seed uint64) postings {
	// A slab of text holds the longest label set that a writer takes.
	return postings{seed: seed, pairs: slabs[pairState]{bits: 14}, text: slabs[byte]{bits: 20}, lists: arena{bytes: slabs[byte]{bits: 20}}}
}

func (p *postings) reset() {
	// Ten thousand small tenants after a big one should not each clear its table.
	if len(p.table) > 1<<14 && int(p.pairs.len) < len(p.table)/8 {
		p.table = nil
	}
	clear(p.table)
	p.last = p.last[:0]
	p.pairs.reset()
	p.text.reset()
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
		if place < len(p.last) {
			if s := p.pairs.at(p.last[place]); p.is(s, name, value) {
				s.add(rank, &p.lists)
				continue
			}
		}
		id, err := p.id(name, value)
		if err != nil {
			return err
		}
		p.pairs.at(id).add(rank, &p.lists)
		if place < len(p.last) {
			p.last[place] = id
		} else {
			p.last = append(p.last, id)
		}
	}
	p.last = p.last[:place]
	if p.lists.full {
		return invalid("postings of more than 4 GiB in one tenant of one part")
	}
	return nil
}

func (p *postings) is(s *pairState, name, value []byte) bool {
	text := p.text.run(s.text, s.textLen)
	return int(s.nameLen) == len(name) && len(text) == len(name)+len(value) &&
		string(text[len(name):]) == string(value) && string(text[:len(name)]) == string(name)
}

func (p *postings) name(s *pairState) []byte { return p.text.run(s.text, s.nameLen) }

func (p *postings) value(s *pairState) []byte { return p.text.run(s.text, s.textLen)[s.nameLen:] }

func (p *postings) id(name, value []byte) (uint32, error) {
	if 4*(int(p.pairs.len)+1) > 3*len(p.table) {
		p.rehash()
	}
	h := p.hash(name, value)
	mask := uint32(len(p.table) - 1)
	slot := uint32(h) & mask
	for ; p.table[slot] != 0; slot = (slot + 1) & mask {
		id := p.table[slot] - 1
		if s := p.pairs.at(id); s.hash == uint32(h>>32) && p.is(s, name, value) {
			return id, nil
		}
	}
	text, ok := p.text.alloc(uint32(len(name) + len(value)))
	id, room := p.pairs.alloc(1)
	if !ok || !room {
		return 0, invalid("labels of more than 4 GiB in one tenant of one part")
	}
	copy(p.text.run(text, uint32(len(name))), name)
	copy(p.text.run(text, uint32(len(name)+len(value)))[len(name):], value)
	*p.pairs.at(id) = pairState{text: text, nameLen: uint32(len(name)), textLen: uint32(len(name) + len(value)), hash: uint32(h >> 32)}
	p.table[slot] = id + 1
	return id, nil
}

func (p *postings) hash(name, value []byte) uint64 {
	return xxh3.HashSeed(value, p.seed) ^ xxh3.HashSeed(name, p.seed+1)
}

func (p *postings) rehash() {
	p.table = make([]uint32, max(256, 2*len(p.table)))
	mask := uint32(len(p.table) - 1)
	for id := range p.pairs.len {
		s := p.pairs.at(id)
		slot := uint32(p.hash(p.name(s), p.value(s))) & mask
		for ; p.table[slot] != 0; slot = (slot + 1) & mask {
		}
		p.table[slot] = id + 1
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
	order := make([]uint32, p.pairs.len)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int {
		a, b := p.pairs.at(x), p.pairs.at(y)
		if c := bytes.Compare(p.name(a), p.name(b)); c != 0 {
			return c
		}
		return bytes.Compare(p.value(a), p.value(b))
	})
	return order
}
