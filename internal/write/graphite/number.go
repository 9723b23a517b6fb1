package graphite

import (
	"math"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// exactPowers has the powers of ten that a float64 represents exactly and that 19 digits can need.
var exactPowers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

// plainNumber reads an integer or a decimal without an exponent at the start of b and returns where it
// ends. It refuses numbers that it could round wrongly: if the digits and the power of ten are both
// exact, the division rounds once, which gives the nearest float64.
func plainNumber(b []byte) (v float64, end int, ok bool) {
	i, negative := 0, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		i = 1
	}
	digits, begin := uint64(0), i
	for i < len(b) && b[i]-'0' <= 9 {
		digits = digits*10 + uint64(b[i]-'0')
		i++
	}
	n, decimals := i-begin, 0
	if i < len(b) && b[i] == '.' {
		i++
		begin = i
		for i < len(b) && b[i]-'0' <= 9 {
			digits = digits*10 + uint64(b[i]-'0')
			i++
		}
		decimals = i - begin
		n += decimals
	}
	// Nineteen digits cannot overflow 64 bits.
	if n == 0 || n > 19 || digits >= 1<<53 {
		return 0, 0, false
	}
	v = float64(digits)
	if decimals > 0 {
		v /= exactPowers[decimals]
	}
	if negative {
		v = -v
	}
	return v, i, true
}

// plainSeconds reads a non-negative integer of at most ten digits at the start of b.
func plainSeconds(b []byte) (s int64, end int, ok bool) {
	i := 0
	for i < len(b) && b[i]-'0' <= 9 {
		s = s*10 + int64(b[i]-'0')
		if i++; i > 10 {
			return 0, 0, false
		}
	}
	return s, i, i > 0
}

// number reads what Python's float accepts: underscores between digits, decimal digits of any script,
// inf, infinity and nan in any case, but not hexadecimal. A number beyond the range of float64 becomes
// infinite.
func number(tok []byte, scratch *[]byte) (v float64, ok bool) {
	if v, end, ok := plainNumber(tok); ok && end == len(tok) {
		return v, true
	}
	if *scratch, ok = appendASCII((*scratch)[:0], tok); !ok || !isNumber(*scratch) {
		return 0, false
	}
	if last := (*scratch)[len(*scratch)-1]; last|0x20 == 'n' {
		return math.NaN(), true // strconv does not accept a NaN with a sign
	}
	text := slices.DeleteFunc(*scratch, func(c byte) bool { return c == '_' })
	// The syntax is valid, so the only possible error is one of range, and then ParseFloat returns the
	// right infinity. It does not keep the string.
	v, _ = strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	return v, true
}

// appendASCII appends a token with the decimal digits of all scripts as ASCII digits. It returns false
// if the token has another character that is not ASCII.
func appendASCII(dst, tok []byte) (_ []byte, ok bool) {
	for i := 0; i < len(tok); {
		if c := tok[i]; c < utf8.RuneSelf {
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(tok[i:])
		digit := decimal(r)
		if digit < 0 {
			return dst, false
		}
		dst = append(dst, '0'+byte(digit))
		i += n
	}
	return dst, true
}

// decimal returns the value of a decimal digit of any script, or -1. The ranges of unicode.Nd begin with
// a zero and have whole sets of ten digits.
func decimal(r rune) int {
	for _, set := range unicode.Nd.R16 {
		if r >= rune(set.Lo) && r <= rune(set.Hi) {
			return int(r-rune(set.Lo)) % 10
		}
	}
	for _, set := range unicode.Nd.R32 {
		if r >= rune(set.Lo) && r <= rune(set.Hi) {
			return int(r-rune(set.Lo)) % 10
		}
	}
	return -1
}

// isNumber checks the syntax: a sign, then a word, or digits with an optional point and exponent.
func isNumber(b []byte) bool {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	if len(b) > 0 && b[0]|0x20 >= 'a' {
		return isWord(b, "inf") || isWord(b, "nan") || isWord(b, "infinity")
	}
	whole, b, ok := digits(b)
	if !ok {
		return false
	}
	fraction := 0
	if len(b) > 0 && b[0] == '.' {
		if fraction, b, ok = digits(b[1:]); !ok {
			return false
		}
	}
	if whole+fraction == 0 {
		return false
	}
	if len(b) == 0 {
		return true
	}
	if b[0]|0x20 != 'e' {
		return false
	}
	b = b[1:]
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	n, b, ok := digits(b)
	return ok && n > 0 && len(b) == 0
}

// digits skips leading digits. A single underscore is allowed between two of them.
func digits(b []byte) (n int, rest []byte, ok bool) {
	i := 0
	for ; i < len(b); i++ {
		if b[i]-'0' <= 9 {
			n++
			continue
		}
		if b[i] != '_' {
			break
		}
		if i == 0 || b[i-1] == '_' || i+1 == len(b) || b[i+1]-'0' > 9 {
			return 0, nil, false
		}
	}
	return n, b[i:], true
}

func isWord(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}
