package text

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

const (
	// maxTextCells bounds the sets of structured metadata of a unit times the names in them, since a column
	// says of each set whether it has the name.
	maxTextCells = 1 << 20
	// maxTextNames bounds the names. A single set cannot have more, or it would have more than
	// model.MaxLabelBytes.
	maxTextNames = model.MaxLabelBytes / 8
	// maxTextMetadata bounds the canonical bytes of the sets of a unit. Writers close a unit long before.
	maxTextMetadata = file.MaxPageBytes

	metadataPlain byte = 0
	metadataDict  byte = 1
)

// metadataCoder splits sets of structured metadata into one column per name. Trace ids then have a column of
// their own, and the labels next to them cost little.
type metadataCoder struct {
	ints    *column.IntCoder
	names   map[string]*metadataColumn
	order   []*metadataColumn
	spare   []*metadataColumn
	numbers []int64
	most    int // names: see emptied
}

// A coder keeps a few columns that are not in use.
const maxSpareColumns, maxSpareBytes = 256, 4 << 20

// metadataColumn are the values of one name.
type metadataColumn struct {
	name   []byte
	sets   []int64 // which have the name
	lens   []int64
	values []byte

	dict       map[string]int64
	dictLens   []int64
	dictValues []byte
	refs       []int64
}

func (c *metadataCoder) reset() {
	size := 0
	for _, col := range c.spare {
		size += col.size()
	}
	for _, col := range c.order {
		if n := col.size(); len(c.spare) < maxSpareColumns && size+n <= maxSpareBytes {
			c.spare = append(c.spare, col)
			size += n
		}
	}
	clear(c.order)
	if c.order = c.order[:0]; cap(c.order) > 4*maxSpareColumns {
		c.order = nil
	}
	c.names = emptied(c.names, &c.most)
}

// size is about what the column takes in memory.
func (col *metadataColumn) size() int {
	return 8*(cap(col.sets)+cap(col.lens)+cap(col.dictLens)+cap(col.refs)) + cap(col.name) + cap(col.values) + 2*cap(col.dictValues) + 32*cap(col.dictLens)
}

// add splits set number i.
func (c *metadataCoder) add(i int, l model.Labels) {
	for name, value, rest, ok := l.Next(); ok; name, value, rest, ok = rest.Next() {
		col := c.names[string(name)]
		if col == nil {
			col = c.column(name)
		}
		col.sets = append(col.sets, int64(i))
		col.lens = append(col.lens, int64(len(value)))
		col.values = append(col.values, value...)
	}
}

func (c *metadataCoder) column(name []byte) *metadataColumn {
	var col *metadataColumn
	if n := len(c.spare); n > 0 {
		col, c.spare = c.spare[n-1], c.spare[:n-1]
		col.sets, col.lens, col.values = col.sets[:0], col.lens[:0], col.values[:0]
	} else {
		col = &metadataColumn{}
	}
	col.name = append(col.name[:0], name...)
	if c.names == nil {
		c.names = make(map[string]*metadataColumn)
	}
	c.names[string(name)] = col
	c.order = append(c.order, col)
	return col
}

// append writes the columns of n sets, by name.
func (c *metadataCoder) append(dst []byte, n int) []byte {
	slices.SortFunc(c.order, func(a, b *metadataColumn) int { return slices.Compare(a.name, b.name) })
	dst = binary.AppendUvarint(dst, uint64(len(c.order)))
	for _, col := range c.order {
		dst = column.AppendBytes(dst, col.name)
		c.numbers = column.Grow(c.numbers[:0], n)
		clear(c.numbers)
		for _, i := range col.sets {
			c.numbers[i] = 1
		}
		dst = c.ints.Append(dst, c.numbers)
		dst = col.append(dst, c.ints)
	}
	return dst
}

