package part

import (
	"encoding/binary"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// scan reads the fields of a payload from front to back. After a field that is not there it is bad, everything it
// returns is zero, and its error is of class corrupt: a reader checks once, at the end of a group of fields.
type scan struct {
	b   []byte
	bad bool
}

func (s *scan) fail() {
	s.b, s.bad = nil, true
}

func (s *scan) uvarint() uint64 {
	if len(s.b) > 0 && s.b[0] < 0x80 {
		v := s.b[0]
		s.b = s.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(s.b)
	if n <= 0 {
		s.fail()
		return 0
	}
	s.b = s.b[n:]
	return v
}

func (s *scan) varint() int64 {
	v, n := binary.Varint(s.b)
	if n <= 0 {
		s.fail()
		return 0
	}
	s.b = s.b[n:]
	return v
}

// below reads a number that must not exceed limit. It stands before every allocation.
func (s *scan) below(limit uint64) int {
	v := s.uvarint()
	if v > limit {
		s.fail()
		return 0
	}
	return int(v)
}

func (s *scan) take(n uint64) []byte {
	if n > uint64(len(s.b)) {
		s.fail()
		return nil
	}
	field := s.b[:n:n]
	s.b = s.b[n:]
	return field
}

// bytes reads a length and that many bytes.
func (s *scan) bytes() []byte { return s.take(s.uvarint()) }

func (s *scan) byte() byte {
	if len(s.b) == 0 {
		s.fail()
		return 0
	}
	v := s.b[0]
	s.b = s.b[1:]
	return v
}

func (s *scan) u64() uint64 {
	f := s.take(8)
	if f == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(f)
}

// end reports an error unless all of the payload was read.
func (s *scan) end(object string) error {
	switch {
	case s.bad:
		return corrupt("%s: a field is cut short or out of bounds", object)
	case len(s.b) > 0:
		return corrupt("%s: %d bytes too many", object, len(s.b))
	}
	return nil
}

// err reports an error if a field was not there.
func (s *scan) err(object string) error {
	if s.bad {
		return corrupt("%s: a field is cut short or out of bounds", object)
	}
	return nil
}

func appendBytes[T ~[]byte | ~string](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: part: %s", model.ErrCorrupt, fmt.Sprintf(format, args...))
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: part: %s", model.ErrInvalid, fmt.Sprintf(format, args...))
}
