package part

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// fieldCoder takes pages of lines apart. It keeps its memory between pages.
type fieldCoder struct {
	cols    []fieldColumn
	entries []fieldEntry
	text    []byte
	// table finds entries by their hash: their number plus 1.
	table   []uint32
	columns map[fieldPlace]uint32
	ctx     uint32 // the column of the value before
	steps   int
	ints    intCoder
	numbers []int64
	soft    []byte
	hard    []byte
	// items are what the filter of the unit is made of; nil: there will be none.
	items *filterItems
}

// fieldColumn are the values of a place, and what follows them.
type fieldColumn struct {
	kind byte
	n    int // of digits
	// values, by kind
	numbers []int64
	bytes   []byte
	lens    []int64
	// entries lists the fragments that have followed, next says which one did; last is the last of them.
	entries []uint32
	next    []int64
	last    uint32
}

// fieldEntry is a fragment behind a column.
type fieldEntry struct {
	hash     uint64
	off, len uint32 // of its text
	from     uint32 // the column before it
	local    uint32 // its number there
	kind     byte   // of the value that follows
	n        int
	column   uint32 // of that value
}

// fieldPlace is what values of one column have in common.
type fieldPlace struct {
	hash uint64
	kind byte
	n    int
}

func (c *fieldCoder) reset() {
	c.cols = c.cols[:0]
	c.column(fieldEnd, 0)
	c.entries, c.text, c.steps = c.entries[:0], c.text[:0], 0
	if c.table == nil {
		c.table = make([]uint32, 1<<10)
		c.columns = make(map[fieldPlace]uint32)
	}
	clear(c.table)
	clear(c.columns)
}

