package part

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
)

const (
	textMetadata byte = 1

	// unitBytes is where a unit is closed, in bytes of lines and metadata.
	unitBytes = 384 << 10
	// maxLineBytes bounds a line, and maxUnitRows the rows of a unit. A lines page holds the lines of a unit, and so about two
	// pages and one line at most.
	maxLineBytes = 8 << 20
	maxUnitRows  = maxPageLines
)

// unitCoder makes the payload of a page of text rows: all of a unit but the bytes of its lines.
type unitCoder struct {
	ints     intCoder
	metadata metadataCoder
	numbers  []int64
	ids      []int64 // by set of the rows: its number in the unit plus 1
	used     []model.Labels
}

// append writes the page of rows of consecutive ranks, whose numbers of rows are counts. The first rank is not in it, so that
// the page can be copied.
func (c *unitCoder) append(dst []byte, counts []int64, rows *model.TextRows) []byte {
	n := len(rows.Times)
	sets := c.sets(rows)
	flags := byte(0)
	if sets > 0 {
		flags |= textMetadata
	}
	dst = append(dst, byte(model.Text), flags)
	dst = binary.AppendUvarint(dst, uint64(len(counts)))
	dst = c.ints.append(dst, counts)
	dst = c.ints.append(dst, rows.Times)
	lens := grow(c.numbers[:0], n)
	begin := rows.Begin
	for i, end := range rows.Ends {
		lens[i] = int64(end - begin)
		begin = end
	}
	c.numbers = lens
	dst = c.ints.append(dst, lens)
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
	dst = c.ints.append(dst, refs)
	return c.metadata.append(dst, sets)
}

// sets numbers the sets of metadata that rows have, in the order in which rows need them, and returns how many there are.
func (c *unitCoder) sets(rows *model.TextRows) int {
	c.metadata.ints = &c.ints
	c.metadata.reset()
	c.used = c.used[:0]
	c.ids = grow(c.ids[:0], len(rows.Metadata))
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

// textUnit is a decoded page of text rows and, if they have been asked for, the lines.
type textUnit struct {
	counts     []int64
	begins     []uint32 // by rank, of its rows
	times      []int64
	ends       []uint32
	metadata   []model.Labels
	metadataOf []uint32
	lines      []byte

	ints    intDecoder
	numbers []int64
	sets    metadataDecoder
}

// lineBytes is the length of all lines together.
func (u *textUnit) lineBytes() uint64 {
	if len(u.ends) == 0 {
		return 0
	}
	return uint64(u.ends[len(u.ends)-1])
}

// open decodes a page of rows. The metadata does not alias the unit's memory, nor the payload.
func (u *textUnit) open(payload []byte) error {
	const object = "page of text"
	s := scan{b: payload}
	u.lines = nil
	family, flags := s.byte(), s.byte()
	if family != byte(model.Text) || flags&^textMetadata != 0 {
		return corrupt("%s: family %d with flags %x is unknown", object, family, flags)
	}
	ranks := s.below(maxPageRanks)
	u.counts = u.ints.append(u.counts[:0], &s, ranks)
	if s.bad || ranks == 0 {
		return corrupt("%s: no directory", object)
	}
	n := 0
	u.begins = u.begins[:0]
	for _, c := range u.counts {
		if c < 0 || c > int64(maxUnitRows-n) {
			return corrupt("%s: more than %d rows", object, maxUnitRows)
		}
		u.begins = append(u.begins, uint32(n))
		n += int(c)
	}
	if n == 0 {
		return corrupt("%s: no rows", object)
	}
	u.times = u.ints.append(u.times[:0], &s, n)
	u.numbers = u.ints.append(u.numbers[:0], &s, n)
	if s.bad {
		return s.err(object)
	}
	u.ends = grow(u.ends[:0], n)
	end := int64(0)
	for i, l := range u.numbers {
		if l < 0 || l > maxPageBytes-end {
			return corrupt("%s: lines of more than %d bytes", object, maxPageBytes)
		}
		end += l
		u.ends[i] = uint32(end)
	}
	if err := u.openMetadata(&s, n, flags); err != nil {
		return err
	}
	if err := s.end(object); err != nil {
		return err
	}
	return u.checkTimes()
}

func (u *textUnit) openMetadata(s *scan, n int, flags byte) (err error) {
	u.metadata, u.metadataOf = u.metadata[:0], u.metadataOf[:0]
	if flags&textMetadata == 0 {
		return nil
	}
	sets := s.below(uint64(n))
	u.numbers = u.ints.append(u.numbers[:0], s, n)
	if s.bad {
		return s.err("page of text")
	}
	u.metadataOf = grow(u.metadataOf, n)
	for i, ref := range u.numbers {
		if ref < 0 || ref > int64(sets) {
			return corrupt("page of text: a row has metadata that is not there")
		}
		u.metadataOf[i] = uint32(ref)
	}
	u.metadata, err = u.sets.read(u.metadata, s, sets)
	return err
}

func (u *textUnit) checkTimes() error {
	for i, n := range u.counts {
		times := u.times[u.begins[i]:][:n]
		for k := 1; k < len(times); k++ {
			if times[k] < times[k-1] {
				return corrupt("page of text: times do not ascend")
			}
		}
	}
	return nil
}

// is verifies that the unit is the one that the index names.
func (u *textUnit) is(e *pageEntry) error {
	times := noTimes
	for i, n := range u.counts {
		if n > 0 {
			begin := int(u.begins[i])
			times.Min, times.Max = min(times.Min, u.times[begin]), max(times.Max, u.times[begin+int(n)-1])
		}
	}
	if uint32(len(u.counts)) != e.ranks || uint64(len(u.times)) != e.rows || u.lineBytes() != e.text.bytes || times != e.times {
		return corrupt("page of text is not the one that the index names")
	}
	return nil
}

// setLines takes the payload of the lines page.
func (u *textUnit) setLines(lines []byte) error {
	if uint64(len(lines)) != u.lineBytes() {
		return corrupt("page of lines: %d bytes, should be %d", len(lines), u.lineBytes())
	}
	u.lines = lines
	return nil
}

// view makes dst a view of the rows of the i-th rank of the unit.
func (u *textUnit) view(i int, dst *model.TextRows) {
	all := model.TextRows{Times: u.times, Bytes: u.lines, Ends: u.ends, Metadata: u.metadata, MetadataOf: u.metadataOf}
	viewRows(dst, &all, int(u.begins[i]), int(u.begins[i])+int(u.counts[i]))
}

// shrink forgets what only decoding needs.
func (u *textUnit) shrink() { u.ints, u.numbers, u.sets = intDecoder{}, nil, metadataDecoder{} }
