package file

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

// Entry describes a data page in an index page, and an index page in the footer, where it sums up what the
// page lists. Which fields count depends on the section.
type Entry struct {
	Addr Addr
	// All but postings: the page covers the ranks [rank0, rank0+ranks). A series that fills a page of rows
	// goes on in the next, so neighbours there may share a rank.
	Rank0, Ranks uint32
	// Keys: the first key.
	Key model.Key
	// Rows of any family.
	Rows  uint64
	Times model.TimeRange
	// Text.
	Text UnitPages
	// Postings: the ordinal of the tenant, and the name and value of the first entry.
	Tenant      uint32
	Name, Value []byte
}

// MaxFilters bounds the filters of a page of filters.
const MaxFilters = 1 << 12

// UnitPages are the addresses of the other pages of a unit of text.
type UnitPages struct {
	// Bytes are those of all lines.
	Bytes uint64
	// Lines is the page of lines. A length of 0 means that all lines are empty: then there is no such page.
	Lines Addr
	// Filter is the page that has the unit's filter; Number is the filter's number there. A length of 0 means
	// that the unit has no filter.
	Filter Addr
	Number uint32
}

// end is the offset after the page and, for text, after the page of lines.
func (e *Entry) end() int64 { return max(e.Addr.end(), e.Text.Lines.end()) }

// Last is the last rank that the page covers.
func (e *Entry) Last() uint32 { return e.Rank0 + e.Ranks - 1 }

// entryCoder writes, or reads, entries of one section one after the other.
type entryCoder struct {
	end   int64 // of the last page
	lines int64 // the end of the last page of lines
	rank  uint32
	next  uint64 // while reading: the rank after those of the last entry; 0 before the first
}

func (c *entryCoder) append(dst []byte, s *Section, e *Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.Addr.Off-c.end))
	dst = binary.AppendUvarint(dst, uint64(e.Addr.Len))
	c.end = e.Addr.end()
	if s.Form == PairEntries {
		dst = binary.AppendUvarint(dst, uint64(e.Tenant))
		return column.AppendBytes(column.AppendBytes(dst, e.Name), e.Value)
	}
	dst = binary.AppendUvarint(dst, uint64(e.Rank0-c.rank))
	dst = binary.AppendUvarint(dst, uint64(e.Ranks-1))
	c.rank = e.Rank0
	switch {
	case s.Form == KeyEntries:
		dst = e.Key.Append(dst)
	case s.rows():
		dst = binary.AppendUvarint(dst, e.Rows)
		dst = binary.AppendVarint(dst, e.Times.Min)
		dst = binary.AppendUvarint(dst, uint64(e.Times.Max-e.Times.Min))
		if s.Form == UnitEntries {
			dst = c.appendText(dst, e)
		}
	}
	return dst
}

func (c *entryCoder) appendText(dst []byte, e *Entry) []byte {
	dst = binary.AppendUvarint(dst, e.Text.Bytes)
	dst = binary.AppendUvarint(dst, uint64(e.Text.Lines.Len))
	if e.Text.Lines.Len > 0 {
		dst = binary.AppendUvarint(dst, uint64(e.Text.Lines.Off-c.lines))
		c.lines = e.Text.Lines.end()
	}
	dst = binary.AppendUvarint(dst, uint64(e.Text.Filter.Len))
	if e.Text.Filter.Len > 0 {
		dst = binary.AppendUvarint(dst, uint64(e.Text.Filter.Off-e.end()))
		dst = binary.AppendUvarint(dst, uint64(e.Text.Number))
	}
	return dst
}

func (c *entryCoder) readText(s *column.Scan, e *Entry, size int64) {
	e.Text.Bytes = s.Uvarint()
	e.Text.Lines.Len = uint32(s.Below(MaxPageBytes + envelopeMax))
	if e.Text.Lines.Len > 0 {
		e.Text.Lines.Off = c.lines + int64(s.Below(uint64(size)))
		c.lines = e.Text.Lines.end()
	}
	e.Text.Filter.Len = uint32(s.Below(MaxPageBytes + envelopeMax))
	if e.Text.Filter.Len > 0 {
		e.Text.Filter.Off = e.end() + int64(s.Below(uint64(size)))
		e.Text.Number = uint32(s.Below(MaxFilters))
	}
	if e.end() > size || e.Text.Filter.Off+int64(e.Text.Filter.Len) > size {
		s.Fail()
	}
}

