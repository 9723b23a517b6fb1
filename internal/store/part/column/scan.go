package column

import (
	"encoding/binary"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// Scan reads the fields of a payload from front to back. A missing field makes it bad: it then returns zeros,
// and its error is of class corrupt. So a reader checks once, at the end of a group of fields.
type Scan struct {
	Rest []byte
	Bad  bool
}

// Fail makes the scan bad.
func (s *Scan) Fail() {
	s.Rest, s.Bad = nil, true
}

// Uvarint reads an unsigned number.
func (s *Scan) Uvarint() uint64 {
	if len(s.Rest) > 0 && s.Rest[0] < 0x80 {
		v := s.Rest[0]
		s.Rest = s.Rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(s.Rest)
	if n <= 0 {
		s.Fail()
		return 0
	}
	s.Rest = s.Rest[n:]
	return v
}

// Varint reads a signed number.
func (s *Scan) Varint() int64 {
	v, n := binary.Varint(s.Rest)
	if n <= 0 {
		s.Fail()
		return 0
	}
	s.Rest = s.Rest[n:]
	return v
}

// Below reads a number that must not exceed limit. Every allocation is bounded by it.
func (s *Scan) Below(limit uint64) int {
	v := s.Uvarint()
	if v > limit {
		s.Fail()
		return 0
	}
	return int(v)
}

// Next reads n bytes.
func (s *Scan) Next(n uint64) []byte {
	if n > uint64(len(s.Rest)) {
		s.Fail()
		return nil
	}
	field := s.Rest[:n:n]
	s.Rest = s.Rest[n:]
	return field
}

// Bytes reads a length and that many bytes.
func (s *Scan) Bytes() []byte { return s.Next(s.Uvarint()) }

// Byte reads a byte.
func (s *Scan) Byte() byte {
	if len(s.Rest) == 0 {
		s.Fail()
		return 0
	}
	v := s.Rest[0]
	s.Rest = s.Rest[1:]
	return v
}

// U64 reads eight bytes, little-endian.
func (s *Scan) U64() uint64 {
	f := s.Next(8)
	if f == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(f)
}

// End returns an error unless the whole payload was read.
func (s *Scan) End(object string) error {
	switch {
	case s.Bad:
		return Corrupt("%s: a field is cut short or out of bounds", object)
	case len(s.Rest) > 0:
		return Corrupt("%s: %d bytes too many", object, len(s.Rest))
	}
	return nil
}

// Err returns an error if a field was missing.
func (s *Scan) Err(object string) error {
	if s.Bad {
		return Corrupt("%s: a field is cut short or out of bounds", object)
	}
	return nil
}

// AppendBytes appends a length and the bytes.
func AppendBytes[T ~[]byte | ~string](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// Corrupt returns an error of class corrupt: the bytes are not what a writer writes.
func Corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: part: %s", model.ErrCorrupt, fmt.Sprintf(format, args...))
}

// Invalid returns an error of class invalid: the request or the input is not allowed.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: part: %s", model.ErrInvalid, fmt.Sprintf(format, args...))
}
