package text

import (
	"encoding/binary"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

const (
	textMetadata byte = 1

	// UnitBytes is the size at which a unit is closed, in bytes of lines and metadata.
	UnitBytes = 384 << 10
	// MaxLineBytes bounds a line, and maxUnitRows the rows of a unit. A lines page holds the lines of a unit,
	// and so about two pages and one line at most.
	MaxLineBytes = 8 << 20
	MaxUnitRows  = lines.MaxPageLines
)

// unitCoder makes the payload of a page of text rows: a unit without the bytes of its lines.
type unitCoder struct {
	ints     column.IntCoder
	metadata metadataCoder
	numbers  []int64
	ids      []int64 // by set of the rows: its number in the unit plus 1
	used     []model.Labels
}

// append writes the page of rows of consecutive ranks, whose numbers of rows are counts. The first rank is
// not in it, so that the page can be copied.
func (c *unitCoder) append(dst []byte, counts []int64, rows *model.TextRows) []byte {
	n := len(rows.Times)
	sets := c.sets(rows)
	flags := byte(0)
	if sets > 0 {
		flags |= textMetadata
	}
	dst = append(dst, byte(model.Text), flags)
	dst = binary.AppendUvarint(dst, uint64(len(counts)))
	dst = c.ints.Append(dst, counts)
	dst = c.ints.Append(dst, rows.Times)
	lens := column.Grow(c.numbers[:0], n)
	begin := rows.Begin
	for i, end := range rows.Ends {
		lens[i] = int64(end - begin)
		begin = end
	}
	c.numbers = lens
	dst = c.ints.Append(dst, lens)
	if sets == 0 {
		return dst
	}
	refs := c.numbers
	for i, id := range rows.MetadataOf {
		refs[i] = 0
		if id > 0 {
			refs[i] = c.ids[id-1]
		}
	}
	dst = binary.AppendUvarint(dst, uint64(sets))
	dst = c.ints.Append(dst, refs)
	return c.metadata.append(dst, sets)
}

// sets numbers the sets of metadata that rows have, in the order in which rows need them, and returns how
// many there are.
func (c *unitCoder) sets(rows *model.TextRows) int {
	c.metadata.ints = &c.ints
	c.metadata.reset()
	c.used = c.used[:0]
	c.ids = column.Grow(c.ids[:0], len(rows.Metadata))
	clear(c.ids)
	n := 0
	for _, id := range rows.MetadataOf {
		if id > 0 && c.ids[id-1] == 0 {
			c.metadata.add(n, rows.Metadata[id-1])
			c.used = append(c.used, rows.Metadata[id-1])
			n++
			c.ids[id-1] = int64(n)
		}
	}
	return n
}

// columns are the columns of a unit that are decoded. Each value has those of the values after it.
type columns uint8

const (
	allColumns columns = iota
	lengthColumn
	timeColumn
)

// columnsOf returns the columns that a page needs.
func columnsOf(want model.TextWant) columns {
	switch want {
	case model.WantNoMore:
		return timeColumn
	case model.WantLengths, model.WantLengths | model.WantNoMore:
		return lengthColumn
	}
	return allColumns
}

// unit is a decoded page of text rows, with its lines if they are wanted.
type unit struct {
	file.RankRows
	ends       []uint32
	metadata   []model.Labels
	metadataOf []uint32
	lines      []byte
	// columns says which columns decode decodes.
	columns columns

	ints    column.IntDecoder
	numbers []int64
	sets    metadataDecoder
}

// lineBytes is the length of all lines together.
func (u *unit) lineBytes() uint64 {
	if len(u.ends) == 0 {
		return 0
	}
	return uint64(u.ends[len(u.ends)-1])
}

// decode decodes a page of rows. The metadata does not alias the unit's memory, nor the payload.
func (u *unit) decode(payload []byte) error {
	const object = "page of text"
	s := column.Scan{Rest: payload}
	u.lines = nil
	family, flags := s.Byte(), s.Byte()
	if family != byte(model.Text) || flags&^textMetadata != 0 {
		return column.Corrupt("%s: family %d with flags %x is unknown", object, family, flags)
	}
	n, err := u.Read(&u.ints, &s, object, MaxUnitRows)
	if err != nil {
		return err
	}
	u.ends = u.ends[:0]
	if u.columns == timeColumn {
		if s.Bad {
			return s.Err(object)
		}
		return u.CheckTimes(object)
	}
	u.numbers = u.ints.Append(u.numbers[:0], &s, n)
	if s.Bad {
		return s.Err(object)
	}
	u.ends = column.Grow(u.ends, n)
	end := int64(0)
	for i, l := range u.numbers {
		if l < 0 || l > file.MaxPageBytes-end {
			return column.Corrupt("%s: lines of more than %d bytes", object, file.MaxPageBytes)
		}
		end += l
		u.ends[i] = uint32(end)
	}
	if u.columns == lengthColumn {
		return u.CheckTimes(object)
	}
	if err := u.openMetadata(&s, n, flags); err != nil {
		return err
	}
	if err := s.End(object); err != nil {
		return err
	}
	return u.CheckTimes(object)
}

func (u *unit) openMetadata(s *column.Scan, n int, flags byte) (err error) {
	u.metadata, u.metadataOf = u.metadata[:0], u.metadataOf[:0]
	if flags&textMetadata == 0 {
		return nil
	}
	sets := s.Below(uint64(n))
	u.numbers = u.ints.Append(u.numbers[:0], s, n)
	if s.Bad {
		return s.Err("page of text")
	}
	u.metadataOf = column.Grow(u.metadataOf, n)
	for i, ref := range u.numbers {
		if ref < 0 || ref > int64(sets) {
			return column.Corrupt("page of text: a row has metadata that is not there")
		}
		u.metadataOf[i] = uint32(ref)
	}
	u.metadata, err = u.sets.read(u.metadata, s, sets)
	return err
}

// checkEntry verifies that the unit is the one that the index names.
func (u *unit) checkEntry(e *file.Entry) error {
	times := file.NoTimes
	for i, n := range u.Counts {
		if n > 0 {
			begin := int(u.Begins[i])
			times.Min, times.Max = min(times.Min, u.Times[begin]), max(times.Max, u.Times[begin+int(n)-1])
		}
	}
	if uint32(len(u.Counts)) != e.Ranks || uint64(len(u.Times)) != e.Rows || times != e.Times || u.columns != timeColumn && u.lineBytes() != e.Text.Bytes {
		return column.Corrupt("page of text is not the one that the index names")
	}
	return nil
}

// setLines sets the payload of the page of lines.
func (u *unit) setLines(lines []byte) error {
	if uint64(len(lines)) != u.lineBytes() {
		return column.Corrupt("page of lines: %d bytes, should be %d", len(lines), u.lineBytes())
	}
	u.lines = lines
	return nil
}

// view makes dst a view of the rows of the i-th rank of the unit.
func (u *unit) view(i int, dst *model.TextRows) {
	all := model.TextRows{Times: u.Times, Bytes: u.lines, Ends: u.ends, Metadata: u.metadata, MetadataOf: u.metadataOf}
	if u.columns == timeColumn {
		begin := u.Begins[i]
		*dst = model.TextRows{Times: u.Times[begin:][:u.Counts[i]]}
		return
	}
	ViewRows(dst, &all, int(u.Begins[i]), int(u.Begins[i])+int(u.Counts[i]))
}

// shrink drops memory that only decoding needs.
func (u *unit) shrink() { u.ints, u.numbers, u.sets = column.IntDecoder{}, nil, metadataDecoder{} }

// countedUnits keep their memory for the next page: a query that counts lines decodes tens of thousands, and
// copies what it needs of each. Units with lines or metadata are not kept, because rows alias them.
var countedUnits = sync.Pool{New: func() any { return new(unit) }}

// newUnit returns a unit to decode columns into.
func newUnit(c columns) *unit {
	if c == allColumns {
		return &unit{columns: c}
	}
	u := countedUnits.Get().(*unit)
	u.columns = c
	return u
}

// release gives up a unit that nothing refers to any more.
func (u *unit) release() {
	if u.columns != allColumns {
		u.sets.charge = nil
		countedUnits.Put(u)
	}
}
