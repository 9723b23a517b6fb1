package column

import (
	"encoding/binary"
	"math/bits"
)

// packedLen is the number of bytes of n numbers of w bits.
func packedLen(n int, w uint) int { return (n*int(w) + 7) / 8 }

// appendPacked appends numbers of w bits each, lowest bit first. No number may need more.
func appendPacked(dst []byte, xs []uint64, w uint) []byte {
	if w == 0 {
		return dst
	}
	var acc uint64
	var n uint
	for _, x := range xs {
		acc |= x << n
		n += w
		if n >= 64 {
			dst = binary.LittleEndian.AppendUint64(dst, acc)
			n -= 64
			acc = x >> (w - n)
		}
	}
	for ; n > 0; n -= min(n, 8) {
		dst = append(dst, byte(acc))
		acc >>= 8
	}
	return dst
}

// unpack fills dst from packedLen(len(dst), w) bytes of w <= 64 bits a number.
func unpack(dst []uint64, b []byte, w uint) {
	if w == 0 {
		clear(dst)
		return
	}
	mask := ^uint64(0) >> (64 - w)
	i := 0
	if w <= 56 {
		// A number and the bits before it in its first byte fit one load.
		for bit := uint(0); i < len(dst); i++ {
			at := bit >> 3
			if int(at)+8 > len(b) {
				break
			}
			dst[i] = binary.LittleEndian.Uint64(b[at:]) >> (bit & 7) & mask
			bit += w
		}
	}
	for ; i < len(dst); i++ {
		dst[i] = bitsAt(b, uint(i)*w, w)
	}
}

// bitsAt returns the number of 0 < w <= 64 bits from a bit on, which may be the last.
func bitsAt(b []byte, bit, w uint) uint64 {
	var window [16]byte
	copy(window[:], b[bit>>3:])
	lo, hi := binary.LittleEndian.Uint64(window[:]), binary.LittleEndian.Uint64(window[8:])
	s := bit & 7
	return (lo>>s | hi<<1<<(63-s)) & (^uint64(0) >> (64 - w))
}

// radix packs several digits of a base into one word of whole bytes: six digits of 0..99 fit five bytes, 6.67
// bits each, where bit packing takes 7 and the entropy is 6.64. It needs no table, and a reader can start
// anywhere. docs/adr/0007-no-entropy-stage.md says why it is not an entropy coder.
type radix struct {
	base   uint64
	digits int
	bytes  int
}

// radixFor returns the densest packing of a base of at least 2.
func radixFor(base uint64) radix {
	best := radix{base: base, digits: 1, bytes: (bits.Len64(base-1) + 7) / 8}
	power := base // base^digits
	for k := 2; ; k++ {
		hi, lo := bits.Mul64(power, base)
		if hi != 0 {
			return best
		}
		power = lo
		if n := (bits.Len64(power-1) + 7) / 8; n*best.digits < best.bytes*k {
			best.digits, best.bytes = k, n
		}
	}
}

// len is the number of bytes of n digits.
func (r radix) len(n int) int { return (n + r.digits - 1) / r.digits * r.bytes }

func (r radix) append(dst []byte, xs []uint64) []byte {
	for len(xs) > 0 {
		k := min(len(xs), r.digits)
		var word uint64
		for i := k - 1; i >= 0; i-- {
			word = word*r.base + xs[i]
		}
		for range r.bytes {
			dst = append(dst, byte(word))
			word >>= 8
		}
		xs = xs[k:]
	}
	return dst
}

// unpack fills dst from r.len(len(dst)) bytes.
func (r radix) unpack(dst []uint64, b []byte) {
	// Multiplying by the rounded-up reciprocal divides exactly while word * base < 2^64.
	exact := 8*r.bytes+bits.Len64(r.base) <= 64
	reciprocal := ^uint64(0)/r.base + 1
	mask := ^uint64(0) >> (64 - 8*r.bytes)
	for len(dst) > 0 {
		k := min(len(dst), r.digits)
		var word uint64
		if len(b) >= 8 {
			word = binary.LittleEndian.Uint64(b) & mask
		} else {
			var window [8]byte
			copy(window[:], b[:r.bytes])
			word = binary.LittleEndian.Uint64(window[:])
		}
		if exact {
			for i := range dst[:k] {
				q, _ := bits.Mul64(word, reciprocal)
				dst[i] = word - q*r.base
				word = q
			}
		} else {
			for i := range dst[:k] {
				dst[i] = word % r.base
				word /= r.base
			}
		}
		dst, b = dst[k:], b[r.bytes:]
	}
}
