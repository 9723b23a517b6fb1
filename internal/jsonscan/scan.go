package jsonscan

import "bytes"

// Kind is the type of a value.
type Kind uint8

// The kinds of values.
const (
	Unknown Kind = iota
	String
	Number
	Bool
	Null
	Object
	Array
)

// Space reports whether a byte is white space.
func Space(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// SkipSpace returns the index of the first byte from i on that is not white space, or len(b).
func SkipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && Space(b[i]) { // mostly there is none, which the first comparison tells
		i++
	}
	return i
}

// StringEnd returns the index of the quote that ends the string whose content begins at i, or -1, and whether
// the string has escapes.
func StringEnd(b []byte, i int) (end int, escaped bool) {
	n := bytes.IndexByte(b[i:], '"')
	if n < 0 {
		return -1, false
	}
	end = i + n
	slashes := 0
	for end-slashes > i && b[end-slashes-1] == '\\' {
		slashes++
	}
	if slashes%2 == 0 {
		return end, bytes.IndexByte(b[i:end], '\\') >= 0
	}
	// Where one quote is escaped, others are, and a search for each costs more than a look at every byte.
	for end++; end < len(b); end++ {
		switch b[end] {
		case '"':
			return end, true
		case '\\':
			end++
		}
	}
	return -1, true
}

// BlockEnd returns the index after the bracket that closes the one at i, or -1. It ignores brackets of the
// other kind, and those in strings.
func BlockEnd(b []byte, i int, open, closing byte) int {
	for level := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i, _ = StringEnd(b, i+1); i < 0 {
				return -1
			}
		case open:
			level++
		case closing:
			if level--; level == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// Value returns the kind of the value that begins at i, which must be within b, and the index after it. The
// index is -1 if the text ends within a string, object or array. A number is whatever begins like one, up to
// the next comma, closing bracket or space.
func Value(b []byte, i int) (kind Kind, end int) {
	switch b[i] {
	case '"':
		if end, _ = StringEnd(b, i+1); end >= 0 {
			end++
		}
		return String, end
	case '[':
		return Array, BlockEnd(b, i, '[', ']')
	case '{':
		return Object, BlockEnd(b, i, '{', '}')
	}
	for end = i; end < len(b) && !Space(b[end]) && b[end] != ',' && b[end] != '}' && b[end] != ']'; {
		end++
	}
	switch word := b[i:end]; {
	case string(word) == "true", string(word) == "false":
		return Bool, end
	case string(word) == "null":
		return Null, end
	case b[i] == '-' || b[i] >= '0' && b[i] <= '9':
		return Number, end
	}
	return Unknown, end
}
