package line

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/jsonscan"
	"github.com/shaledb/shale/internal/read/logql/line/extract"
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
	errParsed        = errors.New("nothing more is needed")
)

// jsonValue finds the value that begins at or after b[i], and the index after it. Of a string it returns the
// content.
func jsonValue(b []byte, i int) (value []byte, kind jsonscan.Kind, end int, err error) {
	if i = jsonscan.SkipSpace(b, i); i == len(b) {
		return nil, 0, 0, errJSONMalformed
	}
	kind, end = jsonscan.Value(b, i)
	if end >= 0 && kind != jsonscan.Unknown {
		if kind == jsonscan.String {
			return b[i+1 : end-1], kind, end, nil
		}
		return b[i:end], kind, end, nil
	}
	switch kind {
	case jsonscan.String:
		err = errJSONString
	case jsonscan.Array:
		err = errJSONArray
	case jsonscan.Object:
		err = errJSONObject
	default:
		err = errJSONType
	}
	return nil, 0, 0, err
}

// eachMember calls visit for each member of an object until it returns an error. It unescapes keys into arena
// and returns that.
func eachMember(b, arena []byte, visit func(key, value []byte, kind jsonscan.Kind) error) ([]byte, error) {
	i := jsonscan.SkipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return arena, errJSONObject
	}
	if i = jsonscan.SkipSpace(b, i+1); i == len(b) {
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
		end, escaped := jsonscan.StringEnd(b, i)
		if end < 0 {
			return arena, errJSONMalformed
		}
		key := b[i:end]
		if escaped {
			at, ok := len(arena), false
			if arena, ok = jsonscan.AppendUnescaped(arena, key, jsonscan.Loki); !ok {
				return arena, errJSONEscape
			}
			key = arena[at:len(arena):len(arena)]
		}
		if i = jsonscan.SkipSpace(b, end+1); i == len(b) || b[i] != ':' {
			return arena, errJSONMalformed
		}
		value, kind, end, err := jsonValue(b, i+1)
		if err != nil {
			return arena, err
		}
		if err := visit(key, value, kind); err != nil {
			return arena, err
		}
		if i = jsonscan.SkipSpace(b, end); i == len(b) {
			return arena, errJSONArray
		}
		switch b[i] {
		case '}':
			return arena, nil
		case ',':
		default:
			return arena, errJSONObject
		}
		if i = jsonscan.SkipSpace(b, i+1); i == len(b) {
			return arena, errJSONArray
		}
	}
}

// jsonText returns a JSON string as the value of a label: unescaped, empty if an escape is invalid, and with
// a space for each invalid character.
func (l *labels) jsonText(raw []byte) string {
	if bytes.IndexByte(raw, '\\') >= 0 {
		at, ok := len(l.arena), false
		if l.arena, ok = jsonscan.AppendUnescaped(l.arena, raw, jsonscan.Loki); !ok {
			l.arena = l.arena[:at]
			return ""
		}
		raw = l.arena[at:len(l.arena):len(l.arena)]
	}
	return l.valid(raw)
}

// valid returns the text itself or, if it has invalid characters, a copy with spaces in their place.
func (l *labels) valid(b []byte) string {
	if !extract.HasInvalid(b) {
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
