package series

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// PostingSection holds, by name and value of labels, which series have them, of parts that have labels.
var PostingSection = &file.Section{Number: 2, Kind: 2, Name: "postings", Form: file.PairEntries, Needed: func(m *file.Meta) bool { return m.Labels }}

// postings collects, for one tenant at a time, which ranks have which label. No other state of a writer
// grows with the number of series. So lists are intervals of ranks, packed into one arena. A label takes 48
// bytes and its value on the Go heap, and 16 more while labels are sorted. A label that all series share is
// a single interval, and one that a single series has needs no list.
type postings struct {
	seed  uint64
	pairs slabs[pairState]
	table []uint32 // open addressing: index into pairs, plus one
	text  slabs[byte]
	lists arena
	names []uint32 // ids of the names among pairs
	lone  loneSet  // ids of the metric names of series without another label

	// last are the pairs of the series before, by position: neighbours share most of their labels.
	last []uint32
}

// pairState is a label and the ranks that have it; or, with isName for a name, the name of labels, with their
// number.
type pairState struct {
	name         uint32 // id of the name
	text, length uint32 // of the value, or of the name itself
	hash         uint32
	count        uint32
	first        uint32
	// The run [start, end) is not yet in the list; prev is the end of the last run that is, or first.
	start, end, prev uint32
	list             list
}

// isName stands for the name of what is a name itself.
const isName = 1<<32 - 1

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
	p.last, p.names = p.last[:0], p.names[:0]
	p.lone.reset()
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
			return column.Invalid("labels %q are not canonical", []byte(l))
		}
		before, rest = name, after
		id, err := p.pair(place, name, value)
		if err != nil {
			return err
		}
		p.pairs.get(id).add(rank, &p.lists)
		if place < len(p.last) {
			p.last[place] = id
		} else {
			p.last = append(p.last, id)
		}
	}
	p.last = p.last[:place]
	if place == 1 && string(before) == model.NameLabel {
		p.lone.add(p.last[0])
	}
	if p.lists.full {
		return column.Invalid("postings of more than 4 GiB in one tenant of one part")
	}
	return nil
}

// pair returns the id of a label. It first tries the label that the series before had at this position.
func (p *postings) pair(place int, name, value []byte) (uint32, error) {
	if place < len(p.last) {
		s := p.pairs.get(p.last[place])
		if string(p.name(s)) == string(name) {
			if string(p.value(s)) == string(value) {
				return p.last[place], nil
			}
			return p.id(s.name, value)
		}
	}
	n, err := p.id(isName, name)
	if err != nil {
		return 0, err
	}
	return p.id(n, value)
}

func (p *postings) name(s *pairState) []byte { return p.value(p.pairs.get(s.name)) }

func (p *postings) value(s *pairState) []byte { return p.text.slice(s.text, s.length) }

// id returns the id of a label of the name with that id, or of a name.
func (p *postings) id(name uint32, text []byte) (uint32, error) {
	if 4*(int(p.pairs.len)+1) > 3*len(p.table) {
		p.grow()
	}
	h := uint32(xxh3.HashSeed(text, p.seed+uint64(name)))
	mask := uint32(len(p.table) - 1)
	slot := h & mask
	for ; p.table[slot] != 0; slot = (slot + 1) & mask {
		id := p.table[slot] - 1
		if s := p.pairs.get(id); s.hash == h && s.name == name && string(p.value(s)) == string(text) {
			return id, nil
		}
	}
	at, ok := p.text.alloc(uint32(len(text)))
	id, room := p.pairs.alloc(1)
	if !ok || !room {
		return 0, column.Invalid("labels of more than 4 GiB in one tenant of one part")
	}
	copy(p.text.slice(at, uint32(len(text))), text)
	*p.pairs.get(id) = pairState{name: name, text: at, length: uint32(len(text)), hash: h}
	if name == isName {
		p.names = append(p.names, id)
	} else {
		p.pairs.get(name).count++
	}
	p.table[slot] = id + 1
	return id, nil
}

// grow doubles the table, from the hashes alone, in the order of ids.
func (p *postings) grow() {
	p.table = make([]uint32, max(256, 2*len(p.table)))
	mask := uint32(len(p.table) - 1)
	for id := range p.pairs.len {
		slot := p.pairs.get(id).hash & mask
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

// appendRun writes a run of ranks: how many are left out since the run before, with a bit that says whether
// it is longer than one, and its length less two if it is.
func appendRun(dst []byte, gap, length uint32) []byte {
	if length == 1 {
		return binary.AppendUvarint(dst, uint64(gap)<<1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(gap)<<1|1), uint64(length-2))
}

// readRun reads what appendRun wrote.
func readRun(s *column.Scan) (gap, length uint64) {
	gap = s.Uvarint()
	if gap&1 == 0 {
		return gap >> 1, 1
	}
	return gap >> 1, s.Uvarint() + 2
}

// ranks appends the list of a pair to dst.
func (p *postings) ranks(dst []byte, s *pairState) []byte {
	return appendRun(p.lists.read(dst, &s.list), s.start-s.prev, s.end-s.start)
}
