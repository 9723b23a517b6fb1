package logs

import (
	"bytes"
	"encoding/json"
)

// maxLevelDepth is the number of nesting levels that are searched: the line itself and the objects
// directly in it.
const maxLevelDepth = 2

// escapedASCII begins an escaped ASCII letter, with which a field name can hide from mayNameLevel.
var escapedASCII = []byte(`\u00`)

// jsonLevel returns the first string, undecoded, whose name has a levelRank in a JSON object or the
// objects directly in it. It reads and checks no more of the object than it needs. It returns done if
// the search is finished, because it found the string or the text is not JSON.
func jsonLevel(b []byte, depth int) (value []byte, done bool) {
	p := skipSpace(b, 0)
	if p == len(b) || b[p] != '{' {
		return nil, true
	}
	if p = skipSpace(b, p+1); p < len(b) && b[p] == '}' {
		return nil, false
	}
	for p < len(b) {
		if b[p] == '}' {
			return nil, false
		}
		if b[p] != '"' {
			return nil, true
		}
		end, escaped := stringEnd(b, p+1)
		if end < 0 {
			return nil, true
		}
		name := b[p+1 : end]
		if escaped {
			var s string
			if json.Unmarshal(b[p:end+1], &s) != nil {
				return nil, true
			}
			name = []byte(s)
		}
		if p = skipSpace(b, end+1); p == len(b) || b[p] != ':' {
			return nil, true
		}
		if p = skipSpace(b, p+1); p == len(b) {
			return nil, true
		}
		if value, p, done = jsonMember(b, p, name, depth); done {
			return value, true
		}
		p = skipSpace(b, p)
		switch {
		case p == len(b):
			return nil, true
		case b[p] == '}':
			return nil, false
		case b[p] != ',':
			return nil, true
		}
		p = skipSpace(b, p+1)
	}
	return nil, true
}

// jsonMember examines the value at p of an object's member and returns where it ends.
func jsonMember(b []byte, p int, name []byte, depth int) (value []byte, end int, done bool) {
	switch b[p] {
	case '"':
		if end, _ = stringEnd(b, p+1); end < 0 {
			return nil, 0, true
		}
		if levelRank(name) != noLevel {
			return b[p+1 : end], 0, true
		}
		return nil, end + 1, false
	case '[':
		end = blockEnd(b, p, '[', ']')
		return nil, end, end < 0
	case '{':
		if end = blockEnd(b, p, '{', '}'); end < 0 {
			return nil, 0, true
		}
		if depth+1 < maxLevelDepth {
			if value, done = jsonLevel(b[p:end], depth+1); done {
				return value, 0, true
			}
		}
		return nil, end, false
	}
	for end = p; end < len(b); end++ {
		if c := b[end]; c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == '}' || c == ']' {
			break
		}
	}
	switch word := string(b[p:end]); {
	case word == "true" || word == "false" || word == "null":
	case b[p] == '-' || b[p] >= '0' && b[p] <= '9':
	default:
		return nil, 0, true
	}
	return nil, end, false
}

// skipSpace returns the index of the next byte that is not JSON white space.
func skipSpace(b []byte, p int) int {
	for p < len(b) && (b[p] == ' ' || b[p] == '\n' || b[p] == '\r' || b[p] == '\t') {
		p++
	}
	return p
}

// stringEnd returns the index of the closing quote of the string whose content begins at p, or -1, and
// whether the string has escapes.
func stringEnd(b []byte, p int) (end int, escaped bool) {
	for from := p; ; {
		n := bytes.IndexByte(b[from:], '"')
		if n < 0 {
			return -1, escaped
		}
		end = from + n
		k := end
		for k > p && b[k-1] == '\\' {
			k--
		}
		if !escaped && bytes.IndexByte(b[from:end], '\\') >= 0 {
			escaped = true
		}
		if (end-k)%2 == 0 {
			return end, escaped
		}
		from = end + 1
	}
}

// blockEnd returns the index after the object or array that begins at p, or -1. It counts brackets
// outside strings.
func blockEnd(b []byte, p int, open, closing byte) int {
	for depth := 0; p < len(b); p++ {
		switch b[p] {
		case '"':
			if p, _ = stringEnd(b, p+1); p < 0 {
				return -1
			}
		case open:
			depth++
		case closing:
			if depth--; depth == 0 {
				return p + 1
			}
		}
	}
	return -1
}
