package otlp

import "github.com/shaledb/shale/internal/write/wire"

// What the library builds of a message, in bytes: objects and the pointers to them. TestTreesAreReserved holds them to what
// is allocated.
const (
	objectBytes = 320
	// numberBytes is what a number of a packed list takes, of which a byte may be one.
	numberBytes = 10
	// textBytes is what a byte of text takes, with what is allocated too much.
	textBytes = 2
	// maxJSONDepth is how deep JSON may be nested: messages, and in them values.
	maxJSONDepth = 8 * maxDepth
)

// shape is a message, by the numbers of the fields in which it has others.
type shape struct {
	fields map[int32]*shape
	// value says that it is an AnyValue, or inside of one, so that it can be nested.
	value bool
	// packed are the fields that hold lists of varints.
	packed int32
}

// metricsShape returns that of an ExportMetricsServiceRequest. Recursion over it is bounded: the library's is not, and a
// stack that overflows ends the process.
func metricsShape() *shape {
	value := &shape{value: true}
	keyValue := &shape{fields: map[int32]*shape{2: value}, value: true}
	value.fields = map[int32]*shape{
		5: {fields: map[int32]*shape{1: value}, value: true},
		6: {fields: map[int32]*shape{1: keyValue}, value: true},
	}
	exemplar := &shape{fields: map[int32]*shape{7: keyValue}}
	number := &shape{fields: map[int32]*shape{1: {fields: map[int32]*shape{7: keyValue, 5: exemplar}}}}
	buckets := &shape{packed: 2}
	quantile := &shape{}
	metric := &shape{fields: map[int32]*shape{
		5: number, 7: number,
		9:  {fields: map[int32]*shape{1: {fields: map[int32]*shape{9: keyValue, 8: exemplar}}}},
		10: {fields: map[int32]*shape{1: {fields: map[int32]*shape{1: keyValue, 8: buckets, 9: buckets, 11: exemplar}}}},
		11: {fields: map[int32]*shape{1: {fields: map[int32]*shape{7: keyValue, 6: quantile}}}},
		12: keyValue,
	}}
	return envelope(keyValue, metric)
}

// envelope returns a request whose items come by resource and scope.
func envelope(keyValue, item *shape) *shape {
	resource := &shape{fields: map[int32]*shape{1: keyValue, 3: {}}}
	scope := &shape{fields: map[int32]*shape{3: keyValue}}
	return &shape{fields: map[int32]*shape{1: {fields: map[int32]*shape{
		1: resource, 2: {fields: map[int32]*shape{1: scope, 2: item}},
	}}}}
}

// treeSize returns how many bytes the library takes for a message, or an error if it is malformed or nested too deep.
func (s *shape) treeSize(d []byte) (int64, error) {
	return s.size(d, 0, len(d), 0)
}

func (s *shape) size(d []byte, p, end, depth int) (int64, error) {
	if s.value {
		if depth++; depth > 3*maxDepth { // a list or map in a value takes two messages more, or three
			return 0, &wire.Malformed{What: "a value that is nested too deep", At: p}
		}
	}
	total := int64(objectBytes)
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return 0, err
		}
		if kind != wire.WireBytes {
			if p, err = wire.Skip(d, next, end, kind); err != nil {
				return 0, err
			}
			total += numberBytes // lists of numbers need not be packed
			continue
		}
		begin, stop, err := wire.Body(d, next, end)
		if err != nil {
			return 0, err
		}
		p = stop
		child := s.fields[n]
		switch {
		case child == nil && n == s.packed:
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

// jsonTreeSize returns the same for JSON, of any of the messages.
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
				return 0, &wire.Malformed{What: "JSON that is nested too deep", At: p}
			}
		case '}', ']':
			depth--
		case ',':
			commas++
		}
	}
	return objects*objectBytes + commas*numberBytes + int64(len(d))*textBytes, nil
}
