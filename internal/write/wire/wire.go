package wire

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/model"
)

// Malformed says what is wrong with a message and at which of its bytes. It is of class invalid.
type Malformed struct {
	What string
	At   int
}

// Error names the defect and the byte offset.
func (m *Malformed) Error() string {
	return fmt.Sprintf("%v: %s at byte %d of the decoded body", model.ErrInvalid, m.What, m.At)
}

// Unwrap returns the class of the error.
func (m *Malformed) Unwrap() error { return model.ErrInvalid }

// Varint reads a varint from b[p:end]. A next of -1 means that it is cut off or longer than 10 bytes.
// It is inlined. With [protowire.ConsumeVarint] in place of longVarint the walks of BenchmarkReceive
// were slower, since each timestamp took a call. Like the decoder of Prometheus, and unlike protowire,
// it accepts a tenth byte over 1.
func Varint(b []byte, p, end int) (v uint64, next int) {
	if p < end && b[p] < 0x80 {
		return uint64(b[p]), p + 1
	}
	return longVarint(b, p, end)
}

func longVarint(b []byte, p, end int) (v uint64, next int) {
	for shift := uint(0); shift < 64 && p < end; shift += 7 {
		c := b[p]
		p++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, p
		}
	}
	return 0, -1
}

// Field reads a tag: the number of the field and its wire type.
func Field(b []byte, p, end int) (number int32, kind protowire.Type, next int, err error) {
	tag, next := Varint(b, p, end)
	if next < 0 {
		return 0, 0, 0, &Malformed{"a cut off or oversized field tag", p}
	}
	number = int32(tag >> 3)
	if number <= 0 {
		return 0, 0, 0, &Malformed{fmt.Sprintf("the field number %d", number), p}
	}
	return number, protowire.Type(tag & 7), next, nil
}

// Body reads the length of a length-delimited field and returns where the field begins and ends.
func Body(b []byte, p, end int) (begin, stop int, err error) {
	n, next := Varint(b, p, end)
	switch {
	case next < 0:
		return 0, 0, &Malformed{"a cut off or oversized length", p}
	case n > uint64(end-next):
		return 0, 0, &Malformed{fmt.Sprintf("a field of length %d that is cut off after %d", n, end-next), p}
	}
	return next, next + int(n), nil
}

// Message reads a field that must be a message or a string; p is the offset after its tag.
func Message(what string, b []byte, kind protowire.Type, p, end int) (begin, stop int, err error) {
	if kind != protowire.BytesType {
		return 0, 0, &Malformed{fmt.Sprintf("%s with wire type %d", what, kind), p}
	}
	return Body(b, p, end)
}

// Number reads a field that must be a varint; p is the offset after its tag.
func Number(what string, b []byte, kind protowire.Type, p, end int) (v uint64, next int, err error) {
	if kind != protowire.VarintType {
		return 0, 0, &Malformed{"a " + what + " that is not a number", p}
	}
	if v, next = Varint(b, p, end); next < 0 {
		return 0, 0, &Malformed{"a cut off or oversized " + what, p}
	}
	return v, next, nil
}

// Fixed64 reads a field that must have 8 bytes; p is the offset after its tag.
func Fixed64(what string, b []byte, kind protowire.Type, p, end int) (v uint64, next int, err error) {
	if kind != protowire.Fixed64Type || end-p < 8 {
		return 0, 0, &Malformed{"a " + what + " that does not have 8 bytes", p}
	}
	return binary.LittleEndian.Uint64(b[p:]), p + 8, nil
}

// Double reads the bits of a field that must be a double; p is the offset after its tag.
func Double(what string, b []byte, kind protowire.Type, p, end int) (v uint64, next int, err error) {
	if kind != protowire.Fixed64Type || end-p < 8 {
		return 0, 0, &Malformed{"a " + what + " that is not a double", p}
	}
	return binary.LittleEndian.Uint64(b[p:]), p + 8, nil
}

// Fixed32 reads a field that must have 4 bytes; p is the offset after its tag.
func Fixed32(what string, b []byte, kind protowire.Type, p, end int) (v uint32, next int, err error) {
	if kind != protowire.Fixed32Type || end-p < 4 {
		return 0, 0, &Malformed{"a " + what + " that does not have 4 bytes", p}
	}
	return binary.LittleEndian.Uint32(b[p:]), p + 4, nil
}

// Zigzag32 decodes the value of a sint32, of which only the lower half counts.
func Zigzag32(v uint64) int32 { return int32(protowire.DecodeZigZag(uint64(uint32(v)))) }

// Skip returns where a field that is not needed ends; p is the offset after its tag. Groups are
// malformed: they are of proto2, and no sender has them.
func Skip(b []byte, p, end int, kind protowire.Type) (next int, err error) {
	switch kind {
	case protowire.VarintType:
		_, next, err = Number("number", b, kind, p, end)
		return next, err
	case protowire.Fixed64Type:
		next = p + 8
	case protowire.Fixed32Type:
		next = p + 4
	case protowire.BytesType:
		_, next, err = Body(b, p, end)
		return next, err
	default:
		return 0, &Malformed{fmt.Sprintf("a field of wire type %d", kind), p}
	}
	if next > end {
		return 0, &Malformed{"a cut off field", p}
	}
	return next, nil
}
