package column

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A column of integers is one of these, whichever is shortest:
//
//	const   all equal
//	repeats (difference to the one before, length) pairs
//	steps   many repeats: a column of their values, and one of their lengths
//	packed  residuals over a base, of the numbers or of their differences, divided by their common divisor,
//	        in as many bits as most of them need; the few that need more have their high bits as exceptions
//
// All arithmetic wraps around at 64 bits, so every int64 survives, whatever the differences overflow.
const (
	IntsConst   byte = 0
	intsRepeats byte = 1
	IntsPacked  byte = 2
	intsSteps   byte = 3

	intsKind       byte = 0x03
	IntsDelta      byte = 0x10
	intsDivisor    byte = 0x20
	intsExceptions byte = 0x40
	intsRadix      byte = 0x80
)

// IntCoder encodes columns of integers. It keeps the memory that it needs between columns.
type IntCoder struct {
	// Dense allows radix packing, which costs a multiplication per number.
	Dense     bool
	residuals []uint64
	plain     plan
	delta     plan

	// steps codes the columns of repeats: their values and lengths.
	steps   *IntCoder
	nested  bool
	numbers []int64
	lengths []int64
	scratch []byte
}

// plan is one way to pack a column.
type plan struct {
	base    int64
	divisor uint64
	width   uint
	// widths counts the residuals by their bits.
	widths     [65]uint32
	exceptions int
	most       int
	bits       int
}

// Append appends a column. Its length is not stored.
func (c *IntCoder) Append(dst []byte, xs []int64) []byte {
	if len(xs) == 0 {
		return dst
	}
	lo, hi, repeats := xs[0], xs[0], 1
	dlo, dhi, dlow, negative := int64(0), int64(0), int64(0), 0
	climb := uint64(0) // all differences, without their signs
	if len(xs) > 1 {
		dlo, dhi, dlow = xs[1]-xs[0], xs[1]-xs[0], 1<<63-1
	}
	for i, x := range xs[1:] {
		lo, hi = min(lo, x), max(hi, x)
		d := x - xs[i]
		dlo, dhi = min(dlo, d), max(dhi, d)
		if d < 0 {
			negative++
			climb += uint64(-d)
		} else {
			climb += uint64(d)
			dlow = min(dlow, d)
		}
		if d != 0 {
			repeats++
		}
	}
	if repeats == 1 {
		return binary.AppendVarint(append(dst, IntsConst), lo)
	}
	// A counter with a few resets has a few large negative differences. Packing over the least of the other
	// differences makes exceptions of them. Over the least of all, every difference would be as wide as the
	// largest reset.
	if negative > 0 && negative <= len(xs)/16 {
		dlo = dlow
	}
	c.plain.measure(xs[:0], xs, lo)
	// Numbers that jump up and down over all of their range have no short differences. Not searching for them
	// saves time in BenchmarkTextWrite of package part.
	if n := len(xs); negative > n/4 && negative < n-n/4 && climb/uint64(n) > uint64(hi-lo)/8 {
		c.delta.bits = math.MaxInt / 2
	} else {
		c.delta.measure(xs[:1], xs[1:], dlo)
	}
	best, isDelta := &c.plain, false
	if c.delta.bits+24 < c.plain.bits {
		best, isDelta = &c.delta, true
	}
	// A repeat takes at least two bytes as a pair, and perhaps less in columns. If hardly any repeat has a
	// second number, nothing is gained. Not trying saves time in BenchmarkTextWrite of package part.
	if n := len(xs); n > 4 && repeats <= n-n/16 && repeats*minRepeatBits < best.bits {
		if b := c.asRepeats(xs, repeats); 8*len(b) < best.bits+packedHeadBits {
			return append(dst, b...)
		}
	}
	return c.pack(dst, xs, best, isDelta)
}

