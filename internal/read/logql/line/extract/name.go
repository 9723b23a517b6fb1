package extract

import (
	"bytes"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// AppendName appends the label name that a key stands for, or part of it: only the first part of a name can
// begin it with a digit. It is nothing if the key is nothing but space.
func AppendName(dst, key []byte, first bool) []byte {
	key = bytes.TrimSpace(key)
	if len(key) == 0 {
		return dst
	}
	if first && key[0] >= '0' && key[0] <= '9' {
		dst = append(dst, '_')
	}
	for i := 0; i < len(key); {
		c := key[i]
		if IsNameByte(c) {
			dst = append(dst, c)
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(key[i:])
		}
		dst = append(dst, '_')
		i += size
	}
	return dst
}

// IsNameByte reports whether a label name may have a byte.
func IsNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= '0' && c <= '9'
}

// LooksInto reports whether a label may come from the object of this name; without names of labels any may.
// Like Loki, parsers do not look into other objects, whatever is wrong in them. Loki compares names as if one
// could go on without an underscore.
func LooksInto(names []string, object []byte) bool {
	for _, name := range names {
		if strings.HasPrefix(name, text(object)) {
			return true
		}
	}
	return len(names) == 0
}

// HasInvalid reports whether b has U+FFFD or invalid UTF-8.
func HasInvalid(b []byte) bool { return !utf8.Valid(b) || bytes.Contains(b, []byte("\ufffd")) }

// plain reports whether a value is what it looks like.
func plain(value []byte, unescapes bool) bool {
	ascii := true
	for _, c := range value {
		if c >= utf8.RuneSelf {
			ascii = false
		}
		if c == '\\' && unescapes {
			return false
		}
	}
	return ascii || !HasInvalid(value)
}

// ascii reports whether b has no other characters than ASCII.
func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
