package column

import "math"

// packed is the head of a packed column of integers. Each is base + residual x divisor or, if delta, greater
// by that than the one before; the first is then stored on its own.
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

// plain reports whether a column is packed bits of one width, without exceptions or radix.
func plain(kind byte) bool { return kind&^(IntsDelta|intsDivisor) == IntsPacked }

// readEven reads the rest of a column of evenly spaced numbers, which have no bits, as most times. It returns
// false for other columns and reads nothing of them.
func (p *packed) readEven(s *Scan) bool {
	if !p.delta || !plain(p.kind) || len(s.Rest) == 0 || s.Rest[0] != 0 {
		return false
	}
	s.Byte()
	return true
}

// EvenTimes appends origin + unit x number for each number of a column of evenly spaced, ascending numbers.
// It returns false for other columns and reads nothing of them. That saves a pass for the numbers and one
// to check their order.
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

// plainDecimals appends numbers over 10^k if the column is plain. It returns false for other columns and
// reads nothing of them. It makes one pass, a block of residuals at a time, instead of passes for
// residuals, numbers and quotients. A single loop was tried and is slower: it needs more registers than
// there are, and waits for values that it has just put on the stack. BenchmarkRead of package part runs
// this.
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

// deltaDecimals writes numbers over a power of ten to dst, each greater by base + residual x divisor than
// the one before, which is x at first, and returns the last. Like baseDecimals it is not inlined, because
// it would then share its caller's registers.
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
