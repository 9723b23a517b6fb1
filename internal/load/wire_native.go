package load

import (
	"encoding/binary"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// appendNative appends the body of a Histogram, which is the same in both versions but for its start time, 0 if it has
// none.
func appendNative(dst []byte, n *native, ms, start int64) []byte {
	if n.float {
		dst = appendFloat(dst, 2, n.value(n.count))
	} else {
		dst = appendVarint(dst, 1, n.count)
	}
	dst = appendFloat(dst, 3, n.sum)
	dst = appendVarint(dst, 4, zigzag(int64(n.schema)))
	dst = appendFloat(dst, 5, n.zeroThreshold)
	if n.float {
		dst = appendFloat(dst, 7, n.value(n.zeroCount))
	} else {
		dst = appendVarint(dst, 6, n.zeroCount)
	}
	dst = appendBuckets(dst, n, &n.negative, 8)
	dst = appendBuckets(dst, n, &n.positive, 11)
	if n.gauge {
		dst = appendVarint(dst, 14, 3)
	}
	dst = appendVarint(dst, 15, uint64(ms))
	if len(n.custom) > 0 {
		dst = binary.AppendUvarint(append(dst, 0x82, 0x01), uint64(8*len(n.custom))) // field 16 takes two bytes
		for _, bound := range n.custom {
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
		dst = appendFloat(dst, 2, 0)
	} else {
		dst = appendVarint(dst, 1, 0)
	}
	dst = appendFixed(dst, 3, model.StaleNaN)
	return appendVarint(dst, 15, uint64(ms))
}

// appendBuckets appends spans, as field first, and counts: differences as the next one, or floats as the one behind it.
func appendBuckets(dst []byte, n *native, b *buckets, first int) []byte {
	for _, s := range b.spans {
		at := zigzag(int64(s.offset))
		dst = append(dst, tag(first, sized), byte(2+varintLen(at)+varintLen(uint64(s.length))))
		dst = appendVarint(dst, 1, at)
		dst = appendVarint(dst, 2, uint64(s.length))
	}
	if len(b.counts) == 0 {
		return dst
	}
	if n.float {
		dst = binary.AppendUvarint(append(dst, tag(first+2, sized)), uint64(8*len(b.counts)))
		for _, c := range b.counts {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(n.value(c)))
		}
		return dst
	}
	size, last := 0, uint64(0)
	for _, c := range b.counts {
		size, last = size+varintLen(zigzag(int64(c-last))), c
	}
	dst = binary.AppendUvarint(append(dst, tag(first+1, sized)), uint64(size))
	last = 0
	for _, c := range b.counts {
		dst, last = binary.AppendUvarint(dst, zigzag(int64(c-last))), c
	}
	return dst
}
