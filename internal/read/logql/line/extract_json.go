package line

import (
	"bytes"

	"github.com/shaledb/shale/internal/jsonscan"
)

// findJSON finds the fields of a line for | json. It reads what jsonState.object reads.
func (x *extractor) findJSON(line []byte) bool {
	i := jsonscan.SkipSpace(line, 0)
	if i == len(line) || line[i] != '{' {
		return false
	}
	_, o := x.object(line, i+1, 0, 0)
	return o != jsonUnusual
}

// object reads the members of the object of a key, whose bracket is before line[i], and returns the index
// after it.
func (x *extractor) object(line []byte, i int, parent int32, depth int) (int, outcome) {
	next := &x.keys.all[parent].first
	for {
		if i = jsonscan.SkipSpace(line, i); i >= len(line) {
			return 0, jsonUnusual
		}
		k := &x.keys.all[*next]
		if n := len(k.text); n > 0 && len(line)-i > n && string(line[i:i+n]) == string(k.text) {
			i += n
		} else {
			if line[i] == '}' {
				return i + 1, jsonDone
			}
			var id int32
			if id, i = x.member(line, i, parent); id == 0 {
				return 0, jsonUnusual
			}
			*next = id
			k = &x.keys.all[id]
		}
		own := *next
		next = &k.next
		if i = jsonscan.SkipSpace(line, i); i >= len(line) {
			return 0, jsonUnusual
		}
		var o outcome
		if i, o = x.value(line, i, own, depth); o != jsonDone {
			return 0, o
		}
		if i < len(line) && line[i] == ',' {
			i++
			continue
		}
		if i = jsonscan.SkipSpace(line, i); i >= len(line) {
			return 0, jsonUnusual
		}
		switch line[i] {
		case ',':
			i++
		case '}':
			return i + 1, jsonDone
		default:
			return 0, jsonUnusual
		}
	}
}

// member reads the key that begins at line[i], and the colon. It returns its index in the table, or 0 if it
// is not a plain key, and where its value begins.
func (x *extractor) member(line []byte, i int, parent int32) (id int32, end int) {
	if line[i] != '"' {
		return 0, 0
	}
	end, escaped := jsonscan.StringEnd(line, i+1)
	if end < 0 || escaped {
		return 0, 0
	}
	key := line[i+1 : end]
	if i = jsonscan.SkipSpace(line, end+1); i >= len(line) || line[i] != ':' {
		return 0, 0
	}
	return x.keys.add(parent, key, `"`, `":`, x.names), i + 1
}

// value reads the value of a key, which begins at line[i].
func (x *extractor) value(line []byte, i int, key int32, depth int) (int, outcome) {
	end := i // of the value, or its last quote
	switch c := line[i]; {
	case c == '"':
		n := bytes.IndexByte(line[i+1:], '"')
		if n < 0 {
			return 0, jsonUnusual
		}
		if end = i + 1 + n; line[end-1] == '\\' {
			if end, _ = jsonscan.StringEnd(line, i+1); end < 0 {
				return 0, jsonUnusual
			}
		}
		if field := x.keys.all[key].field; field >= 0 {
			return x.leaf(line, end, end+1, field, line[i+1:end], true, depth)
		}
		return end + 1, jsonDone
	case c == '-' || isDigit(c):
		if end = numberEnd(line, i); end < 0 {
			return 0, jsonUnusual
		}
	case c == '{' && x.keys.all[key].below:
		if depth+1 >= MaxJSONDepth {
			return 0, jsonUnusual
		}
		return x.object(line, i+1, key, depth+1)
	case c == '{':
		if end = jsonscan.BlockEnd(line, i, '{', '}'); end < 0 {
			return 0, jsonUnusual
		}
		return end, jsonDone
	case c == '[':
		if end = x.arrays.array(line, i); end < 0 {
			return 0, jsonUnusual
		}
		return end, jsonDone
	case c == 't' && hasToken(line[i:], "true"):
		end = i + len("true")
	case c == 'f' && hasToken(line[i:], "false"):
		end = i + len("false")
	case c == 'n' && hasToken(line[i:], "null"):
		return i + len("null"), jsonDone
	default:
		return 0, jsonUnusual
	}
	if field := x.keys.all[key].field; field >= 0 {
		return x.leaf(line, end, end, field, line[i:end], false, depth)
	}
	return end, jsonDone
}

// leaf notes the value of a field. The value ends at line[at], and what follows it begins at line[end].
func (x *extractor) leaf(line []byte, at, end, field int, value []byte, unescapes bool, depth int) (int, outcome) {
	if !x.take(field, value, unescapes) {
		return 0, jsonUnusual
	}
	if !x.complete() {
		return end, jsonDone
	}
	// A label within an object counts only if the object is closed.
	if depth > 0 && !closes(line, at, depth) {
		return 0, jsonUnusual
	}
	return end, jsonParsed
}
