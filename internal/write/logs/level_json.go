package logs

import (
	"bytes"
	"encoding/json"
)

// maxLevelDepth is how deep objects are searched: the line itself and the objects in it.
const maxLevelDepth = 2

// escapedASCII is how a letter of a name might be written that is not looked for otherwise.
var escapedASCII = []byte(`\u00`)

// jsonLevel returns the first string in a JSON object, or in the objects in it, whose name has a levelRank, as it is
// written. It looks at no more of the object than it needs and checks as little; over says that nothing more is to be
// looked at, because that string is found or what there is is not JSON.
func jsonLevel(b []byte, depth int) (value []byte, over bool) {
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
		if value, p, over = jsonMember(b, p, name, depth); over {
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

// jsonMember looks at the value at p of a member of an object and returns where it ends.
func jsonMember(b []byte, p int, name []byte, depth int) (value []byte, end int, over bool) {
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
			if value, over = jsonLevel(b[p:end], depth+1); over {
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

// skipSpace returns where the next byte stands that is not JSON's white space.
func skipSpace(b []byte, p int) int {
	for p < len(b) && (b[p] == ' ' || b[p] == '\n' || b[p] == '\r' || b[p] == '\t') {
		p++
	}
	return p
}

// stringEnd returns where the closing quote of a string stands whose content begins at p, or -1, and whether anything in it
// is escaped.
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

// blockEnd returns where an object or array ends that begins at p, or -1. It counts brackets outside of strings.
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
