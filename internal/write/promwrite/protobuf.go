package promwrite

import (
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

// wantBytes returns an error unless a known message or string field has the wire type that it must have.
func wantBytes(what string, wire, p int) error {
	if wire != wireBytes {
		return &malformed{fmt.Sprintf("%s with wire type %d", what, wire), p}
	}
	return nil
}