// followed reports whether the next entry may begin with a rank: neighbours may share one where rows go on;
// the others leave no gap.
func (c *entryCoder) followed(sec *Section, rank0 uint64) bool {
	return c.next == 0 || sec.Form == PairEntries || sec.rows() && rank0+1 >= c.next || rank0 == c.next
}

// leadsTo reports whether an entry that was read without the one before may follow it.
func (c *entryCoder) leadsTo(sec *Section, e *Entry) bool {
	if e.Text.Lines.Len > 0 && e.Text.Lines.Off < c.lines {
		return false
	}
	return e.Addr.Off >= c.end && c.followed(sec, uint64(e.Rank0))
}

// read reads the next entry. Offsets are checked against the size of the file, ranks against 32 bits.
func (c *entryCoder) read(s *column.Scan, sec *Section, size int64) Entry {
	var e Entry
	e.Addr.Off = c.end + int64(s.Below(uint64(size)))
	e.Addr.Len = uint32(s.Below(MaxPageBytes + envelopeMax))
	if c.end = e.Addr.end(); c.end > size {
		s.Fail()
	}
	if sec.Form == PairEntries {
		e.Tenant = uint32(s.Below(1<<32 - 1))
		e.Name, e.Value = s.Bytes(), s.Bytes()
		return e
	}
	rank0 := uint64(c.rank) + uint64(s.Below(1<<32-1))
	ranks := uint64(s.Below(1<<32-2)) + 1
	if rank0+ranks > 1<<32 {
		s.Fail()
	}
	if !c.followed(sec, rank0) {
		s.Fail()
	}
	c.next = rank0 + ranks
	e.Rank0, e.Ranks = uint32(rank0), uint32(ranks)
	c.rank = e.Rank0
	switch {
	case sec.Form == KeyEntries:
		if b := s.Next(model.KeyBytes); b != nil {
			e.Key = model.KeyFrom(b)
		}
	case sec.rows():
		e.Rows = s.Uvarint()
		e.Times.Min = s.Varint()
		e.Times.Max = e.Times.Min + int64(s.Uvarint())
		if sec.Form == UnitEntries {
			c.readText(s, &e, size)
		}
	}
	return e
}

// IndexWriter collects the entries of one section and closes an index page whenever one is full.
type IndexWriter struct {
	Section *Section
	coder   entryCoder
	buf     []byte
	ends    []byte // see indexDir
	count   int
	sum     Entry
	pages   []Entry
}

// Add takes the entry of a page that has been written. It keeps no reference to its name and value.
func (x *IndexWriter) Add(e Entry) {
	if x.count == 0 {
		x.sum = e
		x.sum.Text = UnitPages{Bytes: e.Text.Bytes}
		x.sum.Name, x.sum.Value = append([]byte(nil), e.Name...), append([]byte(nil), e.Value...)
	} else {
		x.sum.Ranks = e.Last() - x.sum.Rank0 + 1
		x.sum.Rows += e.Rows
		x.sum.Text.Bytes += e.Text.Bytes
		x.sum.Times.Min, x.sum.Times.Max = min(x.sum.Times.Min, e.Times.Min), max(x.sum.Times.Max, e.Times.Max)
	}
	if x.count%indexRun == 0 {
		if x.coder = (entryCoder{}); x.count > 0 {
			x.ends = binary.LittleEndian.AppendUint32(x.ends, uint32(len(x.buf)))
		}
	}
	x.buf = x.coder.append(x.buf, x.Section, &e)
	x.count++
}

// full reports whether the page should be closed.
func (x *IndexWriter) full(size int) bool { return len(x.buf) >= size }

// Payload returns the index page; sealed tells where it went.
func (x *IndexWriter) Payload(dst []byte) []byte {
	kind := x.Section.stored()
	dst = append(dst, kind[:]...)
	dst = binary.AppendUvarint(dst, uint64(x.count))
	dst = append(dst, x.ends...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(x.buf)))
	return append(dst, x.buf...)
}

func (x *IndexWriter) sealed(a Addr) {
	x.sum.Addr = a
	x.pages = append(x.pages, x.sum)
	x.buf, x.ends, x.count = x.buf[:0], x.ends[:0], 0
}
