package journal

import (
	"encoding/binary"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// The encodings of a column.
const (
	columnAbsent = 0 // all zero
	columnEqual  = 1 // one value for all rows
	columnDeltas = 2 // zigzag varints of the difference to the row before
	columnRaw    = 3 // 8 bytes each, little-endian; kinds: one byte each
	columnKinds  = 4 // a column of kinds, and then values of those kinds
	columnLines  = 5 // lengths of values of the kind text, and all their bytes
)

// The encodings of the numbers of rows per series.
const (
	countsOne = 0 // each series has exactly one row
	counts    = 1 // a varint for each series
	countsFew = 2 // for each series with rows: varints of the distance to the one before and of the number
)

// appendRows stores the rows of one family.
func appendRows(dst []byte, f model.Family, c *model.Columns, series int) []byte {
	single := oneRowEach(c, series)
	if single {
		dst = append(dst, countsOne)
	} else {
		dst = appendCounts(dst, c, series)
	}
	// Only rows of different series can have equal times. A column that claims any number of rows in a few
	// bytes would let a hostile record exhaust a reader's memory. So a column of equal times requires one row
	// per series, which the number of keys bounds.
	dst = appendTimes(dst, c.Times, single)
	dst = appendTimes(dst, c.Starts, single)
	if f == model.Text {
		return appendLines(dst, &c.Rows)
	}
	if slices.ContainsFunc(c.Kinds, func(k model.Kind) bool { return k != model.KindFloat }) {
		return appendBlobs(dst, &c.Rows)
	}
	return appendValues(dst, c.Values)
}

func oneRowEach(c *model.Columns, series int) bool {
	if series != c.Len() {
		return false
	}
	for i, end := range c.Ends {
		if end != uint32(i)+1 {
			return false
		}
	}
	return true
}

// appendCounts stores the numbers of rows. Few series of a batch have exemplars, nearly all have samples.
func appendCounts(dst []byte, c *model.Columns, series int) []byte {
	with := 0
	for i := range series {
		if c.End(i) > c.Begin(i) {
			with++
		}
	}
	if with > series/2 {
		dst = append(dst, counts)
		for i := range series {
			dst = binary.AppendUvarint(dst, uint64(c.End(i)-c.Begin(i)))
		}
		return dst
	}
	dst = append(dst, countsFew)
	dst = binary.AppendUvarint(dst, uint64(with))
	next := 0
	for i := range series {
		if n := c.End(i) - c.Begin(i); n > 0 {
			dst = binary.AppendUvarint(dst, uint64(i-next))
			dst = binary.AppendUvarint(dst, uint64(n))
			next = i + 1
		}
	}
	return dst
}

// appendTimes stores a column of times. Neighbours in a request have equal or close times: a delta of 0 takes
// a byte, a delta of 15 s takes five.
func appendTimes(dst []byte, ts []int64, single bool) []byte {
	if len(ts) == 0 {
		return append(dst, columnAbsent)
	}
	if single && allEqual(ts) {
		dst = append(dst, columnEqual)
		return binary.LittleEndian.AppendUint64(dst, uint64(ts[0]))
	}
	dst = append(dst, columnDeltas)
	dst = grow(dst, len(ts)*binary.MaxVarintLen64)
	at, out := len(dst), dst[:cap(dst)]
	last := int64(0)
	for _, t := range ts {
		d := uint64(t-last)<<1 ^ uint64((t-last)>>63)
		last = t
		if d < 0x80 {
			out[at] = byte(d)
			at++
			continue
		}
		at += binary.PutUvarint(out[at:], d)
	}
	return out[:at]
}

func appendValues(dst []byte, vs []uint64) []byte {
	if allEqual(vs) {
		dst = append(dst, columnEqual)
		return binary.LittleEndian.AppendUint64(dst, vs[0])
	}
	dst = append(dst, columnRaw)
	at := len(dst)
	dst = extend(dst, 8*len(vs))
	out := dst[at:]
	for _, v := range vs {
		binary.LittleEndian.PutUint64(out, v)
		out = out[8:]
	}
	return dst
}

// appendBlobs stores values that are not all floats: the kinds, followed by the values one after the other.
func appendBlobs(dst []byte, r *model.Rows) []byte {
	dst = append(dst, columnKinds)
	if allEqual(r.Kinds) {
		dst = append(dst, columnEqual, byte(r.Kinds[0]))
	} else {
		dst = append(dst, columnRaw)
		for _, k := range r.Kinds {
			dst = append(dst, byte(k))
		}
	}
	for i, v := range r.Values {
		if r.Kinds[i] == model.KindFloat {
			dst = binary.LittleEndian.AppendUint64(dst, v)
			continue
		}
		blob := r.Blob(i)
		dst = binary.AppendUvarint(dst, uint64(len(blob)))
		dst = append(dst, blob...)
	}
	return dst
}

func allEqual[T comparable](xs []T) bool {
	for _, x := range xs[1:] {
		if x != xs[0] {
			return false
		}
	}
	return true
}