// measure finds the shortest packing of xs over a base or, with one number before them in first, of their
// differences.
func (p *plan) measure(first, xs []int64, base int64) {
	*p = plan{base: base}
	delta := len(first) == 1
	var last int64
	if delta {
		last = first[0]
	}
	var all uint64
	for _, x := range xs {
		r := uint64(x - base)
		if delta {
			r = uint64(x - last - base)
			last = x
		}
		all |= r
		p.widths[bits.Len64(r)]++
		if p.divisor != 1 && (p.divisor == 0 || r%p.divisor != 0) {
			p.divisor = GCD(p.divisor, r)
		}
	}
	p.most = bits.Len64(all)
	if p.divisor > 1 && p.most > 0 {
		// All residuals have a common divisor: count their bits again.
		p.widths, p.most = [65]uint32{}, 0
		if delta {
			last = first[0]
		}
		for _, x := range xs {
			r := uint64(x - base)
			if delta {
				r = uint64(x - last - base)
				last = x
			}
			n := bits.Len64(r / p.divisor)
			p.widths[n]++
			p.most = max(p.most, n)
		}
	} else {
		p.divisor = 1
	}
	p.choose(len(xs))
}

// choose sets the width at which packed bits and exceptions together are fewest.
func (p *plan) choose(n int) {
	p.width, p.exceptions, p.bits = uint(p.most), 0, n*p.most
	over := 0
	for w := p.most - 1; w >= 0; w-- {
		over += int(p.widths[w+1])
		// An exception costs the varint of its distance and that of its high bits.
		cost := n*w + over*(10+(p.most-w+6)/7*8) + 8
		if cost < p.bits {
			p.width, p.exceptions, p.bits = uint(w), over, cost
		}
	}
}

