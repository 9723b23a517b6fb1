package wire

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

// appendNative appends the body of a Histogram, which is the same in both versions except for the start time;
// 0 omits that.
func appendNative(dst []byte, n *values.Histogram, ms, start int64) []byte {
	if n.Float {
		dst = AppendFloat(dst, 2, n.Value(n.Count))
	} else {
		dst = AppendVarint(dst, 1, n.Count)
	}
	dst = AppendFloat(dst, 3, n.Sum)
	dst = AppendVarint(dst, 4, protowire.EncodeZigZag(int64(n.Schema)))
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
		dst = protowire.AppendVarint(protowire.AppendTag(dst, 16, protowire.BytesType), uint64(8*len(n.Custom)))
		for _, bound := range n.Custom {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(bound))
		}
	}
	if start != 0 {
		dst = protowire.AppendVarint(protowire.AppendTag(dst, 17, protowire.VarintType), uint64(start))
	}
	return dst
}

// appendStaleNative appends the body of the Histogram that ends a series: only its sum has a meaning.
func appendStaleNative(dst []byte, float bool, ms int64) []byte {
	if float {
		dst = AppendFloat(dst, 2, 0)
	} else {
		dst = AppendVarint(dst, 1, 0)
	}
	dst = AppendFixed(dst, 3, model.StaleNaN)
	return AppendVarint(dst, 15, uint64(ms))
}

// AppendBuckets appends spans as field first and counts: differences as field first+1, or floats as field
// first+2.
func AppendBuckets(dst []byte, n *values.Histogram, b *values.Buckets, first protowire.Number) []byte {
	for _, s := range b.Spans {
		at := protowire.EncodeZigZag(int64(s.Offset))
		dst = append(dst, LenTag(first), byte(2+protowire.SizeVarint(at)+protowire.SizeVarint(uint64(s.Length))))
		dst = AppendVarint(dst, 1, at)
		dst = AppendVarint(dst, 2, uint64(s.Length))
	}
	if len(b.Counts) == 0 {
		return dst
	}
	if n.Float {
		dst = protowire.AppendVarint(append(dst, LenTag(first+2)), uint64(8*len(b.Counts)))
		for _, c := range b.Counts {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(n.Value(c)))
		}
		return dst
	}
	size, last := 0, uint64(0)
	for _, c := range b.Counts {
		size, last = size+protowire.SizeVarint(protowire.EncodeZigZag(int64(c-last))), c
	}
	dst = protowire.AppendVarint(append(dst, LenTag(first+1)), uint64(size))
	last = 0
	for _, c := range b.Counts {
		dst, last = protowire.AppendVarint(dst, protowire.EncodeZigZag(int64(c-last))), c
	}
	return dst
}
