package series

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/store/part/column"
)

// MaxListBytes is where the list of an entry is cut. What follows is another entry of the same name and
// value, so that no page grows far beyond its size.
const MaxListBytes = 32 << 10

// postingPage collects entries of one tenant, in the order of (name, value, first rank). An entry is
//
//	shared << 1 | new       bytes of the value that it shares with the entry before; whether a name follows
//	[length, name]          and with a new name nothing is shared
//	length, rest of the value
//	number of ranks
//	length of the list
//	first rank, less the tenant's first
//	list: runs, see appendRun, the first of which begins at the first rank, so that its gap is 0
type postingPage struct {
	tenant            uint32
	count             int
	first, last, name []byte // first value, last value, current name
	firstName         []byte
	buf               []byte
}

func (p *postingPage) add(name, value []byte, count, first uint32, list []byte) {
	isNew := uint64(0)
	shared := 0
	switch {
	case p.count == 0:
		p.buf = p.buf[:0]
		p.first, p.firstName = append(p.first[:0], value...), append(p.firstName[:0], name...)
		isNew = 1
	case string(name) != string(p.name):
		isNew = 1
	default:
		shared = commonPrefix(p.last, value)
	}
	p.buf = binary.AppendUvarint(p.buf, uint64(shared)<<1|isNew)
	if isNew == 1 {
		p.buf = column.AppendBytes(p.buf, name)
		p.name = append(p.name[:0], name...)
	}
	p.buf = column.AppendBytes(p.buf, value[shared:])
	p.last = append(p.last[:0], value...)
	p.buf = binary.AppendUvarint(p.buf, uint64(count))
	p.buf = binary.AppendUvarint(p.buf, uint64(len(list)))
	p.buf = binary.AppendUvarint(p.buf, uint64(first))
	p.buf = append(p.buf, list...)
	p.count++
}

func (p *postingPage) full(size int) bool { return len(p.buf) >= size }

// payload appends: ordinal of the tenant, number of entries, entries.
func (p *postingPage) payload(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.tenant))
	dst = binary.AppendUvarint(dst, uint64(p.count))
	return append(dst, p.buf...)
}

// cutList walks an encoded list and gives it back in pieces of about size bytes, each beginning with a gap of
// 0. Ranks are relative to the tenant's first. A list that is short enough is given back as it is.
func cutList(list []byte, scratch *[]byte, first uint32, size int, emit func(count, first uint32, list []byte) error) error {
	if len(list) <= size {
		s := column.Scan{Rest: list}
		count := uint64(0)
		for len(s.Rest) > 0 {
			_, length := readRun(&s)
			count += length
		}
		return emit(uint32(count), first, list)
	}
	s := column.Scan{Rest: list}
	piece := (*scratch)[:0]
	defer func() { *scratch = piece[:0] }()
	at := uint64(first)
	begin, count := at, uint64(0)
	for len(s.Rest) > 0 {
		gap, length := readRun(&s)
		at += gap
		if len(piece) >= size {
			if err := emit(uint32(count), uint32(begin), piece); err != nil {
				return err
			}
			piece, count, begin, gap = piece[:0], 0, at, 0
		}
		piece = appendRun(piece, uint32(gap), uint32(length))
		count += length
		at += length
	}
	return emit(uint32(count), uint32(begin), piece)
}

// postingDir walks the entries of a decoded page.
type postingDir struct {
	tenant uint32
	left   int
	rest   column.Scan

	name, value []byte // name aliases the page
	count       uint32
	first       uint32
	list        []byte
}

func (d *postingDir) decode(payload []byte) error {
	s := column.Scan{Rest: payload}
	d.tenant = uint32(s.Below(1<<32 - 1))
	d.left = s.Below(uint64(len(payload)))
	d.rest, d.name, d.value = s, nil, d.value[:0]
	if s.Bad || d.left == 0 {
		d.left = 0
		return column.Corrupt("page of postings: no header")
	}
	return nil
}

// next moves to the next entry. It returns false at the end of the page.
func (d *postingDir) next() (bool, error) {
	if d.left == 0 {
		return false, d.rest.End("page of postings")
	}
	d.left--
	s := &d.rest
	head := s.Uvarint()
	shared := head >> 1
	if head&1 == 1 {
		d.name = s.Bytes()
	}
	rest := s.Bytes()
	if s.Bad || shared > uint64(len(d.value)) || d.name == nil {
		return false, column.Corrupt("page of postings: an entry does not fit the one before")
	}
	d.value = append(d.value[:shared], rest...)
	d.count = uint32(s.Below(1<<32 - 1))
	listLen := s.Uvarint()
	d.first = uint32(s.Below(1<<32 - 1))
	d.list = s.Next(listLen)
	if err := s.Err("page of postings"); err != nil {
		d.left = 0
		return false, err
	}
	return true, nil
}

// runs gives the ranks of the entry, relative to the tenant's first, as runs [from, to). They are checked to
// ascend, to lie below series, and to be as many as the entry says.
func (d *postingDir) runs(series uint32, emit func(from, to uint32)) error {
	s := column.Scan{Rest: d.list}
	at, count := uint64(d.first), uint64(0)
	for i := 0; len(s.Rest) > 0; i++ {
		gap, length := readRun(&s)
		if s.Bad || gap > uint64(series) || length > uint64(series) || gap == 0 != (i == 0) {
			return column.Corrupt("page of postings: bad run in the list of %q=%q", d.name, d.value)
		}
		at += gap
		if at+length > uint64(series) {
			return column.Corrupt("page of postings: a rank of %q=%q lies beyond the tenant", d.name, d.value)
		}
		emit(uint32(at), uint32(at+length))
		at += length
		count += length
	}
	if count != uint64(d.count) || count == 0 {
		return column.Corrupt("page of postings: %d ranks of %q=%q, should be %d", count, d.name, d.value, d.count)
	}
	return nil
}
