package promwrite

import (
	"encoding/binary"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// The wire types of protobuf that are in use; 3 and 4, groups, are of proto2 and no sender of remote write has them.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// malformed says what is wrong with a body and at which of its bytes.
type malformed struct {
	what string
	at   int
}

// Error names the defect and the byte offset.
func (m *malformed) Error() string {
	return fmt.Sprintf("%v: remote write body: %s at byte %d of the decoded body", model.ErrInvalid, m.what, m.at)
}

// Unwrap gives the class of the error.
func (m *malformed) Unwrap() error { return model.ErrInvalid }

// span is a piece of the decoded body, or, with the top bit of at set, of a walker's arena.
type span struct{ at, size uint32 }

const inArena = 1 << 31

// of returns the piece of a body; the span must not lie in the arena.
func (s span) of(decoded []byte) []byte { return decoded[s.at : s.at+s.size : s.at+s.size] }

func spanOf(begin, stop int) span { return span{uint32(begin), uint32(stop - begin)} }

// varint reads a varint of b[p:end]. A next of -1 means that it is cut off or longer than 10 bytes.
func varint(b []byte, p, end int) (v uint64, next int) {
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

// field reads a tag: the number of the field and its wire type.
func field(b []byte, p, end int) (number int32, wire int, next int, err error) {
	tag, next := varint(b, p, end)
	if next < 0 {
		return 0, 0, 0, &malformed{"a cut off or oversized field tag", p}
	}
	number = int32(tag >> 3)
	if number <= 0 {
		return 0, 0, 0, &malformed{fmt.Sprintf("the field number %d", number), p}
	}
	return number, int(tag & 7), next, nil
}

// body reads the length of a length-delimited field and returns where the field begins and ends.
func body(b []byte, p, end int) (begin, stop int, err error) {
	n, next := varint(b, p, end)
	switch {
	case next < 0:
		return 0, 0, &malformed{"a cut off or oversized length", p}
	case n > uint64(end-next):
		return 0, 0, &malformed{fmt.Sprintf("a field of %d bytes of which %d are there", n, end-next), p}
	}
	return next, next + int(n), nil
}

// message reads a field that must be a message or a string; p is behind its tag.
func message(what string, b []byte, wire, p, end int) (begin, stop int, err error) {
	if wire != wireBytes {
		return 0, 0, &malformed{fmt.Sprintf("%s with wire type %d", what, wire), p}
	}
	return body(b, p, end)
}

// number reads a field that must be a varint; p is behind its tag.
func number(what string, b []byte, wire, p, end int) (v uint64, next int, err error) {
	if wire != wireVarint {
		return 0, 0, &malformed{"a " + what + " that is not a number", p}
	}
	if v, next = varint(b, p, end); next < 0 {
		return 0, 0, &malformed{"a cut off or oversized " + what, p}
	}
	return v, next, nil
}

// double reads the bits of a field that must be a double; p is behind its tag.
func double(what string, b []byte, wire, p, end int) (v uint64, next int, err error) {
	if wire != wire64 || end-p < 8 {
		return 0, 0, &malformed{"a " + what + " that is not a double", p}
	}
	return binary.LittleEndian.Uint64(b[p:]), p + 8, nil
}

// zigzag decodes the value of a sint64.
func zigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// zigzag32 decodes the value of a sint32, of which only the lower half counts.
func zigzag32(v uint64) int32 { return int32(uint32(v)>>1) ^ -int32(v&1) }

// skip returns where a field that is not needed ends; p is behind its tag.
func skip(b []byte, p, end, wire int) (next int, err error) {
	switch wire {
	case wireVarint:
		if _, next = varint(b, p, end); next < 0 {
			return 0, &malformed{"a cut off or oversized number", p}
		}
		return next, nil
	case wire64:
		next = p + 8
	case wire32:
		next = p + 4
	case wireBytes:
		_, next, err = body(b, p, end)
		return next, err
	default:
		return 0, &malformed{fmt.Sprintf("a field of wire type %d", wire), p}
	}
	if next > end {
		return 0, &malformed{"a cut off field", p}
	}
	return next, nil
}
