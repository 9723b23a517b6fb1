package lines

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/store/part/column"
)

// Gather takes lines apart.
func (c *coder) Gather(b []byte, begin uint32, ends []uint32, items *Items) {
	c.reset()
	c.items = items
	from := uint32(0)
	for _, end := range ends {
		c.line(b[from : end-begin])
		from = end - begin
	}
}

// line splits one line. If the fragment that followed last time is followed by a value of the same kind,
// the line is not parsed there. FuzzLines and FuzzMatch check that the result is the same.
func (c *coder) line(b []byte) {
	c.ctx = 0
	frag, i := 0, 0 // b[frag:i] is known to be text
	for {
		if f := &c.cols[c.ctx]; len(f.entries) > 0 {
			e := &c.entries[f.entries[f.last]]
			if end, ok := c.matchEntry(e, b, frag, i); ok {
				f.next = append(f.next, int64(e.local))
				c.ctx = e.column
				c.steps++
				if e.kind == fieldEnd {
					return
				}
				if c.items != nil {
					c.addItems(b, frag+int(e.len), end)
				}
				frag, i = end, end
				continue
			}
		}
		var ok bool
		if frag, i, ok = c.nextValue(b, frag, i); !ok {
			c.addFragment(b[frag:], fieldEnd, 0)
			return
		}
	}
}

// matchEntry reads the fragment of an entry and a value of its kind at b[frag:], if they are there. It
// keeps the value and returns where it ends.
func (c *coder) matchEntry(e *fieldEntry, b []byte, frag, i int) (end int, ok bool) {
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
	f := &c.cols[e.column]
	switch e.kind {
	case fieldHex, fieldHexUp:
		return f.matchHex(b, at)
	case fieldNumber, fieldDigits:
		return f.matchDigits(b, at)
	}
	or := byte(0)
	for end = at; end < len(b) && runClass[b[end]] != 0; end++ {
		or |= runClass[b[end]]
	}
	if or&isDigit == 0 {
		return 0, false
	}
	kind, n, end := fieldOf(b, at, end, kindOf(b[at:end], or))
	if kind != e.kind || n != e.n {
		return 0, false
	}
	f.keep(b[at:end])
	return end, true
}

// matchHex reads the run at b[at:] if it is a value of the kind and length of the column. It agrees with
// kindOf and fieldOf, in one loop over the bytes.
func (f *fieldColumn) matchHex(b []byte, at int) (end int, ok bool) {
	end = at + f.n
	if end > len(b) || end < len(b) && runClass[b[end]] != 0 {
		return 0, false
	}
	had := len(f.bytes)
	f.bytes = column.Grow(f.bytes, (f.n+1)/2)
	or := packHex(f.bytes[had:], b[at:end])
	low := or>>4 == isDigit|isHexLow || or>>4 == isDigit && f.n > maxFieldDigits
	up := or>>4 == isDigit|isHexUp
	if f.kind == fieldHex && !low || f.kind == fieldHexUp && !up {
		f.bytes = f.bytes[:had]
		return 0, false
	}
	return end, true
}

// matchDigits is matchHex for numbers.
func (f *fieldColumn) matchDigits(b []byte, at int) (end int, ok bool) {
	x := int64(0)
	for end = at; end < len(b) && end-at <= maxFieldDigits && b[end]-'0' <= 9; end++ {
		x = x*10 + int64(b[end]-'0')
	}
	n := end - at
	if n < 2 || n > maxFieldDigits || end < len(b) && runClass[b[end]] != 0 || n == 2 && isClock(b[at:]) || n == 4 && isDate(b[at:]) {
		return 0, false
	}
	if kind, digits := digitsKind(b, at, end); kind != f.kind || digits != f.n {
		return 0, false
	}
	f.numbers = append(f.numbers, x)
	return end, true
}

// nextValue keeps the values of the next run that has any, from i on. It returns where the text after them
// begins and up to where that is known to be text, or false if there is no further value.
func (c *coder) nextValue(b []byte, frag, i int) (int, int, bool) {
	for {
		// A value has at least one digit.
		digit := digitFrom(b, i)
		if digit == len(b) {
			return frag, i, false
		}
		begin, j, or := digit, digit, byte(0)
		for ; begin > i && runClass[b[begin-1]] != 0; begin-- {
			or |= runClass[b[begin-1]]
		}
		for ; j < len(b) && runClass[b[j]] != 0; j++ {
			or |= runClass[b[j]]
		}
		i = begin
		kind := kindOf(b[i:j], or)
		if kind == runMixed {
			if at := c.splitMixed(b, frag, i, j); at > i {
				if c.items != nil {
					c.items.anyRun(b[i:j])
				}
				return at, j, true
			}
		} else if k, n, end := fieldOf(b, i, j, kind); k != fieldEnd {
			c.addFragment(b[frag:i], k, n)
			c.cols[c.ctx].keep(b[i:end])
			if c.items != nil {
				c.addItems(b, i, end)
			}
			return end, end, true
		}
		i = j
	}
}

