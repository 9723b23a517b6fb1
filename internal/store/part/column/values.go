package column

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A segment is the values of one series, or of neighbours in the page-wide column of short series. Its first
// byte holds the codec in the low three bits and a parameter above them. The codec is the
// shortest one. All preserve every bit: decimals are used only where the division gives the same bits.
const (
	// ValuesDecimal is integers over 10^parameter.
	ValuesDecimal byte = 1
	// valuesPatched is decimals with exceptions: their number, (distance, bits) pairs, integers.
	valuesPatched byte = 2
	// valuesBits is the IEEE bits as integers, without their lowest 2 x parameter bits, which are zero.
	valuesBits byte = 3
	valuesXor  byte = 4
	valuesRaw  byte = 5
	// valuesNear is integers over 10^parameter, and the distance of each value from that in units of the last
	// place.
	valuesNear byte = 6

	valuesCodec byte = 0x07
)

// ValueCoder encodes segments. It keeps the memory that it needs between segments.
type ValueCoder struct {
	Ints       IntCoder
	decimals   []int64
	exceptions []uint32
	ulps       []int64
	scratch    []byte
}

// Append appends a segment of at least one value.
func (c *ValueCoder) Append(dst []byte, values []uint64) []byte {
	begin := len(dst)
	dst, ok := c.appendDecimals(dst, values)
	// Decimals of more than 6 bytes per value are no better than chance, but the other codecs may be.
	if ok && len(dst)-begin <= 6*len(values) && len(c.exceptions) < 2 {
		return dst
	}
	size := len(dst) - begin
	if !ok {
		size = 1 << 62
	}
	if k, near := nearExponent(values); near {
		c.scratch = c.appendNear(c.scratch[:0], values, k)
		if len(c.scratch) < size {
			dst, size = append(dst[:begin], c.scratch...), len(c.scratch)
		}
	}
	if ok && size <= 6*len(values) {
		return dst
	}
	c.scratch = c.appendBits(c.scratch[:0], values)
	if len(c.scratch) < size {
		dst, size = append(dst[:begin], c.scratch...), len(c.scratch)
	}
	c.scratch = appendXor(append(c.scratch[:0], valuesXor), values)
	if len(c.scratch) < size {
		dst, size = append(dst[:begin], c.scratch...), len(c.scratch)
	}
	if size > 1+8*len(values) {
		dst = append(dst[:begin], valuesRaw)
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint64(dst, v)
		}
	}
	return dst
}

func (c *ValueCoder) appendDecimals(dst []byte, values []uint64) ([]byte, bool) {
	k, ok := exponentOf(values)
	if !ok {
		return dst, false
	}
	c.decimals, c.exceptions, ok = toDecimals(c.decimals[:0], c.exceptions[:0], values, k)
	if !ok {
		return dst, false
	}
	if len(c.exceptions) == 0 {
		return c.Ints.Append(append(dst, ValuesDecimal|byte(k)<<3), c.decimals), true
	}
	dst = append(dst, valuesPatched|byte(k)<<3)
	dst = binary.AppendUvarint(dst, uint64(len(c.exceptions)))
	next := uint32(0)
	for _, i := range c.exceptions {
		dst = binary.AppendUvarint(dst, uint64(i-next))
		dst = binary.LittleEndian.AppendUint64(dst, values[i])
		next = i + 1
	}
	return c.Ints.Append(dst, c.decimals), true
}

func (c *ValueCoder) appendBits(dst []byte, values []uint64) []byte {
	var all uint64
	for _, v := range values {
		all |= v
	}
	half := min(uint(bits.TrailingZeros64(all))/2, 31)
	c.decimals = c.decimals[:0]
	for _, v := range values {
		c.decimals = append(c.decimals, int64(v>>(2*half)))
	}
	return c.Ints.Append(append(dst, valuesBits|byte(half)<<3), c.decimals)
}

// ValueDecoder decodes segments. It keeps the memory that it needs between segments.
type ValueDecoder struct {
	Ints IntDecoder
	tmp  []int64
	ulps []int64
}

// Append reads a segment of n >= 1 values, which takes all of b, and appends them to dst. n must have been
// bounded.
func (d *ValueDecoder) Append(dst []uint64, b []byte, n int) ([]uint64, error) {
	s := Scan{Rest: b}
	head := s.Byte()
	param := head >> 3
	begin := len(dst)
	switch head & valuesCodec {
	case ValuesDecimal, valuesPatched:
		dst = d.decimals(dst, &s, n, head&valuesCodec == valuesPatched, int(param))
	case valuesBits:
		d.tmp = d.Ints.Append(d.tmp[:0], &s, n)
		for _, x := range d.tmp {
			dst = append(dst, uint64(x)<<(2*param))
		}
	case valuesXor:
		var ok bool
		if dst, ok = readXor(dst, s.Rest, n); !ok {
			s.Fail()
		}
		s.Rest = nil
	case valuesNear:
		dst = d.near(dst, &s, n, int(param))
	case valuesRaw:
		raw := s.Next(8 * uint64(n))
		for ; len(raw) >= 8; raw = raw[8:] {
			dst = append(dst, binary.LittleEndian.Uint64(raw))
		}
	default:
		return dst, Corrupt("values: unknown codec %d", head&valuesCodec)
	}
	if err := s.End("values"); err != nil {
		return dst[:begin], err
	}
	return dst, nil
}

func (d *ValueDecoder) decimals(dst []uint64, s *Scan, n int, patched bool, k int) []uint64 {
	if k > maxExponent {
		s.Fail()
		return dst
	}
	count := 0
	list := *s
	if patched {
		count = s.Below(uint64(n))
		list = *s
		for range count {
			s.Uvarint()
			s.Next(8)
		}
	}
	if s.Bad {
		return dst
	}
	at, done := len(dst), false
	if dst, done = plainDecimals(dst, s, n, k); !done {
		d.tmp = d.Ints.Append(d.tmp[:0], s, n)
		if s.Bad {
			return dst
		}
		dst = Grow(dst, n)
		out := dst[at:]
		for i, x := range d.tmp {
			out[i] = decimalValue(x, k)
		}
	}
	out, next := dst[at:], uint64(0)
	for range count {
		gap, v := list.Uvarint(), list.U64()
		if gap >= uint64(n)-next {
			s.Fail()
			return dst
		}
		out[next+gap] = v
		next += gap + 1
	}
	return dst
}

// SegmentName names the codec of a segment, for dumps.
func SegmentName(b []byte) string {
	param := b[0] >> 3
	switch b[0] & valuesCodec {
	case ValuesDecimal:
		return fmt.Sprintf("decimals of %d places, %s", param, IntsName(b[1:]))
	case valuesPatched:
		return fmt.Sprintf("decimals of %d places with exceptions", param)
	case valuesBits:
		return fmt.Sprintf("bits without the lowest %d, %s", 2*param, IntsName(b[1:]))
	case valuesNear:
		return fmt.Sprintf("near decimals of %d places, %s; and units in the last place", param, IntsName(b[1:]))
	case valuesXor:
		return "xor"
	case valuesRaw:
		return "raw"
	}
	return "unknown codec"
}
