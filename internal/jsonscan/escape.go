package jsonscan

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Dialect says which escapes a string may have.
type Dialect uint8

const (
	// JSON has the escapes of the standard. Two surrogates must make a pair.
	JSON Dialect = iota
	// Loki is JSON as Loki's parser of lines reads it: it does not look at the two bytes before the digits of a
	// second surrogate, nor whether the two make a pair.
	Loki
	// Logfmt adds \', and has U+FFFD for a surrogate alone.
	Logfmt
)

// shortStretch is how many bytes without an escape are copied one by one, before a search for the next escape
// costs less. Quoted JSON has an escape every few bytes, a stack trace one a line: BenchmarkAppendUnescaped
// has both.
const shortStretch = 8

// AppendUnescaped appends the content of a string with its escapes resolved. It returns false for an escape
// that the dialect does not have.
func AppendUnescaped(dst, s []byte, d Dialect) ([]byte, bool) {
	n := len(dst)
	dst = slices.Grow(dst, len(s))[:n+len(s)] // no escape makes a string longer
	for i := 0; i < len(s); {
		c := s[i]
		if c != '\\' {
			stretch := min(i+shortStretch, len(s))
			for ; i < stretch && s[i] != '\\'; i++ {
				dst[n] = s[i]
				n++
			}
			if i == stretch {
				rest := s[i:]
				if end := bytes.IndexByte(rest, '\\'); end >= 0 {
					rest = rest[:end]
				}
				n, i = n+copy(dst[n:], rest), i+len(rest)
			}
			continue
		}
		if i+1 == len(s) {
			return dst[:n], false
		}
		switch c = s[i+1]; c {
		case '"', '\\', '/':
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'u':
			r, size := escapedRune(s[i:], d)
			if size == 0 {
				return dst[:n], false
			}
			n, i = len(utf8.AppendRune(dst[:n], r)), i+size
			continue
		default:
			if c != '\'' || d != Logfmt {
				return dst[:n], false
			}
		}
		dst[n] = c
		n, i = n+1, i+2
	}
	return dst[:n], true
}

// escapedRune reads the \u0000 at the beginning of s, and the one after it if they are a pair of surrogates.
// A size of 0 means that there is none.
func escapedRune(s []byte, d Dialect) (r rune, size int) {
	high, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(high) {
		return high, len(`\u0000`)
	}
	const low, both = 0xdc00, len(`\u0000\u0000`)
	switch second, ok := hex4(s[len(`\u0000`):]); {
	case ok && d == Loki && second >= low:
		return 0x10000 + (high-0xd800)<<10 + second - low, both
	case ok && d != Loki && s[6] == '\\' && s[7] == 'u':
		if r = utf16.DecodeRune(high, second); r != utf8.RuneError {
			return r, both
		}
	}
	if d == Logfmt {
		return utf8.RuneError, len(`\u0000`)
	}
	return 0, 0
}

// hex4 reads four digits after two bytes that it does not look at.
func hex4(s []byte) (r rune, ok bool) {
	if len(s) < 6 {
		return 0, false
	}
	for _, c := range s[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
