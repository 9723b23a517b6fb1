package column

import (
	"encoding/binary"
	"math/bits"
)

// The xor codec is for doubles that are not decimals. The first value is stored whole. Each other value is
// stored as its exclusive or with the one before, as a string of bits, lowest first:
//
//	0                      no difference
//	10 <bits>              the difference lies within the window of the last difference
//	11 <6: low zeros> <6: length - 1> <bits>   a window of its own

// bitWriter collects bits, lowest first.
type bitWriter struct {
	dst []byte
	acc uint64
	n   uint
}

// put adds the lowest w bits of x, whose others must be zero. w is at most 64.
func (b *bitWriter) put(x uint64, w uint) {
	b.acc |= x << b.n
	if b.n += w; b.n >= 64 {
		b.dst = binary.LittleEndian.AppendUint64(b.dst, b.acc)
		b.n -= 64
		b.acc = x >> (w - b.n)
	}
}

func (b *bitWriter) finish() []byte {
	for ; b.n > 0; b.n -= min(b.n, 8) {
		b.dst = append(b.dst, byte(b.acc))
		b.acc >>= 8
	}
	return b.dst
}

// appendXor appends at least one value.
func appendXor(dst []byte, values []uint64) []byte {
	b := bitWriter{dst: binary.LittleEndian.AppendUint64(dst, values[0])}
	var zeros, width uint
	for i, v := range values[1:] {
		x := v ^ values[i]
		if x == 0 {
			b.put(0, 1)
			continue
		}
		low := uint(bits.TrailingZeros64(x))
		w := uint(bits.Len64(x)) - low
		// The old window saves 12 bits of description; it pays while it wastes fewer.
		if width > 0 && low >= zeros && low+w <= zeros+width && width < w+12 {
			b.put(0b01, 2)
			b.put(x>>zeros, width)
			continue
		}
		zeros, width = low, w
		b.put(0b11|uint64(low)<<2|uint64(w-1)<<8, 14)
		b.put(x>>low, w)
	}
	return b.finish()
}

// bitReader reads bits, lowest first. Beyond the end it returns zeros and goes on counting.
type bitReader struct {
	b   []byte
	bit uint
}

func (r *bitReader) read(w uint) uint64 {
	at, s := int(r.bit>>3), r.bit&7
	r.bit += w
	var lo, hi uint64
	if at+9 <= len(r.b) {
		lo, hi = binary.LittleEndian.Uint64(r.b[at:]), uint64(r.b[at+8])
	} else {
		var window [16]byte
		if at < len(r.b) {
			copy(window[:], r.b[at:])
		}
		lo, hi = binary.LittleEndian.Uint64(window[:]), binary.LittleEndian.Uint64(window[8:])
	}
	return (lo>>s | hi<<1<<(63-s)) & (^uint64(0) >> (64 - w))
}

// readXor reads n >= 1 values, which take all of b.
func readXor(dst []uint64, b []byte, n int) ([]uint64, bool) {
	if len(b) < 8 {
		return dst, false
	}
	v := binary.LittleEndian.Uint64(b)
	dst = append(dst, v)
	r := bitReader{b: b[8:]}
	var zeros, width uint
	for range n - 1 {
		if r.read(1) == 0 {
			dst = append(dst, v)
			continue
		}
		if r.read(1) == 1 {
			d := r.read(12)
			zeros, width = uint(d&63), uint(d>>6)+1
		}
		if width == 0 || zeros+width > 64 {
			return dst, false
		}
		v ^= r.read(width) << zeros
		dst = append(dst, v)
	}
	return dst, (r.bit+7)/8 == uint(len(r.b))
}
