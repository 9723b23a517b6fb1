package extract

import (
	"bytes"

	"github.com/shaledb/shale/internal/jsonscan"
)

// findJSON finds the fields of a line of JSON.
func (f *Finder) findJSON(line []byte) bool {
	i := jsonscan.SkipSpace(line, 0)
	if i == len(line) || line[i] != '{' {
		return false
	}
	_, o := f.object(line, i+1, 0, 0)
	return o != unusual
}

// object reads the members of the object of a key, whose bracket is before line[i], and returns the index
// after it.
func (f *Finder) object(line []byte, i int, parent int32, depth int) (int, outcome) {
	next := &f.keys.all[parent].first
	for first := true; ; first = false {
		if !first {
			var o outcome
			if i, next, o = f.strings(line, i, next, depth); o != done {
				return 0, o
			}
			switch line[i] {
			case ',':
				i++
			case '}':
				return i + 1, done
			default:
				return 0, unusual
			}
		}
		if i = jsonscan.SkipSpace(line, i); i >= len(line) {
			return 0, unusual
		}
		k := &f.keys.all[*next]
		if n := len(k.text); n > 0 && len(line)-i > n && string(line[i:i+n]) == string(k.text) {
			i += n
		} else {
			if line[i] == '}' {
				return i + 1, done
			}
			var id int32
			if id, i = f.member(line, i, parent); id == 0 {
				return 0, unusual
			}
			*next = id
			k = &f.keys.all[id]
		}
		own := *next
		next = &k.next
		if i = jsonscan.SkipSpace(line, i); i >= len(line) {
			return 0, unusual
		}
		var o outcome
		if i, o = f.value(line, i, own, depth); o != done {
			return 0, o
		}
	}
}

// strings reads the members that follow a member and its value: the expected keys, with strings as values,
// and only commas between them. It returns the index of the next byte other than space, and where the key
// that follows is expected.
func (f *Finder) strings(line []byte, i int, next *int32, depth int) (int, *int32, outcome) {
	for {
		k := &f.keys.all[*next]
		n := len(k.following)
		if !k.isString || len(line)-i <= n || string(line[i:i+n]) != string(k.following) {
			break
		}
		begin := i + n
		end := stringEnd(line, begin)
		if end < 0 {
			return 0, nil, unusual
		}
		i, next = end+1, &k.next
		if k.field < 0 {
			continue
		}
		if _, o := f.leaf(line, end, i, k.field, line[begin:end], true, depth); o != done {
			return 0, nil, o
		}
	}
	if i = jsonscan.SkipSpace(line, i); i >= len(line) {
		return 0, nil, unusual
	}
	return i, next, done
}

// stringEnd returns the index of the quote that ends the string whose content begins at line[i], or -1.
func stringEnd(line []byte, i int) int {
	n := bytes.IndexByte(line[i:], '"')
	if n < 0 {
		return -1
	}
	end := i + n
	if n > 0 && line[end-1] == '\\' {
		end, _ = jsonscan.StringEnd(line, i)
	}
	return end
}

// member reads the key that begins at line[i], and the colon. It returns its index in the table, or 0 if it
// is not a plain key, and where its value begins.
func (f *Finder) member(line []byte, i int, parent int32) (id int32, end int) {
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
	return f.keys.add(parent, key, `"`, `":`, f.names), i + 1
}

// value reads the value of a key, which begins at line[i].
func (f *Finder) value(line []byte, i int, key int32, depth int) (int, outcome) {
	end := i // of the value, or its last quote
	f.keys.all[key].isString = false
	switch c := line[i]; {
	case c == '"':
		if end = stringEnd(line, i+1); end < 0 {
			return 0, unusual
		}
		f.keys.all[key].isString = true
		if field := f.keys.all[key].field; field >= 0 {
			return f.leaf(line, end, end+1, field, line[i+1:end], true, depth)
		}
		return end + 1, done
	case c == '-' || c-'0' <= 9:
		if end = jsonscan.NumberEnd(line, i); end < 0 {
			return 0, unusual
		}
	case c == '{' && f.keys.all[key].below:
		if depth+1 >= MaxDepth {
			return 0, unusual
		}
		return f.object(line, i+1, key, depth+1)
	case c == '{':
		if end = jsonscan.BlockEnd(line, i, '{', '}'); end < 0 {
			return 0, unusual
		}
		return end, done
	case c == '[':
		if end, f.brackets = jsonscan.ArrayEnd(line, i, f.brackets); end < 0 {
			return 0, unusual
		}
		return end, done
	case c == 't' && jsonscan.HasWord(line[i:], "true"):
		end = i + len("true")
	case c == 'f' && jsonscan.HasWord(line[i:], "false"):
		end = i + len("false")
	case c == 'n' && jsonscan.HasWord(line[i:], "null"):
		return i + len("null"), done
	default:
		return 0, unusual
	}
	if field := f.keys.all[key].field; field >= 0 {
		return f.leaf(line, end, end, field, line[i:end], false, depth)
	}
	return end, done
}

// leaf notes the value of a field. The value ends at line[at], and what follows it begins at line[end].
func (f *Finder) leaf(line []byte, at, end, field int, value []byte, unescapes bool, depth int) (int, outcome) {
	if !f.take(field, value, unescapes) {
		return 0, unusual
	}
	if !f.all() {
		return end, done
	}
	// A label within an object counts only if the object is closed.
	if depth > 0 && !jsonscan.Closes(line, at, depth) {
		return 0, unusual
	}
	return end, complete
}
