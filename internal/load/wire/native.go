package wire

import (
	"encoding/binary"
	"math"

	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

// appendNative appends the body of a Histogram, which is the same in both versions but for its start time, 0 if it has
// none.
func appendNative(dst []byte, n *values.Histogram, ms, start int64) []byte {
	if n.Float {
		dst = AppendFloat(dst, 2, n.Value(n.Count))
	} else {
		dst = AppendVarint(dst, 1, n.Count)
	}
	dst = AppendFloat(dst, 3, n.Sum)
	dst = AppendVarint(dst, 4, Zigzag(int64(n.Schema)))
	dst = AppendFloat(dst, 5, n.ZeroThreshold)
	if n.Float {
		dst = AppendFloat(dst, 7, n.Value(n.ZeroCount))
	} else {
		dst = AppendVarint(dst, 6, n.ZeroCount)
	}
	dst = AppendBuckets(dst, n, &n.Negative, 8)
	dst = AppendBuckets(dst, n, &n.Positive, 11)
	if n.Gauge {
		dst = AppendVarint(dst, 14, 3)
	}
	dst = AppendVarint(dst, 15, uint64(ms))
	if len(n.Custom) > 0 {
		dst = binary.AppendUvarint(append(dst, 0x82, 0x01), uint64(8*len(n.Custom))) // field 16 takes two bytes
		for _, bound := range n.Custom {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(bound))
		}
	}
	if start != 0 {
		dst = binary.AppendUvarint(append(dst, 0x88, 0x01), uint64(start)) // field 17
	}
	return dst
}

// appendStaleNative appends the body of the Histogram that ends a series: of its fields only the sum has a meaning.
func appendStaleNative(dst []byte, float bool, ms int64) []byte {
	if float {
		dst = AppendFloat(dst, 2, 0)
	} else {
		dst = AppendVarint(dst, 1, 0)
	}
	dst = AppendFixed(dst, 3, model.StaleNaN)
	return AppendVarint(dst, 15, uint64(ms))
}

// AppendBuckets appends spans, as field first, and counts: differences as the next one, or floats as the one behind it.
func AppendBuckets(dst []byte, n *values.Histogram, b *values.Buckets, first int) []byte {
	for _, s := range b.Spans {
		at := Zigzag(int64(s.Offset))
		dst = append(dst, Tag(first, Sized), byte(2+VarintLen(at)+VarintLen(uint64(s.Length))))
		dst = AppendVarint(dst, 1, at)
		dst = AppendVarint(dst, 2, uint64(s.Length))
	}
	if len(b.Counts) == 0 {
		return dst
	}
	if n.Float {
		dst = binary.AppendUvarint(append(dst, Tag(first+2, Sized)), uint64(8*len(b.Counts)))
		for _, c := range b.Counts {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(n.Value(c)))
		}
		return dst
	}
	size, last := 0, uint64(0)
	for _, c := range b.Counts {
		size, last = size+VarintLen(Zigzag(int64(c-last))), c
	}
	dst = binary.AppendUvarint(append(dst, Tag(first+1, Sized)), uint64(size))
	last = 0
	for _, c := range b.Counts {
		dst, last = binary.AppendUvarint(dst, Zigzag(int64(c-last))), c
	}
	return dst
}
