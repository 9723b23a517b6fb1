package line

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// What can be wrong with JSON, in the words that Loki's answers have for it.
//
//lint:file-ignore ST1005 the texts are labels of answers
var (
	errJSONMalformed = errors.New("Malformed JSON error")
	errJSONType      = errors.New("Unknown value type")
	errJSONString    = errors.New("Value is string, but can't find closing '\"' symbol")
	errJSONArray     = errors.New("Value is array, but can't find closing ']' symbol")
	errJSONObject    = errors.New("Value looks like object, but can't find closing '}' symbol")
	errJSONEscape    = errors.New("Encountered an invalid escape sequence in a string")
	errJSONExpected  = errors.New("expecting json object(6), but it is not")
	errRefused       = errors.New("a label filter refuses the line")
)

// jsonKind is the type of a JSON value.
type jsonKind uint8

const (
	jsonString jsonKind = iota
	jsonNumber
	jsonBool
	jsonNull
	jsonObject
	jsonArray
)

func jsonSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// skipSpace returns the place of the first byte from i on that is no space, or -1.
func skipSpace(b []byte, i int) int {
	for ; i < len(b); i++ {
		if !jsonSpace(b[i]) {
			return i
		}
	}
	return -1
}

// stringEnd returns the place of the quote that ends the string whose first byte is b[i], or -1, and whether it has escapes.
func stringEnd(b []byte, i int) (end int, escaped bool) {
	for at := i; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return -1, false
		}
		end = at + n
		slashes := 0
		for end-slashes > i && b[end-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end, bytes.IndexByte(b[i:end], '\\') >= 0
		}
		at = end + 1
	}
}

// blockEnd returns the place behind the bracket that closes the one at b[i], or -1. Brackets of the other kind do not count.
func blockEnd(b []byte, i int, open, closing byte) int {
	level := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			end, _ := stringEnd(b, i+1)
			if end < 0 {
				return -1
			}
			i = end
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

// jsonValue finds the value that begins at or behind b[i], and the place behind it. Of a string it gives what is between the
// quotes. It is as lenient as Loki: a number is whatever begins like one, up to the next comma, bracket or space.
func jsonValue(b []byte, i int) (value []byte, kind jsonKind, end int, err error) {
	if i = skipSpace(b, i); i < 0 {
		return nil, 0, 0, errJSONMalformed
	}
	switch b[i] {
	case '"':
		end, _ = stringEnd(b, i+1)
		if end < 0 {
			return nil, 0, 0, errJSONString
		}
		return b[i+1 : end], jsonString, end + 1, nil
	case '[':
		if end = blockEnd(b, i, '[', ']'); end < 0 {
			return nil, 0, 0, errJSONArray
		}
		return b[i:end], jsonArray, end, nil
	case '{':
		if end = blockEnd(b, i, '{', '}'); end < 0 {
			return nil, 0, 0, errJSONObject
		}
		return b[i:end], jsonObject, end, nil
	}
	for end = i; end < len(b) && !jsonSpace(b[end]) && b[end] != ',' && b[end] != '}' && b[end] != ']'; {
		end++
	}
	value = b[i:end]
	switch c := b[i]; {
	case string(value) == "true", string(value) == "false":
		kind = jsonBool
	case string(value) == "null":
		kind = jsonNull
	case isDigit(c), c == '-':
		kind = jsonNumber
	default:
		return nil, 0, 0, errJSONType
	}
	return value, kind, end, nil
}

// eachMember calls visit for each member of an object until it returns an error. Keys are unescaped into arena, which it returns.
func eachMember(b, arena []byte, visit func(key, value []byte, kind jsonKind) error) ([]byte, error) {
	i := skipSpace(b, 0)
	if i < 0 || b[i] != '{' {
		return arena, errJSONObject
	}
	if i = skipSpace(b, i+1); i < 0 {
		return arena, errJSONMalformed
	}
	for {
		switch b[i] {
		case '}':
			return arena, nil
		case '"':
			i++
		default:
			return arena, errJSONObject
		}
		end, escaped := stringEnd(b, i)
		if end < 0 {
			return arena, errJSONMalformed
		}
		key := b[i:end]
		if escaped {
			at, ok := len(arena), false
			if arena, ok = appendUnescaped(arena, key); !ok {
				return arena, errJSONEscape
			}
			key = arena[at:len(arena):len(arena)]
		}
		if i = skipSpace(b, end+1); i < 0 || b[i] != ':' {
			return arena, errJSONMalformed
		}
		value, kind, end, err := jsonValue(b, i+1)
		if err != nil {
			return arena, err
		}
		if err := visit(key, value, kind); err != nil {
			return arena, err
		}
		if i = skipSpace(b, end); i < 0 {
			return arena, errJSONArray
		}
		switch b[i] {
		case '}':
			return arena, nil
		case ',':
		default:
			return arena, errJSONObject
		}
		if i = skipSpace(b, i+1); i < 0 {
			return arena, errJSONArray
		}
	}
}

// appendUnescaped appends a JSON string without its escapes. It returns false for an escape that does not exist.
func appendUnescaped(dst, s []byte) ([]byte, bool) {
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			return append(dst, s...), true
		}
		dst, s = append(dst, s[:n]...), s[n:]
		if len(s) < 2 {
			return dst, false
		}
		c := s[1]
		switch c {
		case '"', '\\', '/':
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, size := unescapeRune(s)
			if size == 0 {
				return dst, false
			}
			dst, s = utf8.AppendRune(dst, r), s[size:]
			continue
		default:
			return dst, false
		}
		dst, s = append(dst, c), s[2:]
	}
}

// unescapeRune reads four digits behind \u, and a second one behind it where the first is a surrogate. Size 0 says that it is none.
func unescapeRune(s []byte) (r rune, size int) {
	const surrogates, lowSurrogates, behind = 0xd800, 0xdc00, 0xe000
	r, ok := fourHex(s)
	if !ok {
		return 0, 0
	}
	if r < surrogates || r >= behind {
		return r, 6
	}
	low, ok := fourHex(s[6:])
	if !ok || low < lowSurrogates {
		return 0, 0
	}
	return 0x10000 + (r-surrogates)<<10 + (low - lowSurrogates), 12
}

// fourHex reads the digits behind two bytes that were not looked at.
func fourHex(s []byte) (r rune, ok bool) {
	if len(s) < 6 {
		return 0, false
	}
	for _, c := range s[2:6] {
		switch {
		case isDigit(c):
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// jsonText is the value of a JSON string as a label has it: unescaped, empty if that is impossible, and with a space for
// what is no character.
func (l *labels) jsonText(raw []byte) string {
	if bytes.IndexByte(raw, '\\') >= 0 {
		at, ok := len(l.arena), false
		if l.arena, ok = appendUnescaped(l.arena, raw); !ok {
			l.arena = l.arena[:at]
			return ""
		}
		raw = l.arena[at:len(l.arena):len(l.arena)]
	}
	return l.valid(raw)
}

// valid is the text itself or, if it has what is no character, a copy with spaces instead.
func (l *labels) valid(b []byte) string {
	if !hasInvalid(b) {
		return text(b)
	}
	at := len(l.arena)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError {
			l.arena = append(l.arena, ' ')
		} else {
			l.arena = append(l.arena, b[:size]...)
		}
		b = b[size:]
	}
	return text(l.arena[at:len(l.arena):len(l.arena)])
}

// hasInvalid reports whether b has U+FFFD or bytes that are no UTF-8.
func hasInvalid(b []byte) bool { return !utf8.Valid(b) || bytes.Contains(b, []byte("\ufffd")) }
