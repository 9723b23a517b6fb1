package body

import (
	"bytes"
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// Look is what the first bytes of a body look like, whatever its headers say. It is for hints in errors.
type Look int

// The looks. Unclear is any that is not evident.
const (
	Unclear Look = iota
	LooksGzip
	LooksZstd
	LooksLZ4
	LooksJSON
	// LooksProtobuf is protobuf that is not compressed, and LooksBlock a snappy block of protobuf.
	LooksProtobuf
	LooksBlock
)

// LookOf returns what a body looks like. Protobuf is a message whose first field is a message or a string, as
// in all pushes.
func LookOf(b []byte) Look {
	text := bytes.TrimLeft(b, " \t\r\n")
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		return LooksGzip
	case bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return LooksZstd
	case bytes.HasPrefix(b, []byte{0x04, 0x22, 0x4d, 0x18}):
		return LooksLZ4
	case len(text) > 0 && text[0] == '{' && beginsObject(text[1:]):
		return LooksJSON
	case beginsMessage(b, len(b)):
		return LooksProtobuf
	}
	// A snappy block begins with the size of its content, and this with a literal.
	size, n := binary.Uvarint(b)
	if n > 0 && n < len(b) && size <= MaxDecoded && b[n]&3 == 0 {
		literal := b[n+1:]
		if code := b[n] >> 2; code >= 60 {
			literal = literal[min(int(code)-59, len(literal)):]
		}
		if beginsMessage(literal, int(size)) {
			return LooksBlock
		}
	}
	return Unclear
}

// beginsObject reports whether a text may follow the opening brace of a JSON object.
func beginsObject(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && (text[0] == '"' || text[0] == '}')
}

// beginsMessage reports whether a message of some bytes, of which b has the first, begins with a field of at
// least one byte that has a length.
func beginsMessage(b []byte, size int) bool {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 || kind != protowire.BytesType || number > 16 {
		return false
	}
	length, m := protowire.ConsumeVarint(b[n:])
	return m > 0 && length > 0 && length <= uint64(max(size-n-m, 0))
}
