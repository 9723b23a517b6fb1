package promwrite

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The tests encode protobuf by hand, to write what no encoder writes.

func tag(number protowire.Number, kind protowire.Type) string {
	return string(protowire.AppendTag(nil, number, kind))
}

func uv(v uint64) string { return string(protowire.AppendVarint(nil, v)) }

// msg is a length-delimited field.
func msg(number protowire.Number, content ...string) string {
	all := ""
	for _, c := range content {
		all += c
	}
	return tag(number, protowire.BytesType) + uv(uint64(len(all))) + all
}

func num(number protowire.Number, v uint64) string { return tag(number, protowire.VarintType) + uv(v) }

func dbl(number protowire.Number, v float64) string {
	return tag(number, protowire.Fixed64Type) + string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
}

func packed(vs ...uint64) (s string) {
	for _, v := range vs {
		s += uv(v)
	}
	return s
}

func packedDoubles(vs ...float64) (s string) {
	for _, v := range vs {
		s += string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
	}
	return s
}

func label(name, value string) string { return msg(1, msg(1, name), msg(2, value)) }

// field6 is the created_timestamp of a series in early version 2.
func field6(ms int64) []byte { return []byte(num(6, uint64(ms))) }

// symbols are the symbols of a request of version 2.
func symbolsOf(words ...string) (s string) {
	for _, word := range words {
		s += msg(4, word)
	}
	return s
}
