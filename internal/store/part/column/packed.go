package column

import "math"

// packed is the head of a packed column of integers: they are base + residual x divisor or, if delta, each
// that much more than the one before, while the first stands apart.
type packed struct {
	kind      byte
	delta     bool
	first     int64
	base      int64
	divisor   uint64
	residuals int
}

// readPacked reads the head of a column of n > 0 numbers, but for its kind.
func readPacked(s *Scan, n int, kind byte) packed {
	p := packed{kind: kind, delta: kind&IntsDelta != 0, divisor: 1, residuals: n}
	if p.delta {
		p.first = s.Varint()
		p.residuals--
	}
	p.base = s.Varint()
	if kind&intsDivisor != 0 {
		p.divisor = s.Uvarint()
	}
	return p
}

// plain reports whether a column is of packed bits of one width, and nothing else.
func plain(kind byte) bool { return kind&^(IntsDelta|intsDivisor) == IntsPacked }

// readEven reads the rest of a column whose numbers lie at one distance and so have no bits, as times mostly
// do. It reads nothing of others, and returns false.
func (p *packed) readEven(s *Scan) bool {
	if !p.delta || !plain(p.kind) || len(s.Rest) == 0 || s.Rest[0] != 0 {
		return false
	}
	s.Byte()
	return true
}

// EvenTimes appends origin + unit x number for each number of a column, if they lie at one distance and so
// ascend, and reports whether they do; of other columns nothing is read. That saves a pass for the numbers
// and one for their order.
func EvenTimes(dst []int64, s *Scan, n int, origin int64, unit uint64) ([]int64, bool) {
	if len(s.Rest) == 0 || !plain(s.Rest[0]) {
		return dst, false
	}
	after := *s
	kind := after.Byte()
	p := readPacked(&after, n, kind)
	t, step := origin+int64(uint64(p.first)*unit), int64(uint64(p.base)*unit)
	room := uint64(math.MaxInt64) - uint64(t) // above t
	if after.Bad || !p.readEven(&after) || step <= 0 || uint64(step) > room/uint64(max(n-1, 1)) {
		return dst, false
	}
	*s = after
	at := len(dst)
	dst = Grow(dst, n)
	for i := at; i < len(dst); i++ {
		dst[i] = t
		t += step
	}
	return dst, true
}

// plainDecimals appends numbers over 10^k, if the column is plain, and reports whether it was; of others
// nothing is read. It goes over the column once, a block of residuals at a time, where others have passes for
// residuals, numbers and quotients. All in one loop was tried: that needs more than there are registers, and
// in profiles of rates over 10,000 series took some 3 or, for minutes on end, 12 ns a number, waiting for
// what it had just put on the stack.
func plainDecimals(dst []uint64, s *Scan, n, k int) ([]uint64, bool) {
	if len(s.Rest) == 0 || !plain(s.Rest[0]) {
		return dst, false
	}
	after := *s
	kind := after.Byte()
	p := readPacked(&after, n, kind)
	width := uint(after.Byte())
	if after.Bad || width == 0 || width > 64 {
		return dst, false
	}
	bytes := after.Next(uint64(packedLen(p.residuals, width)))
	if after.Bad {
		return dst, false
	}
	*s = after
	at := len(dst)
	dst = Grow(dst, n)
	out, x := dst[at:], p.first
	if p.delta {
		out[0], out = decimalValue(x, k), out[1:]
	}
	var block [64]uint64 // whose bits are whole bytes
	for len(out) > 0 {
		r := block[:min(len(out), len(block))]
		unpack(r, bytes, width)
		if p.delta {
			x = deltaDecimals(out, r, x, p.base, p.divisor, pow10[k])
		} else {
			baseDecimals(out, r, p.base, p.divisor, pow10[k])
		}
		out, bytes = out[len(r):], bytes[packedLen(len(r), width):]
	}
	return dst, true
}

// deltaDecimals writes numbers over a power of ten to dst, each by base + residual x divisor greater than the
// one before, which is x at first, and returns the last. In its caller, as in that of baseDecimals, it would
// share the registers.
//
//go:noinline
func deltaDecimals(dst, residuals []uint64, x, base int64, divisor uint64, by float64) int64 {
	dst = dst[:len(residuals)]
	for i, r := range residuals {
		x += base + int64(r*divisor)
		v := float64(x)
		if by != 1 {
			v /= by
		}
		dst[i] = math.Float64bits(v)
	}
	return x
}

// baseDecimals writes base + residual x divisor, over a power of ten.
//
//go:noinline
func baseDecimals(dst, residuals []uint64, base int64, divisor uint64, by float64) {
	dst = dst[:len(residuals)]
	for i, r := range residuals {
		v := float64(base + int64(r*divisor))
		if by != 1 {
			v /= by
		}
		dst[i] = math.Float64bits(v)
	}
}
