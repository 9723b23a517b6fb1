package graphite

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// isSpace reports whether Python's str.split treats r as white space. Unlike Go's unicode.IsSpace it
// includes the four ASCII separators 0x1c to 0x1f.
func isSpace(r rune) bool {
	switch {
	case r <= ' ':
		return r == ' ' || r >= '\t' && r <= '\r' || r >= 0x1c && r <= 0x1f
	case r < 0x2000:
		return r == 0x85 || r == 0xa0 || r == 0x1680
	}
	return r <= 0x200a || r == 0x2028 || r == 0x2029 || r == 0x202f || r == 0x205f || r == 0x3000
}

// token splits the first token off b. The token is empty if only white space is left.
func token(b []byte) (tok, rest []byte) {
	i := 0
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if !isSpace(r) {
			break
		}
		i += n
	}
	begin := i
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if isSpace(r) {
			break
		}
		i += n
	}
	return b[begin:i], b[i:]
}

// plainEnd returns the index of the first byte of b that cannot be part of a plain name: a space, a
// control character, a semicolon, or a byte that is not ASCII. It tests eight bytes at a time.
func plainEnd(b []byte) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		semicolons := x ^ ones*';'
		// A borrow can raise a false flag only above a true one, and only the lowest flag counts.
		if flags := ((x - ones*0x21) | x | (semicolons-ones)&^semicolons) & highs; flags != 0 {
			return i + bits.TrailingZeros64(flags)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c <= ' ' || c == ';' || c >= 0x80 {
			return i
		}
	}
	return i
}
