package model

import (
	"encoding/binary"
	"fmt"
)

// Line is the decoded value of a row of KindText: the bytes of a log line as they were sent, and its
// structured metadata.
type Line struct {
	Text     []byte
	Metadata Labels // canonical; empty: none
}

// AppendLine appends the stored form: the length of the line as a uvarint, the line, and the metadata.
func AppendLine(dst []byte, l *Line) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(l.Text)))
	dst = append(dst, l.Text...)
	return append(dst, l.Metadata...)
}

// SplitLine decodes the stored form without checking that the metadata is canonical. The result aliases b.
// The error is of class corrupt.
func SplitLine(b []byte) (Line, error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)-used) {
		return Line{}, fmt.Errorf("%w: line: cut short", ErrCorrupt)
	}
	end := used + int(n)
	return Line{Text: b[used:end:end], Metadata: Labels(b[end:])}, nil
}

// ParseLine is SplitLine for untrusted bytes: it checks that they are the canonical form.
func ParseLine(b []byte) (Line, error) {
	l, err := SplitLine(b)
	if err != nil {
		return l, err
	}
	if len(b) != varintLen(len(l.Text))+len(l.Text)+len(l.Metadata) {
		return Line{}, fmt.Errorf("%w: line: its length is not as short as it can be", ErrCorrupt)
	}
	if err := l.Metadata.Check(); err != nil {
		return Line{}, fmt.Errorf("line: metadata: %w", err)
	}
	return l, nil
}