// column adds a column.
func (c *fieldCoder) column(kind byte, n int) uint32 {
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

// append appends the form of lines, of which each ends where ends says, counted from begin. It reports whether it is worth
// it; if not, only the items of the filter have been gathered.
func (c *fieldCoder) append(dst, b []byte, begin uint32, ends []uint32, items *filterItems) ([]byte, bool) {
	c.gather(b, begin, ends, items)
	if len(b) > maxFieldBytes || c.steps > len(b)/minFieldBytes+len(ends) {
		return dst, false
	}
	return c.finish(dst)
}

// gather takes lines apart.
func (c *fieldCoder) gather(b []byte, begin uint32, ends []uint32, items *filterItems) {
	c.reset()
	c.items = items
	from := uint32(0)
	for _, end := range ends {
		c.line(b[from : end-begin])
		from = end - begin
	}
}

// line takes a line apart. A fragment that is the same as the last time is known without a look at what it consists of, if a
// value as the last time follows: the result is the same as without that.
func (c *fieldCoder) line(b []byte) {
	c.ctx = 0
	frag, i := 0, 0 // b[frag:i] is known to be text
	for {
		if f := &c.cols[c.ctx]; len(f.entries) > 0 {
			e := &c.entries[f.entries[f.last]]
			if j, ok := c.again(e, b, frag, i); ok {
				f.next = append(f.next, int64(e.local))
				c.ctx = e.column
				c.steps++
				if e.kind == fieldEnd {
					return
				}
				at := frag + int(e.len)
				c.value(b, at, j)
				frag, i = j, j
				continue
			}
		}
		var ok bool
		if frag, i, ok = c.next(b, frag, i); !ok {
			c.step(b[frag:], fieldEnd, 0)
			return
		}
	}
}

// again reports whether the fragment of an entry and a value of its kind stand at b[frag:], and where the value ends.
func (c *fieldCoder) again(e *fieldEntry, b []byte, frag, i int) (end int, ok bool) {
	at := frag + int(e.len)
	if at < i || at > len(b) || string(b[frag:at]) != string(c.text[e.off:e.off+e.len]) {
		return 0, false
	}
	if e.kind == fieldEnd {
		return at, at == len(b)
	}
	if at == len(b) || at > 0 && runClass[b[at-1]] != 0 {
		return 0, false
	}
	or := byte(0)
	for end = at; end < len(b) && runClass[b[end]] != 0; end++ {
		or |= runClass[b[end]]
	}
	if or&isDigit == 0 {
		return 0, false
	}
	kind, n, end := fieldOf(b, at, end, kindOf(b[at:end], or))
	return end, kind == e.kind && n == e.n
}

// next looks for the next run that has values, from i on, and takes it. It returns where the text behind begins and up to
// where it is known to be text, or false if there is no further value.
func (c *fieldCoder) next(b []byte, frag, i int) (int, int, bool) {
	for i < len(b) {
		if runClass[b[i]] == 0 {
			i++
			continue
		}
		j, or := i, byte(0)
		for ; j < len(b) && runClass[b[j]] != 0; j++ {
			or |= runClass[b[j]]
		}
		kind := runText
		if or&isDigit != 0 {
			kind = kindOf(b[i:j], or)
		}
		switch kind {
		case runText, runMixed:
			switch {
			case c.items == nil:
			case j-i >= longRun:
				c.items.long(b[i:j])
			case kind == runMixed:
				c.items.run(b[i:j])
			}
			if kind == runMixed {
				if at := c.mixed(b, frag, i, j); at > i {
					return at, j, true
				}
			}
		default:
			if k, n, end := fieldOf(b, i, j, kind); k != fieldEnd {
				c.step(b[frag:i], k, n)
				c.value(b, i, end)
				return end, end, true
			}
		}
		i = j
	}
	return frag, i, false
}

// mixed takes the numbers out of a run, and returns where the text behind them begins. One digit behind letters is text.
func (c *fieldCoder) mixed(b []byte, frag, i, j int) int {
	for k := i; k < j; {
		if runClass[b[k]] != isDigit {
			k++
			continue
		}
		m := k
		for m < j && runClass[b[m]] == isDigit {
			m++
		}
		if m-k > 1 || k == i {
			kind, n := digitsKind(b, k, m)
			c.step(b[frag:k], kind, n)
			c.keep(b[k:m])
			frag = m
		}
		k = m
	}
	return frag
}

// step takes a fragment and the kind of the value that follows, whose column is the context from there on.
func (c *fieldCoder) step(text []byte, kind byte, n int) {
	c.steps++
	h := xxh3.HashSeed(text, uint64(c.ctx)<<32|uint64(kind)<<16|uint64(n))
	mask := uint64(len(c.table) - 1)
	f := &c.cols[c.ctx]
	for at := h & mask; c.table[at] != 0; at = (at + 1) & mask {
		e := &c.entries[c.table[at]-1]
		if e.hash == h && e.from == c.ctx && e.kind == kind && e.n == n && string(c.text[e.off:e.off+e.len]) == string(text) {
			f.next = append(f.next, int64(e.local))
			f.last = e.local
			c.ctx = e.column
			return
		}
	}
	e := fieldEntry{hash: h, off: uint32(len(c.text)), len: uint32(len(text)), from: c.ctx, local: uint32(len(f.entries)), kind: kind, n: n}
	f.entries = append(f.entries, uint32(len(c.entries)))
	f.next = append(f.next, int64(e.local))
	f.last = e.local
	c.text = append(c.text, text...)
	if c.items != nil {
		c.items.words(text)
	}
	if kind != fieldEnd {
		e.column = c.place(text, kind, n)
	}
	c.entries = append(c.entries, e)
	c.enter(h)
	c.ctx = e.column
}

// enter puts the last entry into the table.
func (c *fieldCoder) enter(h uint64) {
	from := len(c.entries) - 1
	if 2*len(c.entries) > len(c.table) {
		c.table = make([]uint32, 2*len(c.table))
		from = 0
	}
	mask := uint64(len(c.table) - 1)
	for i := from; i < len(c.entries); i++ {
		at := c.entries[i].hash & mask
		for c.table[at] != 0 {
			at = (at + 1) & mask
		}
		c.table[at] = uint32(i + 1)
	}
}

// place returns the column of values behind a text: told by its end or, of a short one, by all of it and the column before.
func (c *fieldCoder) place(text []byte, kind byte, n int) uint32 {
	p := fieldPlace{kind: kind, n: n}
	if len(text) < 4 {
		p.hash = xxh3.HashSeed(text, uint64(c.ctx)+1)
	} else {
		p.hash = xxh3.Hash(text[max(0, len(text)-fieldTail):])
	}
	id, ok := c.columns[p]
	if !ok && len(c.cols) >= manyFieldColumns {
		p.hash = 0
		id, ok = c.columns[p]
	}
	if !ok {
		id = c.column(kind, n)
		c.columns[p] = id
	}
	return id
}

// value keeps the run b[i:j] in the column of the context.
func (c *fieldCoder) value(b []byte, i, j int) {
	c.keep(b[i:j])
	if c.items != nil {
		c.itemsOf(b, i, j)
	}
}

func (c *fieldCoder) keep(v []byte) {
	f := &c.cols[c.ctx]
	switch f.kind {
	case fieldNumber, fieldDigits:
		x := int64(0)
		for _, d := range v {
			x = x*10 + int64(d-'0')
		}
		f.numbers = append(f.numbers, x)
	case fieldDate:
		f.numbers = append(f.numbers, 100*(100*(100*two(v)+two(v[2:]))+two(v[5:]))+two(v[8:]))
	case fieldClock:
		f.numbers = append(f.numbers, 60*(60*two(v)+two(v[3:]))+two(v[6:]))
	case fieldHex, fieldHexUp:
		f.bytes = appendNibbles(f.bytes, v)
	default:
		f.bytes = append(f.bytes, v...)
		f.lens = append(f.lens, int64(len(v)))
	}
}

// itemsOf gives the filter what it wants to know of a run that is a value.
func (c *fieldCoder) itemsOf(b []byte, i, j int) {
	if run := b[i:j]; len(run) >= longRun {
		c.items.long(run)
	} else {
		c.items.run(run)
	}
	f := &c.cols[c.ctx]
	if f.kind == fieldString || i > 0 && wordByte[b[i-1]] != 0 || j < len(b) && wordByte[b[j]] != 0 {
		// A word may begin before the run or end behind it.
		c.items.words(b[max(0, i-3):min(len(b), j+3)])
	}
	if f.kind == fieldNumber || f.kind == fieldDigits {
		if k, ok := pairAt(b, i, j); ok {
			c.items.pair(b[k:j])
		}
	}
}

// two is the number of two digits.
func two(b []byte) int64 { return 10*int64(b[0]-'0') + int64(b[1]-'0') }

func appendNibbles(dst, hex []byte) []byte {
	i := 0
	for ; i+1 < len(hex); i += 2 {
		dst = append(dst, nibble(hex[i])<<4|nibble(hex[i+1]))
	}
	if i < len(hex) {
		dst = append(dst, nibble(hex[i])<<4)
	}
	return dst
}

// nibble is the value of a hexadecimal digit.
func nibble(c byte) byte { return c&15 + c>>6*9 }

// finish appends the page, unless it is not worth it.
func (c *fieldCoder) finish(dst []byte) ([]byte, bool) {
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
		soft = c.ints.append(soft, c.numbers)
		c.numbers = c.numbers[:0]
		for _, e := range f.entries {
			c.numbers = append(c.numbers, int64(c.entries[e].column))
		}
		soft = c.ints.append(soft, c.numbers)
		if len(f.entries) > 1 {
			soft = c.appendNext(soft, f)
		}
		switch f.kind {
		case fieldNumber, fieldDigits, fieldDate, fieldClock:
			soft = c.ints.append(soft, f.numbers)
		case fieldHex, fieldHexUp:
			hard = append(hard, f.bytes...)
		case fieldString:
			soft = c.ints.append(soft, f.lens)
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
	sealed, err := sealPage(dst, soft, codecZstd)
	return sealed, err == nil
}

// appendNext appends which fragments follow a column. Unless it is nearly always the same one they are as good as random, so
// that no time is spent on looking for an order.
func (c *fieldCoder) appendNext(dst []byte, f *fieldColumn) []byte {
	same := 0
	for i := 1; i < len(f.next); i++ {
		if f.next[i] == f.next[i-1] {
			same++
		}
	}
	if 2*same > len(f.next) {
		return c.ints.append(dst, f.next)
	}
	width := bits.Len(uint(len(f.entries) - 1))
	return c.ints.pack(dst, f.next, &plan{divisor: 1, width: uint(width), most: width}, false)
}