// append writes the values: each distinct one once, if they are few.
func (col *metadataColumn) append(dst []byte, ints *column.IntCoder) []byte {
	if !col.makeDictionary() {
		dst = ints.Append(append(dst, metadataPlain), col.lens)
		return append(dst, col.values...)
	}
	dst = binary.AppendUvarint(append(dst, metadataDict), uint64(len(col.dictLens)))
	dst = ints.Append(dst, col.dictLens)
	dst = append(dst, col.dictValues...)
	return ints.Append(dst, col.refs)
}

// makeDictionary makes the dictionary, in the order of the values, and reports whether it has at most half as
// many values.
func (col *metadataColumn) makeDictionary() bool {
	if col.dict == nil {
		col.dict = make(map[string]int64)
	}
	clear(col.dict)
	col.refs, col.dictLens, col.dictValues = col.refs[:0], col.dictLens[:0], col.dictValues[:0]
	at := 0
	for _, n := range col.lens {
		v := col.values[at : at+int(n)]
		at += int(n)
		id, ok := col.dict[string(v)]
		if !ok {
			if len(col.dict) >= (len(col.lens)+1)/2 {
				return false
			}
			id = int64(len(col.dict))
			col.dict[string(v)] = id
			col.dictLens = append(col.dictLens, n)
			col.dictValues = append(col.dictValues, v...)
		}
		col.refs = append(col.refs, id)
	}
	return true
}

// metadataDecoder joins the columns to the sets of a unit.
type metadataDecoder struct {
	ints column.IntDecoder
	cols []decodedColumn
	// block is the memory from which columns take slices of numbers, so that many names share an allocation.
	block []int64
	// charge, if set, is called before memory is allocated, and with a negative number when it is free again.
	charge func(bytes int64) error
}

const (
	// decodedColumnBytes is what a column takes besides its numbers, of which there are three for a set at
	// most.
	decodedColumnBytes = 160
	minColumnBytes     = 7 // as stored
	blockNumbers       = 4 << 10
	setBytes           = 24 // of a decoded set, besides its bytes
)

// column64 reads a column of n numbers.
func (d *metadataDecoder) column64(s *column.Scan, n int) []int64 {
	if cap(d.block)-len(d.block) < n {
		d.block = make([]int64, 0, max(n, min(blockNumbers, 4*n)))
	}
	at := len(d.block)
	out := d.ints.Append(d.block[at:at:at+n], s, n)
	d.block = d.block[:at+n]
	return out
}

func (d *metadataDecoder) chargeFor(bytes int64) error {
	if d.charge == nil {
		return nil
	}
	return d.charge(bytes)
}

type decodedColumn struct {
	name   []byte
	has    []int64
	lens   []int64
	values []byte
	// ends are those of the dictionary's values; refs is nil without one.
	ends []int64
	refs []int64
	next int // value
	at   int // byte
}

// value returns the next value. There must be one.
func (c *decodedColumn) value() []byte {
	k := c.next
	c.next++
	if c.refs == nil {
		v := c.values[c.at : c.at+int(c.lens[k])]
		c.at += len(v)
		return v
	}
	ref := c.refs[k]
	begin := int64(0)
	if ref > 0 {
		begin = c.ends[ref-1]
	}
	return c.values[begin:c.ends[ref]]
}

func (c *decodedColumn) rewind() { c.next, c.at = 0, 0 }

