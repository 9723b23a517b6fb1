package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// PlainEnd returns the index of the next quote, backslash or control character from i on, or len(b). It looks
// at eight bytes at a time: strings are most of what is read.
func PlainEnd(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quotes, slashes := x^('"'*ones), x^('\\'*ones)
		// The lowest bit of each term is right, and those above it may be too many.
		found := ((x-' '*ones)&^x | (quotes-ones)&^quotes | (slashes-ones)&^slashes) & tops
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\'; i++ {
	}
	return min(i, len(b))
}
