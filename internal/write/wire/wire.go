package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// The wire types of protobuf that are in use; 3 and 4, groups, are of proto2 and no sender has them.
const (
	WireVarint = 0
	Wire64     = 1
	WireBytes  = 2
	Wire32     = 5
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

// Unwrap gives the class of the error.
func (m *Malformed) Unwrap() error { return model.ErrInvalid }

// Varint reads a varint of b[p:end]. A next of -1 means that it is cut off or longer than 10 bytes.
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
func Field(b []byte, p, end int) (number int32, wire int, next int, err error) {
	tag, next := Varint(b, p, end)
	if next < 0 {
		return 0, 0, 0, &Malformed{"a cut off or oversized field tag", p}
	}
	number = int32(tag >> 3)
	if number <= 0 {
		return 0, 0, 0, &Malformed{fmt.Sprintf("the field number %d", number), p}
	}
	return number, int(tag & 7), next, nil
}

// Body reads the length of a length-delimited field and returns where the field begins and ends.
func Body(b []byte, p, end int) (begin, stop int, err error) {
	n, next := Varint(b, p, end)
	switch {
	case next < 0:
		return 0, 0, &Malformed{"a cut off or oversized length", p}
	case n > uint64(end-next):
		return 0, 0, &Malformed{fmt.Sprintf("a field of %d bytes of which %d are there", n, end-next), p}
	}
	return next, next + int(n), nil
}

// Message reads a field that must be a message or a string; p is behind its tag.
func Message(what string, b []byte, wire, p, end int) (begin, stop int, err error) {
	if wire != WireBytes {
		return 0, 0, &Malformed{fmt.Sprintf("%s with wire type %d", what, wire), p}
	}
	return Body(b, p, end)
}

// Number reads a field that must be a varint; p is behind its tag.
func Number(what string, b []byte, wire, p, end int) (v uint64, next int, err error) {
	if wire != WireVarint {
		return 0, 0, &Malformed{"a " + what + " that is not a number", p}
	}
	if v, next = Varint(b, p, end); next < 0 {
		return 0, 0, &Malformed{"a cut off or oversized " + what, p}
	}
	return v, next, nil
}

// Fixed64 reads a field that must have 8 bytes; p is behind its tag.
func Fixed64(what string, b []byte, wire, p, end int) (v uint64, next int, err error) {
	if wire != Wire64 || end-p < 8 {
		return 0, 0, &Malformed{"a " + what + " that has not 8 bytes", p}
	}
	return binary.LittleEndian.Uint64(b[p:]), p + 8, nil
}

// Double reads the bits of a field that must be a double; p is behind its tag.
func Double(what string, b []byte, wire, p, end int) (v uint64, next int, err error) {
	if wire != Wire64 || end-p < 8 {
		return 0, 0, &Malformed{"a " + what + " that is not a double", p}
	}
	return binary.LittleEndian.Uint64(b[p:]), p + 8, nil
}

// Fixed32 reads a field that must have 4 bytes; p is behind its tag.
func Fixed32(what string, b []byte, wire, p, end int) (v uint32, next int, err error) {
	if wire != Wire32 || end-p < 4 {
		return 0, 0, &Malformed{"a " + what + " that has not 4 bytes", p}
	}
	return binary.LittleEndian.Uint32(b[p:]), p + 4, nil
}

// Zigzag decodes the value of a sint64.
func Zigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// Zigzag32 decodes the value of a sint32, of which only the lower half counts.
func Zigzag32(v uint64) int32 { return int32(uint32(v)>>1) ^ -int32(v&1) }

// Skip returns where a field that is not needed ends; p is behind its tag.
func Skip(b []byte, p, end, wire int) (next int, err error) {
	switch wire {
	case WireVarint:
		if _, next = Varint(b, p, end); next < 0 {
			return 0, &Malformed{"a cut off or oversized number", p}
		}
		return next, nil
	case Wire64:
		next = p + 8
	case Wire32:
		next = p + 4
	case WireBytes:
		_, next, err = Body(b, p, end)
		return next, err
	default:
		return 0, &Malformed{fmt.Sprintf("a field of wire type %d", wire), p}
	}
	if next > end {
		return 0, &Malformed{"a cut off field", p}
	}
	return next, nil
}
