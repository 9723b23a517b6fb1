package lines

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// decoder joins the columns of pages of lines. It keeps its memory between pages.
type decoder struct {
	cols    []decodedField
	entries []decodedEntry
	ints    column.IntDecoder
	numbers []int64
	text    []byte
}

type decodedField struct {
	kind    byte
	n       int
	visits  int
	first   int      // index of the column's first entry
	count   int      // of its entries
	next    []uint32 // empty if the column has one entry
	numbers []int64  // values, or lengths of strings
	bytes   []byte
	pos, at int // index of the next visit, and offset of its bytes
}

type decodedEntry struct{ off, len, column uint32 }

// decode returns the raw bytes of a page of lines without the first skip lines: the last n bytes of raw.
func (d *decoder) decode(b []byte, raw, skip, n int) ([]byte, error) {
	text, err := d.openColumns(b, raw)
	if err != nil {
		return nil, err
	}
	if skip > d.cols[0].visits || n > raw || !d.skipLines(skip) {
		return nil, column.Corrupt("%s: expected %d lines before the last %d of %d bytes, got fewer", object, skip, n, raw)
	}
	out, ok := d.join(text, n)
	if !ok || len(out) != n {
		return nil, column.Corrupt("%s: decoded %d bytes after skipping %d lines, want %d", object, len(out), skip, n)
	}
	for i := range d.cols {
		if d.cols[i].pos != d.cols[i].visits {
			return nil, column.Corrupt("%s: values that no line uses", object)
		}
	}
	return out, nil
}

const object = "page of lines"

// openColumns reads the columns of a page with so many raw bytes, and returns the text of the fragments.
func (d *decoder) openColumns(b []byte, raw int) (text []byte, err error) {
	s := column.Scan{Rest: b}
	hard := s.Bytes()
	if s.Bad {
		return nil, s.Err(object)
	}
	if len(s.Rest) == 0 || s.Rest[0] == Codec {
		return nil, column.Corrupt("%s: no columns", object)
	}
	if raw > maxFieldBytes {
		return nil, column.Corrupt("%s: %d bytes; with columns the most is %d", object, raw, maxFieldBytes)
	}
	soft, err := file.OpenPage(s.Rest, maxSoftBytes)
	if err != nil {
		return nil, err
	}
	s = column.Scan{Rest: soft}
	text, ok := d.readColumns(&s, hard, raw)
	if !ok {
		return nil, column.Corrupt("%s: a field is cut short or out of bounds", object)
	}
	return text, nil
}

// readColumns reads the columns and returns the text of the fragments.
func (d *decoder) readColumns(s *column.Scan, hard []byte, raw int) (text []byte, ok bool) {
	cols := s.Below(maxFieldColumns)
	d.entries = d.entries[:0]
	d.cols = d.cols[:min(len(d.cols), cols)]
	for len(d.cols) < cols {
		d.cols = append(d.cols, decodedField{})
	}
	left := raw/minFieldBytes + MaxPageLines
	size, bytes := uint64(0), uint64(raw)
	for i := range d.cols {
		f := &d.cols[i]
		f.kind = s.Byte()
		if f.n = 0; f.kind >= fieldDigits && f.kind <= fieldHexUp {
			f.n = int(s.Byte())
		}
		f.visits = s.Below(uint64(left))
		left -= f.visits
		size = d.readEntries(s, f, size, &bytes)
		if s.Bad || (f.kind == fieldEnd) != (i == 0) || f.kind >= fieldKinds {
			return nil, false
		}
		f.pos, f.at, f.bytes = 0, 0, nil
		switch f.kind {
		case fieldNumber, fieldDigits, fieldDate, fieldClock:
			if f.kind == fieldDigits && (f.n < 1 || f.n > maxFieldDigits) {
				return nil, false
			}
			f.numbers = d.ints.Append(f.numbers[:0], s, f.visits)
		case fieldHex, fieldHexUp:
			n := (f.n + 1) / 2 * f.visits
			if f.n < 1 || f.n > maxFieldHex || n > len(hard) {
				return nil, false
			}
			f.bytes, hard = hard[:n], hard[n:]
		case fieldString:
			f.numbers = d.ints.Append(f.numbers[:0], s, f.visits)
			n := uint64(0)
			for _, l := range f.numbers {
				if n += uint64(l); l < 1 || n > uint64(raw) {
					return nil, false
				}
			}
			f.bytes = s.Next(n)
		}
		if s.Bad {
			return nil, false
		}
	}
	for i := range d.entries {
		if d.entries[i].column >= uint32(cols) {
			return nil, false
		}
	}
	return s.Rest, !s.Bad && uint64(len(s.Rest)) == size && len(hard) == 0 && cols > 0
}