// read appends n sets to dst. Their bytes are allocated all at once, since they outlive the decoder.
func (d *metadataDecoder) read(dst []model.Labels, s *column.Scan, n int) ([]model.Labels, error) {
	const object = "page of text: metadata"
	names := s.Below(maxTextNames)
	if s.Bad || names == 0 || n == 0 || n > maxTextCells/names || names > len(s.Rest)/minColumnBytes {
		return dst, column.Corrupt("%s: %d names of %d sets", object, names, n)
	}
	columns := int64(names)*decodedColumnBytes + 24*int64(names)*int64(n)
	if err := d.chargeFor(columns); err != nil {
		return dst, err
	}
	if d.block = d.block[:0]; cap(d.cols) < names {
		d.cols = make([]decodedColumn, 0, names)
	}
	d.cols = d.cols[:0]
	for i := range names {
		if s.Bad {
			break
		}
		d.cols = append(d.cols, decodedColumn{})
		c := &d.cols[i]
		c.name = s.Bytes()
		if i > 0 && slices.Compare(d.cols[i-1].name, c.name) >= 0 {
			return dst, column.Corrupt("%s: %q stands after %q", object, c.name, d.cols[i-1].name)
		}
		if err := d.column(c, s, n); err != nil {
			return dst, err
		}
	}
	if err := s.Err(object); err != nil {
		return dst, err
	}
	total := 0
	for i := range n {
		for k := range d.cols {
			if c := &d.cols[k]; c.has[i] != 0 {
				total += pairLen(len(c.name), len(c.value()))
			}
		}
		if total > maxTextMetadata {
			return dst, column.Corrupt("%s: more than %d bytes", object, maxTextMetadata)
		}
	}
	if err := d.chargeFor(int64(total) + setBytes*int64(n)); err != nil {
		return dst, err
	}
	buf := make([]byte, 0, total)
	for k := range d.cols {
		d.cols[k].rewind()
	}
	for i := range n {
		begin := len(buf)
		for k := range d.cols {
			if c := &d.cols[k]; c.has[i] != 0 {
				buf = appendPair(buf, c.name, c.value())
			}
		}
		if len(buf) == begin {
			return dst, column.Corrupt("%s: an empty set", object)
		}
		dst = append(dst, model.Labels(buf[begin:len(buf):len(buf)]))
	}
	return dst, d.chargeFor(-columns)
}

func (d *metadataDecoder) column(c *decodedColumn, s *column.Scan, n int) error {
	const object = "page of text: metadata"
	c.has = d.column64(s, n)
	if s.Bad {
		return s.Err(object)
	}
	m := 0
	for _, h := range c.has {
		if h&^1 != 0 {
			return column.Corrupt("%s: a set has %d values of a name", object, h)
		}
		m += int(h)
	}
	if m == 0 {
		return column.Corrupt("%s: a name without values", object)
	}
	kind, count := s.Byte(), m
	if kind == metadataDict {
		count = s.Below(uint64(m))
	}
	if kind > metadataDict || s.Bad || count == 0 {
		return column.Corrupt("%s: no values", object)
	}
	c.lens = d.column64(s, count)
	if s.Bad {
		return s.Err(object)
	}
	size := int64(0)
	for i, l := range c.lens {
		if l <= 0 || l > file.MaxPageBytes || size > file.MaxPageBytes {
			return column.Corrupt("%s: a value of %d bytes", object, l)
		}
		size += l
		if kind == metadataDict {
			c.lens[i] = size
		}
	}
	c.values = s.Next(uint64(size))
	if kind == metadataDict {
		c.ends = c.lens
		c.refs = d.column64(s, m)
		for _, r := range c.refs {
			if uint64(r) >= uint64(count) {
				return column.Corrupt("%s: a value that is not there", object)
			}
		}
	}
	return s.Err(object)
}

// appendPair appends the canonical form of one label: see [model.Labels].
func appendPair(dst, name, value []byte) []byte {
	dst = binary.AppendUvarint(append(dst, 0x0a), uint64(2+uvarintLen(len(name))+len(name)+uvarintLen(len(value))+len(value)))
	dst = column.AppendBytes(append(dst, 0x0a), name)
	return column.AppendBytes(append(dst, 0x12), value)
}

// pairLen is the number of bytes that appendPair appends.
func pairLen(name, value int) int {
	body := 2 + uvarintLen(name) + name + uvarintLen(value) + value
	return 1 + uvarintLen(body) + body
}

func uvarintLen(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }
