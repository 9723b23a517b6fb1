package part

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
)

// pageEntry describes a data page in an index page, and an index page in the footer, where it sums up what the page
// lists. Which fields count depends on the section.
type pageEntry struct {
	addr Addr
	// All but postings: the page covers the ranks [rank0, rank0+ranks). A series that fills a page of rows
	// goes on in the next, so neighbours there may share a rank.
	rank0, ranks uint32
	// Keys: the first key.
	key model.Key
	// Rows of any family.
	rows  uint64
	times model.TimeRange
	// Text.
	text textPlace
	// Postings: the ordinal of the tenant, and the name and value of the first entry.
	tenant      uint32
	name, value []byte
}

// maxFilters bounds the filters of a page of filters.
const maxFilters = 1 << 12

// textPlace is what an entry of text has beside: where the unit's other pages are.
type textPlace struct {
	// bytes are those of all lines.
	bytes uint64
	// lines is the stored length of the page of lines, which lies behind that of rows; 0: there is none, since all lines are
	// empty.
	lines uint32
	// filter is the page that has the unit's filter, as its number-th; a length of 0 means that there is none.
	filter Addr
	number uint32
}

// linesAddr is the place of the unit's lines.
func (e *pageEntry) linesAddr() Addr {
	return Addr{Off: e.addr.Off + int64(e.addr.Len), Len: e.text.lines}
}

// end is the offset behind the page and, of text, behind the page of lines.
func (e *pageEntry) end() int64 { return e.addr.Off + int64(e.addr.Len) + int64(e.text.lines) }

// last is the last rank that the page covers.
func (e *pageEntry) last() uint32 { return e.rank0 + e.ranks - 1 }

// entryCoder writes, or reads, entries of one section one after the other.
type entryCoder struct {
	end  int64
	rank uint32
	next uint64 // while reading: the rank after those of the last entry; 0 before the first
}

func (c *entryCoder) append(dst []byte, s *section, e *pageEntry) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.addr.Off-c.end))
	dst = binary.AppendUvarint(dst, uint64(e.addr.Len))
	c.end = e.end()
	if s.form == pairEntries {
		dst = binary.AppendUvarint(dst, uint64(e.tenant))
		return appendBytes(appendBytes(dst, e.name), e.value)
	}
	dst = binary.AppendUvarint(dst, uint64(e.rank0-c.rank))
	dst = binary.AppendUvarint(dst, uint64(e.ranks-1))
	c.rank = e.rank0
	switch {
	case s.form == keyEntries:
		dst = e.key.Append(dst)
	case s.rows():
		dst = binary.AppendUvarint(dst, e.rows)
		dst = binary.AppendVarint(dst, e.times.Min)
		dst = binary.AppendUvarint(dst, uint64(e.times.Max-e.times.Min))
		if s.form == unitEntries {
			dst = e.appendText(dst)
		}
	}
	return dst
}

func (e *pageEntry) appendText(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, e.text.bytes)
	dst = binary.AppendUvarint(dst, uint64(e.text.lines))
	dst = binary.AppendUvarint(dst, uint64(e.text.filter.Len))
	if e.text.filter.Len > 0 {
		dst = binary.AppendUvarint(dst, uint64(e.text.filter.Off-e.end()))
		dst = binary.AppendUvarint(dst, uint64(e.text.number))
	}
	return dst
}

func (e *pageEntry) readText(s *scan, size int64) {
	e.text.bytes = s.uvarint()
	e.text.lines = uint32(s.below(maxPageBytes + envelopeMax))
	e.text.filter.Len = uint32(s.below(maxPageBytes + envelopeMax))
	if e.text.filter.Len > 0 {
		e.text.filter.Off = e.end() + int64(s.below(uint64(size)))
		e.text.number = uint32(s.below(maxFilters))
	}
	if e.end() > size || e.text.filter.Off+int64(e.text.filter.Len) > size {
		s.fail()
	}
}

