package wire

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Contents is what a request holds.
type Contents struct {
	Samples, Histograms, Exemplars int
	// Of samples and histograms: markers, late ones, and ones that were sent before.
	Stale, Late, Twice int
}

func (c *Contents) Points() int { return c.Samples + c.Histograms }

// Tags of protobuf: the number of a field and the kind of its bytes.
const (
	varint = 0
	fixed8 = 1
	Sized  = 2
)

func Tag(field, kind int) byte { return byte(field<<3 | kind) }

func AppendField(dst []byte, tag byte, field []byte) []byte {
	dst = append(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(field)))
	return append(dst, field...)
}

func AppendVarint(dst []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(append(dst, Tag(field, varint)), v)
}

func AppendFixed(dst []byte, field int, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, Tag(field, fixed8)), v)
}

func AppendFloat(dst []byte, field int, v float64) []byte {
	return AppendFixed(dst, field, math.Float64bits(v))
}

func Zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func VarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// appendSample appends the body of a Sample, which is the same in both versions but for its start time, 0 if it has
// none. A value of 0 is written out.
func appendSample(dst []byte, bits uint64, ms, start int64) []byte {
	dst = AppendFixed(dst, 1, bits)
	dst = AppendVarint(dst, 2, uint64(ms))
	if start != 0 {
		dst = AppendVarint(dst, 3, uint64(start))
	}
	return dst
}
