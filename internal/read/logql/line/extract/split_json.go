package extract

import (
	"bytes"

	"github.com/shaledb/shale/internal/jsonscan"
	"github.com/shaledb/shale/internal/model"
)

// maxNested bounds the brackets within a value.
const maxNested = 32

// jsonText reads text of a line of JSON.
func (x *splitFinder) jsonText(b []byte) {
	for i := 0; i < len(b); {
		switch x.now.mode {
		case unknown, ended:
			return
		case inString:
			i = x.jsonString(b, i)
		case inNumber:
			i = x.jsonNumber(b, i)
		case nestedString:
			i = x.jsonNestedString(b, i)
		case inEscape:
			x.now.mode, x.now.begun = inString, true
			i++
		case nestedEscape:
			x.now.mode = nestedString
			i++
		case nested:
			x.jsonNested(b[i])
			i++
		default:
			if jsonscan.Space(b[i]) {
				i++
				continue
			}
			i = x.jsonBetween(b, i)
		}
	}
}

// jsonBetween reads what stands between the contents of keys and values, and returns the index after it.
func (x *splitFinder) jsonBetween(b []byte, i int) int {
	c := b[i]
	switch m := x.now.mode; {
	case m == beginsObject && c == '{', m == afterValue && c == ',':
		x.now.mode = expectsKey
		return i + 1
	case (m == expectsKey || m == afterValue) && c == '}':
		x.now.mode = ended
		return i + 1
	case m == expectsKey && c == '"':
		return x.jsonKey(b, i)
	case m == expectsValue:
		return x.jsonValue(b, i)
	}
	x.now.mode = unknown
	return i
}

// jsonKey reads a key and the colon. Both lie in one fragment, unless the key has a value of a column.
func (x *splitFinder) jsonKey(b []byte, i int) int {
	x.now.mode = unknown
	end, escaped := jsonscan.StringEnd(b, i+1)
	if end < 0 || escaped {
		return i
	}
	key := b[i+1 : end]
	if i = jsonscan.SkipSpace(b, end+1); i == len(b) || b[i] != ':' {
		return i
	}
	id := x.keys.add(0, key, `"`, `":`, x.names)
	if id == 0 {
		return i
	}
	x.now = place{mode: expectsValue, key: id}
	return i + 1
}

// jsonValue reads the beginning of a value, or a word.
func (x *splitFinder) jsonValue(b []byte, i int) int {
	x.now.begun = false
	word := ""
	switch c := b[i]; {
	case c == '"':
		x.now.mode = inString
		if i++; i == len(b) {
			return i
		}
		return x.jsonString(b, i)
	case c == '-' || c-'0' <= 9:
		x.now.mode = inNumber
		return i
	case c == '[' || c == '{' && !x.keys.all[x.now.key].below: // fields below a key are left to findJSON
		x.now.mode = nested
		return i
	case c == 't':
		word = "true"
	case c == 'f':
		word = "false"
	case c == 'n':
		word = "null"
	}
	if word == "" || !jsonscan.HasWord(b[i:], word) {
		x.now.mode = unknown
		return i
	}
	x.now.mode = afterValue
	if word != "null" {
		x.endValue(b[i:i+len(word)], i, false)
	}
	return i + len(word)
}

// jsonString reads the content of a string, and its last quote.
func (x *splitFinder) jsonString(b []byte, i int) int {
	n := bytes.IndexAny(b[i:], `"\`)
	switch {
	case n < 0:
		x.addText(b[i:], i)
		return len(b)
	case b[i+n] == '"':
		x.now.mode = afterValue
		x.endValue(b[i:i+n], i, true)
		return i + n + 1
	case x.field() >= 0:
		x.now.mode = unknown
		return i
	}
	x.now.mode = inEscape
	return i + n + 1
}

// jsonNumber reads the digits of a number. What follows it must be in the same fragment as its last digit,
// unless that is of a column.
func (x *splitFinder) jsonNumber(b []byte, i int) int {
	end := i
	for end < len(b) && (b[end]-'0' <= 9 || b[end] == '.' || b[end] == '-' || b[end] == '+' || b[end]|0x20 == 'e') {
		end++
	}
	switch {
	case end == len(b):
		x.addText(b[i:end], i)
	case b[end] == ',' || b[end] == '}' || jsonscan.Space(b[end]):
		x.now.mode = afterValue
		x.endValue(b[i:end], i, false)
	default:
		x.now.mode = unknown
	}
	return end
}

// jsonNested reads a byte between the strings of an object or array that has no field.
func (x *splitFinder) jsonNested(c byte) {
	p := &x.now
	switch c {
	case '"':
		p.mode = nestedString
	case '{', '[':
		if p.depth == maxNested {
			p.mode = unknown
			return
		}
		p.depth++
		p.open <<= 1
		if c == '{' {
			p.open |= 1
		}
	case '}', ']':
		if (c == '}') != (p.open&1 != 0) {
			p.mode = unknown
			return
		}
		p.depth--
		if p.open >>= 1; p.depth == 0 {
			*p = place{mode: afterValue, key: p.key}
		}
	}
}

func (x *splitFinder) jsonNestedString(b []byte, i int) int {
	n := bytes.IndexAny(b[i:], `"\`)
	if n < 0 {
		return len(b)
	}
	if x.now.mode = nested; b[i+n] == '\\' {
		x.now.mode = nestedEscape
	}
	return i + n + 1
}

// jsonColumn reads a value of a column.
func (x *splitFinder) jsonColumn(column uint32) {
	class := x.page.Columns[column].Class
	switch m := x.now.mode; {
	case class == model.TextAny:
		x.now.mode = unknown
	case m == inString:
		x.addColumn(column)
	case m == expectsValue && class == model.TextDigits:
		x.now.mode, x.now.begun = inNumber, false
		x.addColumn(column)
	case m == inNumber && class == model.TextDigits:
		x.addColumn(column)
	case m == inEscape:
		x.now.mode, x.now.begun = inString, true
	case m == nestedEscape:
		x.now.mode = nestedString
	case m == nested || m == nestedString:
	default:
		x.now.mode = unknown
	}
}
