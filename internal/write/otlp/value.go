package otlp

import (
	"bytes"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/wire"
)

// maxDepth bounds the nesting of values.
const maxDepth = 64

// kind is the type of an AnyValue, by the number of its field.
type kind int32

const (
	noValue    kind = 0
	textValue  kind = 1
	boolValue  kind = 2
	intValue   kind = 3
	floatValue kind = 4
	listValue  kind = 5
	mapValue   kind = 6
	bytesValue kind = 7
)

// value is an AnyValue: a range of the body, or a number.
type value struct {
	kind       kind
	begin, end int
	number     uint64
}

// readValue parses the AnyValue message in [p, end).
func readValue(d []byte, p, end int) (v value, err error) {
	for p < end {
		n, kind32, next, err := wire.Field(d, p, end)
		if err != nil {
			return v, err
		}
		switch k := kind(n); k {
		case textValue, listValue, mapValue, bytesValue:
			begin, stop, err := wire.Message("a value", d, kind32, next, end)
			if err != nil {
				return v, err
			}
			v, p = value{kind: k, begin: begin, end: stop}, stop
		case boolValue, intValue:
			number, next, err := wire.Number("value", d, kind32, next, end)
			if err != nil {
				return v, err
			}
			v, p = value{kind: k, number: number}, next
		case floatValue:
			number, next, err := wire.Fixed64("value", d, kind32, next, end)
			if err != nil {
				return v, err
			}
			v, p = value{kind: k, number: number}, next
		default:
			if p, err = wire.Skip(d, next, end, kind32); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

// keyValue parses the KeyValue message in [p, end).
func keyValue(d []byte, p, end int) (key []byte, v value, err error) {
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return nil, v, err
		}
		if n > 2 {
			if p, err = wire.Skip(d, next, end, kind); err != nil {
				return nil, v, err
			}
			continue
		}
		begin, stop, err := wire.Message("an attribute's key or value", d, kind, next, end)
		if err != nil {
			return nil, v, err
		}
		if n == 1 {
			key = d[begin:stop:stop]
		} else if v, err = readValue(d, begin, stop); err != nil {
			return nil, v, err
		}
		p = stop
	}
	return key, v, nil
}

// writer formats values as text in its arena.
type writer struct {
	d     []byte
	arena []byte
	// reserve reserves memory before it is used. reserved is the most that was needed for one line, resource
	// or scope.
	reserve  func(bytes int64) error
	reserved int64
}

// writtenBytes is the most memory for the text of one byte of a value: a member of a map has at least two
// bytes, and is listed in memberBytes. Values that need less than smallValue are not counted.
const (
	writtenBytes = 40 + memberBytes/2
	memberBytes  = 24 + 32
	smallValue   = 64 << 10
)

// room reserves memory for so many more bytes of text.
func (w *writer) room(bytes int64) error { return w.roomOf(int64(len(w.arena)) + bytes) }

// roomForName makes room for a name of so many bytes with its prefix, and reserves as much for names that are
// sanitized, which are in an arena of their own.
func (w *writer) roomForName(bytes int) error {
	n := len(w.arena) + bytes
	if n <= cap(w.arena) {
		return nil
	}
	n = max(n, 2*cap(w.arena))
	if err := w.roomOf(3 * int64(n)); err != nil {
		return err
	}
	w.arena = model.Sized(w.arena, n)
	return nil
}

// roomOf reserves memory until that many bytes are reserved.
func (w *writer) roomOf(bytes int64) error {
	if bytes <= max(w.reserved, smallValue) {
		return nil
	}
	if err := w.reserve(bytes - w.reserved); err != nil {
		return err
	}
	w.reserved = bytes
	return nil
}

// text formats a value: a string as it is, a number in decimal, bytes in base 64, a list or map as
// JSON.
func (w *writer) text(v value) ([]byte, error) {
	d := w.d
	if v.kind == textValue {
		return d[v.begin:v.end:v.end], nil
	}
	most := int64(v.end - v.begin)
	if v.kind == bytesValue {
		most *= 2
	} else {
		most *= writtenBytes
	}
	if err := w.room(most); err != nil {
		return nil, err
	}
	begin := len(w.arena)
	out := w.arena
	var err error
	switch v.kind {
	case boolValue:
		out = strconv.AppendBool(out, v.number != 0)
	case intValue:
		out = strconv.AppendInt(out, int64(v.number), 10)
	case floatValue:
		out = appendFloat(out, math.Float64frombits(v.number))
	case bytesValue:
		out = base64.StdEncoding.AppendEncode(out, d[v.begin:v.end])
	case listValue, mapValue:
		if out, err = appendJSON(out, d, v, 0); err != nil {
			return nil, err
		}
	}
	w.arena = out
	return out[begin:len(out):len(out)], nil
}

// appendFloat formats a number as ECMAScript and JSON encoders do.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1] // e-09 becomes e-9
		dst = dst[:n-1]
	}
	return dst
}