// GCD returns the greatest common divisor.
func GCD(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// AppendBits appends numbers of at most width bits as a packed column. It does not search for a shorter form.
func (c *IntCoder) AppendBits(dst []byte, xs []int64, width int) []byte {
	return c.pack(dst, xs, &plan{divisor: 1, width: uint(width), most: width}, false)
}

// pack appends a column packed as a plan says, of differences if delta is set.
func (c *IntCoder) pack(dst []byte, xs []int64, p *plan, delta bool) []byte {
	kind := IntsPacked
	at := len(dst)
	dst = append(dst, 0)
	rest := xs
	var last int64
	if delta {
		kind |= IntsDelta
		dst = binary.AppendVarint(dst, xs[0])
		last, rest = xs[0], xs[1:]
	}
	dst = binary.AppendVarint(dst, p.base)
	if p.divisor > 1 {
		kind |= intsDivisor
		dst = binary.AppendUvarint(dst, p.divisor)
	}
	if cap(c.residuals) < len(rest) {
		c.residuals = make([]uint64, max(1024, len(rest)))
	}
	residuals := c.residuals[:len(rest)]
	for i, x := range rest {
		r := uint64(x - p.base)
		if delta {
			r = uint64(x - last - p.base)
			last = x
		}
		residuals[i] = r
	}
	if p.divisor > 1 {
		for i := range residuals {
			residuals[i] /= p.divisor
		}
	}
	if p.exceptions > 0 {
		kind |= intsExceptions
		dst = appendExceptions(append(dst, byte(p.width)), residuals, p.width, p.exceptions)
	} else if r, ok := c.radix(residuals, p); ok {
		dst[at] = kind | intsRadix
		return r.append(binary.AppendUvarint(dst, r.base), residuals)
	} else {
		dst = append(dst, byte(p.width))
	}
	dst[at] = kind
	return appendPacked(dst, residuals, p.width)
}

// radix decides whether digits of a base are worth using: they must be at least 1/64 shorter than bits.
func (c *IntCoder) radix(residuals []uint64, p *plan) (radix, bool) {
	if !c.Dense || p.width < 2 || p.width > 32 {
		return radix{}, false
	}
	var most uint64
	for _, r := range residuals {
		most = max(most, r)
	}
	r := radixFor(most + 1)
	inBits := packedLen(len(residuals), p.width)
	return r, r.len(len(residuals)) < inBits-inBits/64
}

// appendExceptions writes the high bits of the residuals that need more than w bits, and cuts them off.
func appendExceptions(dst []byte, residuals []uint64, w uint, n int) []byte {
	dst = binary.AppendUvarint(dst, uint64(n))
	next := 0
	for i, r := range residuals {
		if r>>w == 0 {
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(i-next))
		dst = binary.AppendUvarint(dst, r>>w)
		residuals[i] &= 1<<w - 1
		next = i + 1
	}
	return dst
}

// IntDecoder decodes columns of integers. It keeps the memory that it needs between columns.
type IntDecoder struct {
	residuals []uint64

	// steps decodes the columns of repeats.
	steps   *IntDecoder
	nested  bool
	numbers []int64
	lengths []int64
}

// Size estimates the memory of the decoder.
func (d *IntDecoder) Size() int {
	n := 8 * (cap(d.residuals) + cap(d.numbers) + cap(d.lengths))
	if d.steps != nil {
		n += d.steps.Size()
	}
	return n
}

// Append reads a column of n numbers from s and appends it to dst. n must have been bounded.
func (d *IntDecoder) Append(dst []int64, s *Scan, n int) []int64 {
	if n == 0 || s.Bad {
		return dst
	}
	switch kind := s.Byte(); {
	case kind == IntsConst:
		v := s.Varint()
		if s.Bad {
			return dst
		}
		at := len(dst)
		dst = Grow(dst, n)
		for i := range dst[at:] {
			dst[at+i] = v
		}
		return dst
	case kind == intsRepeats:
		return decodeRepeats(dst, s, n)
	case kind == intsSteps && !d.nested:
		return d.decodeSteps(dst, s, n)
	case kind&intsKind == IntsPacked && kind&0x0c == 0:
		return d.unpack(dst, s, n, kind)
	}
	s.Fail()
	return dst
}

func (d *IntDecoder) unpack(dst []int64, s *Scan, n int, kind byte) []int64 {
	p := readPacked(s, n, kind)
	if p.readEven(s) {
		at := len(dst)
		dst = Grow(dst, n)
		for i, x := at, p.first; i < len(dst); i++ {
			dst[i] = x
			x += p.base
		}
		return dst
	}
	if n = p.residuals; cap(d.residuals) < n {
		d.residuals = make([]uint64, max(1024, n))
	}
	residuals := d.residuals[:n]
	if kind&intsRadix != 0 {
		base := s.Uvarint()
		if base < 2 || base > 1<<32 || kind&intsExceptions != 0 {
			s.Fail()
			return dst
		}
		r := radixFor(base)
		packed := s.Next(uint64(r.len(n)))
		if s.Bad {
			return dst
		}
		r.unpack(residuals, packed)
	} else if !unpackBits(residuals, s, kind&intsExceptions != 0) {
		return dst
	}
	at, base, divisor := len(dst), p.base, p.divisor
	if p.delta {
		dst = Grow(dst, n+1)
		x := p.first
		dst[at] = x
		out := dst[at+1:][:len(residuals)]
		for i, r := range residuals {
			x += base + int64(r*divisor)
			out[i] = x
		}
		return dst
	}
	dst = Grow(dst, n)
	out := dst[at:]
	if divisor == 1 {
		for i, r := range residuals {
			out[i] = base + int64(r)
		}
		return dst
	}
	for i, r := range residuals {
		out[i] = base + int64(r*divisor)
	}
	return dst
}

func unpackBits(residuals []uint64, s *Scan, exceptions bool) bool {
	width := uint(s.Byte())
	if width > 64 {
		s.Fail()
		return false
	}
	if !exceptions {
		packed := s.Next(uint64(packedLen(len(residuals), width)))
		if s.Bad {
			return false
		}
		unpack(residuals, packed, width)
		return true
	}
	count := s.Below(uint64(len(residuals)))
	list := *s
	for range count {
		s.Uvarint()
		s.Uvarint()
	}
	packed := s.Next(uint64(packedLen(len(residuals), width)))
	if s.Bad || width == 64 {
		s.Fail()
		return false
	}
	unpack(residuals, packed, width)
	next := uint64(0)
	for range count {
		gap, high := list.Uvarint(), list.Uvarint()
		if gap >= uint64(len(residuals))-next {
			s.Fail()
			return false
		}
		residuals[next+gap] |= high << width
		next += gap + 1
	}
	return true
}

// Grow lengthens a slice by n elements of any content.
func Grow[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s[:len(s)+n]
	}
	return append(s, make([]T, n)...)
}

// IntsName names the kind of a column, for dumps.
func IntsName(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	name := [...]string{"const", "runs", "packed", "steps"}[b[0]&intsKind]
	for _, f := range []struct {
		bit  byte
		name string
	}{{IntsDelta, "delta"}, {intsDivisor, "divisor"}, {intsExceptions, "exceptions"}, {intsRadix, "radix"}} {
		if b[0]&f.bit != 0 {
			name += "+" + f.name
		}
	}
	return name
}
