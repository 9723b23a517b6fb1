package otlp

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/write/wire"
)

// Upper bounds, in bytes, for what the library allocates for the parts of a message, including the
// growth of slices. TestTreesAreReserved checks them.
const (
	// numberBytes is for a number in a list, which may take one byte on the wire. textBytes is for a
	// byte of text.
	numberBytes = 40
	textBytes   = 3
	// jsonObjectBytes is for a JSON object or array.
	jsonObjectBytes = 220
	// maxJSONDepth bounds the nesting of JSON: of messages, and of values in them.
	maxJSONDepth = 8 * maxDepth
)

// shape describes a message type: the size of its object in bytes, and the numbers of the fields that
// hold other messages.
type shape struct {
	bytes  int64
	fields map[int32]*shape
	// value means that the type is AnyValue or part of it, so that it can be nested.
	value bool
	// numbers is the first of two fields that may hold lists of numbers, or 0.
	numbers int32
}

// metricsShape returns the shape of ExportMetricsServiceRequest. treeSize bounds the nesting of a
// message. The library's decoder does not, and a stack overflow would end the process.
func metricsShape() *shape {
	value := &shape{bytes: 96, value: true}
	keyValue := &shape{bytes: 220, fields: map[int32]*shape{2: value}, value: true}
	value.fields = map[int32]*shape{
		5: {bytes: 64, fields: map[int32]*shape{1: value}, value: true},
		6: {bytes: 64, fields: map[int32]*shape{1: keyValue}, value: true},
	}
	exemplar := &shape{bytes: 420, fields: map[int32]*shape{7: keyValue}}
	number := list(160, 0, map[int32]*shape{7: keyValue, 5: exemplar})
	buckets := &shape{bytes: 64, numbers: 1}
	metric := &shape{bytes: 160, fields: map[int32]*shape{
		5: number, 7: number,
		9:  list(220, 6, map[int32]*shape{9: keyValue, 8: exemplar}),
		10: list(280, 0, map[int32]*shape{1: keyValue, 8: buckets, 9: buckets, 11: exemplar}),
		11: list(160, 0, map[int32]*shape{7: keyValue, 6: {bytes: 72}}),
		12: keyValue,
	}}
	return envelope(keyValue, metric)
}

// list returns the shape of a message with a list in field 1, whose items have the given size and
// fields.
func list(bytes int64, numbers int32, fields map[int32]*shape) *shape {
	return &shape{bytes: 64, fields: map[int32]*shape{1: {bytes: bytes, fields: fields, numbers: numbers}}}
}

// envelope returns the shape of a request that groups items by resource and scope.
func envelope(keyValue, item *shape) *shape {
	resource := &shape{bytes: 96, fields: map[int32]*shape{1: keyValue, 3: {bytes: 160}}}
	scope := &shape{bytes: 96, fields: map[int32]*shape{3: keyValue}}
	return &shape{bytes: 512, fields: map[int32]*shape{1: {bytes: 200, fields: map[int32]*shape{
		1: resource, 2: {bytes: 190, fields: map[int32]*shape{1: scope, 2: item}},
	}}}}
}

// treeSize returns how many bytes the library needs for a message, or an error if the message is
// malformed or nested too deeply.
func (s *shape) treeSize(d []byte) (int64, error) {
	return s.size(d, 0, len(d), 0)
}

func (s *shape) size(d []byte, p, end, depth int) (int64, error) {
	if s.value {
		if depth++; depth > 3*maxDepth { // each list or map nests two or three messages
			return 0, &wire.Malformed{What: "a value that is nested too deeply", At: p}
		}
	}
	total := s.bytes
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return 0, err
		}
		if kind != protowire.BytesType {
			if p, err = wire.Skip(d, next, end, kind); err != nil {
				return 0, err
			}
			if s.isNumbers(n) { // a list of numbers that is not packed
				total += numberBytes
			}
			continue
		}
		begin, stop, err := wire.Body(d, next, end)
		if err != nil {
			return 0, err
		}
		p = stop
		child := s.fields[n]
		switch {
		case child == nil && s.numbers == 1 && s.isNumbers(n): // varints; other numbers have a fixed size
			total += int64(stop-begin) * numberBytes
		case child == nil:
			total += int64(stop-begin) * textBytes
		default:
			size, err := child.size(d, begin, stop, depth)
			if err != nil {
				return 0, err
			}
			total += size
		}
	}
	return total, nil
}

func (s *shape) isNumbers(field int32) bool {
	return s.numbers != 0 && (field == s.numbers || field == s.numbers+1)
}

// jsonTreeSize is treeSize for JSON and for all types of messages.
func jsonTreeSize(d []byte) (int64, error) {
	objects, commas, depth := int64(0), int64(0), 0
	for p := 0; p < len(d); p++ {
		switch d[p] {
		case '"':
			for p++; p < len(d) && d[p] != '"'; p++ {
				if d[p] == '\\' {
					p++
				}
			}
		case '{', '[':
			objects++
			if depth++; depth > maxJSONDepth {
				return 0, &wire.Malformed{What: "JSON that is nested too deeply", At: p}
			}
		case '}', ']':
			depth--
		case ',':
			commas++
		}
	}
	return objects*jsonObjectBytes + commas*numberBytes + int64(len(d))*textBytes, nil
}