// digitFrom returns the index of the first decimal digit of b from i on, or the length of b.
func digitFrom(b []byte, i int) int {
	const each = 0x0101010101010101
	for ; i+8 <= len(b); i += 8 {
		// A digit becomes less than 10 when the bits of '0' are flipped. Adding 0x76 to it leaves the highest bit
		// clear.
		x := binary.LittleEndian.Uint64(b[i:]) ^ '0'*each
		if digits := ^((x&(0x7f*each) + 0x76*each) | x) & (0x80 * each); digits != 0 {
			return i + bits.TrailingZeros64(digits)/8
		}
	}
	for i < len(b) && b[i]-'0' > 9 {
		i++
	}
	return i
}

// splitMixed keeps the numbers of a run, and returns where the text after them begins. One digit after
// letters is text.
func (c *coder) splitMixed(b []byte, frag, i, j int) int {
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
			c.addFragment(b[frag:k], kind, n)
			c.cols[c.ctx].keep(b[k:m])
			frag = m
		}
		k = m
	}
	return frag
}

// addFragment adds a fragment and the kind of the value that follows. The column of that value becomes the
// context.
func (c *coder) addFragment(text []byte, kind byte, n int) {
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
		c.items.fragment(text)
	}
	if kind != fieldEnd {
		e.column = c.columnAfter(text, kind, n)
	}
	c.entries = append(c.entries, e)
	c.insertLast(h)
	c.ctx = e.column
}

// insertLast puts the last entry into the table.
func (c *coder) insertLast(h uint64) {
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

// columnAfter returns the column of values after a text. The end of the text selects it; a short text
// selects it together with the column before.
func (c *coder) columnAfter(text []byte, kind byte, n int) uint32 {
	p := columnKey{kind: kind, n: n}
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
		id = c.addColumn(kind, n)
		c.columns[p] = id
	}
	return id
}

// keep adds a value to the column.
func (f *fieldColumn) keep(v []byte) {
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
		had := len(f.bytes)
		f.bytes = column.Grow(f.bytes, (len(v)+1)/2)
		packHex(f.bytes[had:], v)
	default:
		f.bytes = append(f.bytes, v...)
		f.lens = append(f.lens, int64(len(v)))
	}
}

// addItems adds the items of a run that is a value to the filter.
func (c *coder) addItems(b []byte, i, j int) {
	c.items.anyRun(b[i:j])
	f := &c.cols[c.ctx]
	if f.kind == fieldString || i > 0 && wordByte[b[i-1]] != 0 || j < len(b) && wordByte[b[j]] != 0 {
		// A word may begin before the run or end after it.
		c.items.words(b[max(0, i-3):min(len(b), j+3)])
	}
	if f.kind == fieldNumber || f.kind == fieldDigits {
		if k, ok := pairAt(b, i, j); ok {
			c.items.pair(b[k:j])
		}
	}
}

// two returns the value of two digits.
func two(b []byte) int64 { return 10*int64(b[0]-'0') + int64(b[1]-'0') }

// hexOf has the value of each hexadecimal digit, with its class in the upper bits; other bytes have
// hexNeither.
var hexOf = func() (of [256]byte) {
	for c := range of {
		of[c] = hexNeither
	}
	for d := byte(0); d < 16; d++ {
		if d < 10 {
			of['0'+d] = d | isDigit<<4
			continue
		}
		of['a'+d-10], of['A'+d-10] = d|isHexLow<<4, d|isHexUp<<4
	}
	return of
}()

const hexNeither = 0x80

// packHex packs digits, two per byte, and returns their classes, or-ed. dst has half as many bytes.
func packHex(dst, hex []byte) (or byte) {
	for i := range len(hex) / 2 {
		h, l := hexOf[hex[2*i]], hexOf[hex[2*i+1]]
		or |= h | l
		dst[i] = h<<4 | l&15
	}
	if n := len(hex); n%2 == 1 {
		h := hexOf[hex[n-1]]
		or |= h
		dst[n/2] = h << 4
	}
	return or
}
