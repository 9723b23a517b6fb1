package wire

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Contents counts the contents of a request.
type Contents struct {
	Samples, Histograms, Exemplars int
	// Of the samples and histograms: stale markers, late ones, and repeats.
	Stale, Late, Twice int
}

// Points returns the number of samples and histograms.
func (c *Contents) Points() int { return c.Samples + c.Histograms }

// LenTag returns the tag of a length-delimited field below 16, which takes one byte.
func LenTag(field protowire.Number) byte {
	return byte(protowire.EncodeTag(field, protowire.BytesType))
}

// AppendField appends a length-delimited field.
func AppendField(dst []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), value)
}

// AppendVarint appends an integer field.
func AppendVarint(dst []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), v)
}

// AppendFixed appends a field of 64 bits.
func AppendFixed(dst []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(dst, field, protowire.Fixed64Type), v)
}

// AppendFloat appends a field of type double.
func AppendFloat(dst []byte, field protowire.Number, v float64) []byte {
	return AppendFixed(dst, field, math.Float64bits(v))
}

// appendSample appends the body of a Sample, which is the same in both versions except for the start time; 0
// omits that. A value of 0 is written.
func appendSample(dst []byte, bits uint64, ms, start int64) []byte {
	dst = AppendFixed(dst, 1, bits)
	dst = AppendVarint(dst, 2, uint64(ms))
	if start != 0 {
		dst = AppendVarint(dst, 3, uint64(start))
	}
	return dst
}