// readEntries reads the fragments that follow a column. size is the length of all fragments so far. The
// least that its visits write is subtracted from bytes before memory is allocated for them.
func (d *decoder) readEntries(s *column.Scan, f *decodedField, size uint64, bytes *uint64) uint64 {
	n := s.Below(uint64(f.visits))
	// The bytes of their text are still to come. Only a few have none: one for each column that may follow.
	if n > len(s.Rest)+maxFieldColumns || n == 0 && f.visits > 0 {
		s.Fail()
		return size
	}
	f.first, f.count = len(d.entries), n
	d.numbers = d.ints.Append(d.numbers[:0], s, n)
	least := uint64(file.MaxPageBytes)
	for _, l := range d.numbers {
		if uint64(l) > file.MaxPageBytes || size > file.MaxPageBytes {
			s.Fail()
			return size
		}
		least = min(least, uint64(l))
		d.entries = append(d.entries, decodedEntry{off: uint32(size), len: uint32(l)})
		size += uint64(l)
	}
	d.numbers = d.ints.Append(d.numbers[:0], s, n)
	for k, column := range d.numbers {
		if s.Bad || uint64(column) >= maxFieldColumns {
			s.Fail()
			return size
		}
		d.entries[f.first+k].column = uint32(column)
	}
	if least = uint64(f.visits) * (least + f.least()); n > 0 && least > *bytes {
		s.Fail()
		return size
	} else if n > 0 {
		*bytes -= least
	}
	if f.next = f.next[:0]; n > 1 {
		d.numbers = d.ints.Append(d.numbers[:0], s, f.visits)
		f.next = column.Grow(f.next, len(d.numbers))
		for k, id := range d.numbers {
			if uint64(id) >= uint64(n) {
				s.Fail()
				break
			}
			f.next[k] = uint32(id)
		}
		if len(f.next) != f.visits {
			s.Fail()
		}
	}
	return size
}

// least is the length of the shortest value.
func (f *decodedField) least() uint64 {
	switch f.kind {
	case fieldEnd:
		return 0
	case fieldDigits, fieldHex, fieldHexUp:
		return uint64(f.n)
	case fieldDate:
		return uint64(len("2006-01-02"))
	case fieldClock:
		return uint64(len("00:00:00"))
	}
	return 1
}

// keepBytes is the most memory that a decoder may keep for the next page.
const keepBytes = 8 << 20

// size estimates the memory of the decoder.
func (d *decoder) size() int {
	n := 12*cap(d.entries) + 8*cap(d.numbers) + cap(d.text) + d.ints.Size()
	for i := range d.cols[:cap(d.cols)] {
		f := &d.cols[:cap(d.cols)][i]
		n += 4*cap(f.next) + 8*cap(f.numbers)
	}
	return n
}

// skipLines moves past the next n lines. Each value is only known from the one before it, so the lines are
// walked but not written.
func (d *decoder) skipLines(n int) bool {
	for range n {
		c := &d.cols[0]
		for {
			if c.pos == c.visits {
				return false
			}
			e := &d.entries[c.first]
			if len(c.next) > 0 {
				e = &d.entries[c.first+int(c.next[c.pos])]
			}
			c.pos++
			if e.column == 0 {
				break
			}
			if c = &d.cols[e.column]; c.pos == c.visits {
				return false
			}
			switch c.kind {
			case fieldHex, fieldHexUp:
				c.at += (c.n + 1) / 2
			case fieldString:
				c.at += int(c.numbers[c.pos])
			}
		}
	}
	return true
}