// appendJSON formats a value as JSON. The keys of maps are sorted; of equal keys the last one counts.
func appendJSON(dst, d []byte, v value, depth int) ([]byte, error) {
	if depth > maxDepth {
		return dst, &wire.Malformed{What: "a value that is nested too deeply", At: v.begin}
	}
	switch v.kind {
	case textValue:
		return appendString(dst, d[v.begin:v.end]), nil
	case boolValue:
		return strconv.AppendBool(dst, v.number != 0), nil
	case intValue:
		return strconv.AppendInt(dst, int64(v.number), 10), nil
	case floatValue:
		if f := math.Float64frombits(v.number); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return appendFloat(dst, f), nil
		}
		// JSON cannot express these numbers. Like protobuf's JSON mapping, write them as strings.
		return append(appendFloat(append(dst, '"'), math.Float64frombits(v.number)), '"'), nil
	case bytesValue:
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), d[v.begin:v.end]), '"'), nil
	case listValue:
		return appendList(dst, d, v, depth)
	case mapValue:
		return appendMap(dst, d, v, depth)
	}
	return append(dst, "null"...), nil
}

func appendList(dst, d []byte, v value, depth int) ([]byte, error) {
	dst = append(dst, '[')
	first := true
	err := each(d, v.begin, v.end, func(begin, stop int) error {
		item, err := readValue(d, begin, stop)
		if err != nil {
			return err
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst, err = appendJSON(dst, d, item, depth+1)
		return err
	})
	return append(dst, ']'), err
}

func appendMap(dst, d []byte, v value, depth int) ([]byte, error) {
	type member struct {
		key   []byte
		value value
	}
	n := 0
	_ = each(d, v.begin, v.end, func(int, int) error { n++; return nil })
	members := make([]member, 0, n)
	err := each(d, v.begin, v.end, func(begin, stop int) error {
		key, item, err := keyValue(d, begin, stop)
		members = append(members, member{key, item})
		return err
	})
	if err != nil {
		return dst, err
	}
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	dst = append(dst, '{')
	first := true
	for i := range members {
		if i+1 < len(members) && bytes.Equal(members[i].key, members[i+1].key) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, members[i].key), ':')
		if dst, err = appendJSON(dst, d, members[i].value, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// each calls item for the items of a list or map, which are all in field 1.
func each(d []byte, p, end int, item func(begin, stop int) error) error {
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return err
		}
		if n != 1 {
			if p, err = wire.Skip(d, next, end, kind); err != nil {
				return err
			}
			continue
		}
		begin, stop, err := wire.Message("an item", d, kind, next, end)
		if err != nil {
			return err
		}
		if err := item(begin, stop); err != nil {
			return err
		}
		p = stop
	}
	return nil
}

// appendString appends a JSON string. Invalid UTF-8 becomes the replacement character.
func appendString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for len(s) > 0 {
		c := s[0]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, size := utf8.DecodeRune(s)
			switch {
			case r == utf8.RuneError && size == 1:
				dst = append(dst, `\ufffd`...)
			case r == '\u2028' || r == '\u2029':
				dst = append(dst, '\\', 'u', '2', '0', '2', hex[r&15])
			default:
				dst = append(dst, s[:size]...)
			}
			s = s[size:]
			continue
		}
		s = s[1:]
	}
	return append(dst, '"')
}