// followed reports whether the next entry may begin with a rank: neighbours may share one where rows go on; the others leave no gap.
func (c *entryCoder) followed(sec *section, rank0 uint64) bool {
	return c.next == 0 || sec.form == pairEntries || sec.rows() && rank0+1 >= c.next || rank0 == c.next
}

// leadsTo reports whether an entry that was read without the one before may follow it.
func (c *entryCoder) leadsTo(sec *section, e *pageEntry) bool {
	return e.addr.Off >= c.end && c.followed(sec, uint64(e.rank0))
}

// read reads the next entry. Offsets are checked against the size of the file, ranks against 32 bits.
func (c *entryCoder) read(s *scan, sec *section, size int64) pageEntry {
	var e pageEntry
	e.addr.Off = c.end + int64(s.below(uint64(size)))
	e.addr.Len = uint32(s.below(maxPageBytes + envelopeMax))
	if c.end = e.addr.Off + int64(e.addr.Len); c.end > size {
		s.fail()
	}
	if sec.form == pairEntries {
		e.tenant = uint32(s.below(1<<32 - 1))
		e.name, e.value = s.bytes(), s.bytes()
		return e
	}
	rank0 := uint64(c.rank) + uint64(s.below(1<<32-1))
	ranks := uint64(s.below(1<<32-2)) + 1
	if rank0+ranks > 1<<32 {
		s.fail()
	}
	if !c.followed(sec, rank0) {
		s.fail()
	}
	c.next = rank0 + ranks
	e.rank0, e.ranks = uint32(rank0), uint32(ranks)
	c.rank = e.rank0
	switch {
	case sec.form == keyEntries:
		if b := s.take(model.KeyBytes); b != nil {
			e.key = model.KeyFrom(b)
		}
	case sec.rows():
		e.rows = s.uvarint()
		e.times.Min = s.varint()
		e.times.Max = e.times.Min + int64(s.uvarint())
		if sec.form == unitEntries {
			e.readText(s, size)
			c.end = e.end()
		}
	}
	return e
}

// indexWriter collects the entries of one section and closes an index page whenever one is full.
type indexWriter struct {
	section *section
	coder   entryCoder
	buf     []byte
	ends    []byte // see indexDir
	count   int
	sum     pageEntry
	pages   []pageEntry
}

// add takes the entry of a page that has been written. It keeps no reference to its name and value.
func (x *indexWriter) add(e pageEntry) {
	if x.count == 0 {
		x.sum = e
		x.sum.text = textPlace{bytes: e.text.bytes}
		x.sum.name, x.sum.value = append([]byte(nil), e.name...), append([]byte(nil), e.value...)
	} else {
		x.sum.ranks = e.last() - x.sum.rank0 + 1
		x.sum.rows += e.rows
		x.sum.text.bytes += e.text.bytes
		x.sum.times.Min, x.sum.times.Max = min(x.sum.times.Min, e.times.Min), max(x.sum.times.Max, e.times.Max)
	}
	if x.count%indexRun == 0 {
		if x.coder = (entryCoder{}); x.count > 0 {
			x.ends = binary.LittleEndian.AppendUint32(x.ends, uint32(len(x.buf)))
		}
	}
	x.buf = x.coder.append(x.buf, x.section, &e)
	x.count++
}

// full reports whether the page should be closed.
func (x *indexWriter) full(size int) bool { return len(x.buf) >= size }

// payload returns the index page; sealed tells where it went.
func (x *indexWriter) payload(dst []byte) []byte {
	kind := x.section.stored()
	dst = append(dst, kind[:]...)
	dst = binary.AppendUvarint(dst, uint64(x.count))
	dst = append(dst, x.ends...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(x.buf)))
	return append(dst, x.buf...)
}

func (x *indexWriter) sealed(a Addr) {
	x.sum.addr = a
	x.pages = append(x.pages, x.sum)
	x.buf, x.ends, x.count = x.buf[:0], x.ends[:0], 0
}
