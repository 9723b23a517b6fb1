package part

import (
	"encoding/binary"
	"math"
)

// packed is the head of a packed column of integers: they are base + residual x divisor or, if delta, each that much more than the one
// before, while the first stands apart.
type packed struct {
	kind      byte
	delta     bool
	first     int64
	base      int64
	divisor   uint64
	residuals int
}

// readPacked reads the head of a column of n > 0 numbers, but for its kind.
func readPacked(s *scan, n int, kind byte) packed {
	p := packed{kind: kind, delta: kind&intsDelta != 0, divisor: 1, residuals: n}
	if p.delta {
		p.first = s.varint()
		p.residuals--
	}
	p.base = s.varint()
	if kind&intsDivisor != 0 {
		p.divisor = s.uvarint()
	}
	return p
}

// plain reports whether a column is of packed bits of one width, and nothing else.
func plain(kind byte) bool { return kind&^(intsDelta|intsDivisor) == intsPacked }

// even reports whether numbers lie at one distance and so have no bits, as times mostly do. Then it takes the rest of the column.
func (p *packed) even(s *scan) bool {
	if !p.delta || !plain(p.kind) || len(s.b) == 0 || s.b[0] != 0 {
		return false
	}
	s.byte()
	return true
}

// evenTimes appends origin + unit x number for each number of a column, if they lie at one distance and so ascend, and reports whether
// they do; of other columns nothing is read. With a pass for the numbers, one for the times and one for their order, reading times took
// twice as long.
func evenTimes(dst []int64, s *scan, n int, origin int64, unit uint64) ([]int64, bool) {
	if len(s.b) == 0 || !plain(s.b[0]) {
		return dst, false
	}
	after := *s
	kind := after.byte()
	p := readPacked(&after, n, kind)
	t, step := origin+int64(uint64(p.first)*unit), int64(uint64(p.base)*unit)
	room := uint64(math.MaxInt64) - uint64(t) // above t
	if after.bad || !p.even(&after) || step <= 0 || uint64(step) > room/uint64(max(n-1, 1)) {
		return dst, false
	}
	*s = after
	at := len(dst)
	dst = grow(dst, n)
	for i := at; i < len(dst); i++ {
		dst[i] = t
		t += step
	}
	return dst, true
}

// plainDecimals appends numbers over 10^k, if the column is plain, and reports whether it was; of others nothing is read. It has one
// pass where others have three, for residuals, numbers and quotients, and unpacks one number while it divides another.
func plainDecimals(dst []uint64, s *scan, n, k int) ([]uint64, bool) {
	if len(s.b) == 0 || !plain(s.b[0]) {
		return dst, false
	}
	after := *s
	kind := after.byte()
	p := readPacked(&after, n, kind)
	width := uint(after.byte())
	if after.bad || width == 0 || width > 56 {
		return dst, false
	}
	bytes := after.take(uint64(packedLen(p.residuals, width)))
	if after.bad {
		return dst, false
	}
	*s = after
	at := len(dst)
	dst = grow(dst, n)
	out, x, keep := dst[at:], int64(0), int64(0)
	if p.delta {
		out[0], out = decimalValue(p.first, k), out[1:]
		x, keep = p.first, -1
	}
	base, divisor, by := p.base, p.divisor, pow10[k]
	for i, bit := 0, uint(0); i < len(out); i, bit = i+1, bit+width {
		var r uint64
		if from := int(bit >> 3); from+8 <= len(bytes) {
			r = binary.LittleEndian.Uint64(bytes[from:]) >> (bit & 7) & (1<<width - 1)
		} else {
			r = bitsAt(bytes, bit, width)
		}
		x = x&keep + base + int64(r*divisor)
		v := float64(x)
		if k > 0 {
			v /= by
		}
		out[i] = math.Float64bits(v)
	}
	return dst, true
}
