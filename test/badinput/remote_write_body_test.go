//go:build e2e

package badinput

import (
	"encoding/binary"
	"math"

	"github.com/klauspost/compress/s2"
)

// The wire types of protobuf.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wireGroup  = 3
	wire32     = 5
)

func tag(number, wire int) []byte { return binary.AppendUvarint(nil, uint64(number<<3|wire)) }

func field(number int, content []byte) []byte {
	b := binary.AppendUvarint(tag(number, wireBytes), uint64(len(content)))
	return append(b, content...)
}

func label(name, value string) []byte {
	return field(1, append(field(1, []byte(name)), field(2, []byte(value))...))
}

func sample(v float64, ms int64) []byte {
	b := binary.LittleEndian.AppendUint64(tag(1, wire64), math.Float64bits(v))
	return field(2, binary.AppendUvarint(append(b, tag(2, wireVarint)...), uint64(ms)))
}

// series makes a TimeSeries message from its parts.
func series(parts ...[]byte) []byte { return field(1, join(parts...)) }

func good(name string) []byte { return label("__name__", name) }

func join(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// message encodes a body of remote write 1.0 from series.
func message(parts ...[]byte) []byte { return s2.EncodeSnappy(nil, join(parts...)) }