// join writes the remaining lines. It copies short pieces as sixteen bytes, whatever their length, so text
// and out have that much room beyond their ends; BenchmarkTextRead measures it.
func (d *decoder) join(text []byte, raw int) ([]byte, bool) {
	d.text = append(append(d.text[:0], text...), make([]byte, shortCopy)...)
	text = d.text
	buf := make([]byte, raw+decodeSlack)
	at := 0
	for range d.cols[0].visits - d.cols[0].pos {
		c := &d.cols[0]
		for {
			if c.pos == c.visits {
				return nil, false
			}
			e := &d.entries[c.first]
			if len(c.next) > 0 {
				e = &d.entries[c.first+int(c.next[c.pos])]
			}
			c.pos++
			n := int(e.len)
			if n > raw-at {
				return nil, false
			}
			if n <= shortCopy {
				*(*[shortCopy]byte)(buf[at:]) = *(*[shortCopy]byte)(text[e.off:])
			} else {
				copy(buf[at:], text[e.off:e.off+e.len])
			}
			at += n
			if e.column == 0 {
				break
			}
			if c = &d.cols[e.column]; c.pos == c.visits {
				return nil, false
			}
			// A value has at most 64 bytes, unless it is a string.
			n, ok := c.value(buf[at:], raw-at)
			if at += n; !ok || at > raw {
				return nil, false
			}
		}
	}
	return buf[:at:at], true
}

const (
	shortCopy   = 16
	decodeSlack = maxFieldHex + shortCopy
)

// value writes the next value of the column and returns its length. out has room for a value of the longest
// fixed length plus decodeSlack.
func (f *decodedField) value(out []byte, room int) (n int, ok bool) {
	switch f.kind {
	case fieldNumber:
		return putNumber(out, uint64(f.numbers[f.pos])), true
	case fieldDigits:
		putDigits(out[:f.n], uint64(f.numbers[f.pos]))
		return f.n, true
	case fieldDate:
		v := uint64(f.numbers[f.pos])
		putDigits(out[:4], v/10000)
		out[4], out[7] = '-', '-'
		putDigits(out[5:7], v/100)
		putDigits(out[8:10], v)
		return 10, true
	case fieldClock:
		v := uint64(f.numbers[f.pos])
		putDigits(out[:2], v/3600)
		out[2], out[5] = ':', ':'
		putDigits(out[3:5], v/60%60)
		putDigits(out[6:8], v%60)
		return 8, true
	case fieldHex, fieldHexUp:
		n := (f.n + 1) / 2
		putHex(out[:f.n], f.bytes[f.at:f.at+n])
		if f.at += n; f.kind == fieldHexUp {
			upper(out[:f.n])
		}
		return f.n, true
	}
	n = int(f.numbers[f.pos])
	if n > room {
		return 0, false
	}
	copy(out, f.bytes[f.at:f.at+n])
	f.at += n
	return n, true
}

// putNumber writes a decimal number and returns its length.
func putNumber(out []byte, v uint64) int {
	n := 1
	for p := uint64(10); v >= p; p *= 10 {
		if n++; n == 20 {
			break
		}
	}
	putDigits(out[:n], v)
	return n
}

// digitPairs has the digits of 00 to 99.
var digitPairs = func() (pairs [100][2]byte) {
	for i := range pairs {
		pairs[i] = [2]byte{byte('0' + i/10), byte('0' + i%10)}
	}
	return pairs
}()

// putDigits fills out with the last decimal digits of v, two with each division.
func putDigits(out []byte, v uint64) {
	k := len(out)
	for ; k >= 2; k -= 2 {
		q := v / 100
		*(*[2]byte)(out[k-2:]) = digitPairs[v-100*q]
		v = q
	}
	if k == 1 {
		out[0] = byte('0' + v%10)
	}
}

// putHex fills out with hexadecimal digits.
func putHex(out, b []byte) {
	k, n := 0, len(out)
	for ; k+8 <= n; k += 8 {
		binary.LittleEndian.PutUint64(out[k:], hexDigits(binary.BigEndian.Uint32(b[k/2:])))
	}
	for ; k < n; k++ {
		out[k] = "0123456789abcdef"[b[k/2]>>(4*(1-k&1))&15]
	}
}

// hexDigits returns the eight digits of v, the highest in the lowest byte.
func hexDigits(v uint32) uint64 {
	x := uint64(v)
	x = (x<<32 | x>>16) & 0x0000ffff_0000ffff
	x = (x<<16 | x>>8) & 0x00ff00ff_00ff00ff
	x = (x<<8 | x>>4) & 0x0f0f0f0f_0f0f0f0f
	letters := (x + 0x06060606_06060606) >> 4 & 0x01010101_01010101
	return x + 0x30303030_30303030 + letters*('a'-'0'-10)
}

func upper(b []byte) {
	for i, c := range b {
		if c >= 'a' {
			b[i] = c - 'a' + 'A'
		}
	}
}
