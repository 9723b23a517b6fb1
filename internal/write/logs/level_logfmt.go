package logs

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/jsonscan"
)

// logfmtLevel returns the value of the field of a logfmt line whose name, in any case, has the highest
// precedence. It stops at a syntax error, or at a field with the highest precedence of all.
func logfmtLevel(line []byte) (value []byte) {
	best := noLevel
	for p := 0; p < len(line); {
		var f field
		if f, p = logfmtField(line, p); p < 0 {
			break
		}
		if r := foldedRank(f.name); r < best {
			best, value = r, f.value
			if r == 0 {
				break
			}
		}
	}
	return value
}

type field struct{ name, value []byte }

// logfmtField parses the field at p and returns where the next one may begin, or -1 at the end of the
// line and on a syntax error.
func logfmtField(line []byte, p int) (f field, next int) {
	for p < len(line) && line[p] <= ' ' {
		p++
	}
	begin, ascii := p, true
	for ; p < len(line) && line[p] > ' ' && line[p] != '='; p++ {
		if line[p] == '"' {
			return f, -1
		}
		ascii = ascii && line[p] < utf8.RuneSelf
	}
	f.name = line[begin:p]
	if p == begin || !ascii && bytes.ContainsRune(f.name, utf8.RuneError) {
		return f, -1
	}
	if p == len(line) || line[p] != '=' {
		return f, p
	}
	if p++; p == len(line) || line[p] <= ' ' {
		return f, p
	}
	if line[p] == '"' {
		return quotedField(f, line, p)
	}
	begin = p
	for ; p < len(line) && line[p] > ' '; p++ {
		if line[p] == '=' || line[p] == '"' {
			return f, -1
		}
	}
	f.value = line[begin:p]
	return f, p
}

// quotedField parses the value of a field that begins with the quote at p.
func quotedField(f field, line []byte, p int) (_ field, next int) {
	end, escaped := jsonscan.StringEnd(line, p+1)
	if end < 0 {
		return f, -1
	}
	f.value = line[p+1 : end]
	if escaped {
		if !validEscapes(f.value) {
			return f, -1
		}
		if foldedRank(f.name) != noLevel {
			var s string
			if json.Unmarshal(line[p:end+1], &s) == nil {
				f.value = []byte(s)
			}
		}
	}
	return f, end + 1
}

// validEscapes reports whether every backslash begins an escape that JSON allows, or precedes a single
// quote.
func validEscapes(b []byte) bool {
	for p := bytes.IndexByte(b, '\\'); p >= 0 && p < len(b); {
		p++
		switch {
		case p == len(b):
			return false
		case b[p] == 'u':
			if len(b)-p < 5 {
				return false
			}
			for _, c := range b[p+1 : p+5] {
				if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
					return false
				}
			}
			p += 5
		case bytes.IndexByte([]byte(`"\/'bfnrt`), b[p]) < 0:
			return false
		default:
			p++
		}
		n := bytes.IndexByte(b[p:], '\\')
		if n < 0 {
			break
		}
		p += n
	}
	return true
}

// foldedRank returns the highest levelRank of the spellings of name in any case, or noLevel.
func foldedRank(name []byte) int {
	if len(name) < 3 || len(name) > 15 { // 15: case folding maps ſ, of two bytes, to s
		return noLevel
	}
	switch {
	case bytes.EqualFold(name, []byte("level")):
		return 0
	case bytes.EqualFold(name, []byte("log.level")):
		return 3
	case bytes.EqualFold(name, []byte("severity")):
		return 4
	case bytes.EqualFold(name, []byte("SeverityText")):
		return 7
	case bytes.EqualFold(name, []byte("lvl")):
		return 8
	case bytes.EqualFold(name, []byte("severity_text")):
		return 11
	}
	return noLevel
}
