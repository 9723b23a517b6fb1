package lines

import (
	"encoding/binary"
	"math/bits"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// coder splits pages of lines into columns. It keeps its memory between pages.
type coder struct {
	cols    []fieldColumn
	entries []fieldEntry
	text    []byte
	// table finds entries by their hash. It holds their index plus 1.
	table   []uint32
	columns map[columnKey]uint32
	ctx     uint32 // the column of the value before
	steps   int
	ints    column.IntCoder
	numbers []int64
	soft    []byte
	hard    []byte
	// items collects the items for the filter of the unit; nil if it gets no filter.
	items *Items
}

// fieldColumn holds the values after one text, and the fragments that follow them.
type fieldColumn struct {
	kind byte
	n    int // of digits
	// values, by kind
	numbers []int64
	bytes   []byte
	lens    []int64
	// entries lists the fragments that have followed, and next the one that followed each value; last is the
	// most recent.
	entries []uint32
	next    []int64
	last    uint32
}

// fieldEntry is a fragment that follows a column.
type fieldEntry struct {
	hash     uint64
	off, len uint32 // of its text
	from     uint32 // the column before it
	local    uint32 // its number there
	kind     byte   // of the value that follows
	n        int
	column   uint32 // of that value
}

// columnKey is what the values of one column have in common.
type columnKey struct {
	hash uint64
	kind byte
	n    int
}

func (c *coder) reset() {
	c.cols = c.cols[:0]
	c.addColumn(fieldEnd, 0)
	c.entries, c.text, c.steps = c.entries[:0], c.text[:0], 0
	if c.table == nil {
		c.table = make([]uint32, 1<<10)
		c.columns = make(map[columnKey]uint32)
	}
	clear(c.table)
	clear(c.columns)
}

// addColumn adds a column.
func (c *coder) addColumn(kind byte, n int) uint32 {
	id := len(c.cols)
	if id < cap(c.cols) {
		c.cols = c.cols[:id+1]
	} else {
		c.cols = append(c.cols, fieldColumn{})
	}
	f := &c.cols[id]
	f.kind, f.n, f.last = kind, n, 0
	f.numbers, f.bytes, f.lens, f.entries, f.next = f.numbers[:0], f.bytes[:0], f.lens[:0], f.entries[:0], f.next[:0]
	return uint32(id)
}

// append appends the columns of lines; each line ends where ends says, counted from begin. It reports
// whether columns are worth it; if not, it has only gathered the items of the filter.
func (c *coder) append(dst, b []byte, begin uint32, ends []uint32, items *Items) ([]byte, bool) {
	c.Gather(b, begin, ends, items)
	if len(b) > maxFieldBytes || c.steps > len(b)/minFieldBytes+len(ends) {
		return dst, false
	}
	return c.finish(dst)
}

// finish appends the page, unless it is not worth it.
func (c *coder) finish(dst []byte) ([]byte, bool) {
	soft, hard := binary.AppendUvarint(c.soft[:0], uint64(len(c.cols))), c.hard[:0]
	for i := range c.cols {
		f := &c.cols[i]
		soft = append(soft, f.kind)
		if f.kind >= fieldDigits && f.kind <= fieldHexUp {
			soft = append(soft, byte(f.n))
		}
		soft = binary.AppendUvarint(soft, uint64(len(f.next)))
		soft = binary.AppendUvarint(soft, uint64(len(f.entries)))
		c.numbers = c.numbers[:0]
		for _, e := range f.entries {
			c.numbers = append(c.numbers, int64(c.entries[e].len))
		}
		soft = c.ints.Append(soft, c.numbers)
		c.numbers = c.numbers[:0]
		for _, e := range f.entries {
			c.numbers = append(c.numbers, int64(c.entries[e].column))
		}
		soft = c.ints.Append(soft, c.numbers)
		if len(f.entries) > 1 {
			soft = c.appendNext(soft, f)
		}
		switch f.kind {
		case fieldNumber, fieldDigits, fieldDate, fieldClock:
			soft = c.ints.Append(soft, f.numbers)
		case fieldHex, fieldHexUp:
			hard = append(hard, f.bytes...)
		case fieldString:
			soft = c.ints.Append(soft, f.lens)
			soft = append(soft, f.bytes...)
		}
	}
	for i := range c.cols {
		for _, e := range c.cols[i].entries {
			x := &c.entries[e]
			soft = append(soft, c.text[x.off:x.off+x.len]...)
		}
	}
	c.soft, c.hard = soft, hard
	if len(soft) > maxSoftBytes {
		return dst, false
	}
	dst = binary.AppendUvarint(dst, uint64(len(hard)))
	dst = append(dst, hard...)
	sealed, err := file.SealPage(dst, soft, file.CodecZstd)
	return sealed, err == nil
}

// appendNext appends which fragments follow a column. Unless nearly all are the same, they are as good as
// random, and it does not search for repeats.
func (c *coder) appendNext(dst []byte, f *fieldColumn) []byte {
	same := 0
	for i := 1; i < len(f.next); i++ {
		if f.next[i] == f.next[i-1] {
			same++
		}
	}
	if 2*same > len(f.next) {
		return c.ints.Append(dst, f.next)
	}
	width := bits.Len(uint(len(f.entries) - 1))
	return c.ints.AppendBits(dst, f.next, width)
}
