package model

import (
	"encoding/binary"
	"fmt"
)

// Exemplar is the decoded value of a row of KindExemplar: an observation, and labels that refer to its
// context, such as a trace id.
type Exemplar struct {
	Value  uint64 // IEEE 754 bits
	Labels Labels // canonical
}

// AppendExemplar appends the stored form: the value, 8 bytes little-endian, and the labels.
func AppendExemplar(dst []byte, e *Exemplar) []byte {
	return append(binary.LittleEndian.AppendUint64(dst, e.Value), e.Labels...)
}

// ParseExemplar decodes the stored form, which the labels alias. Its error is of class corrupt.
func ParseExemplar(b []byte) (Exemplar, error) {
	if len(b) < 8 {
		return Exemplar{}, fmt.Errorf("%w: exemplar: cut short", ErrCorrupt)
	}
	e := Exemplar{Value: binary.LittleEndian.Uint64(b), Labels: Labels(b[8:])}
	if err := e.Labels.Check(); err != nil {
		return Exemplar{}, fmt.Errorf("exemplar: %w", err)
	}
	return e, nil
}
