package journal

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
)

// version is the first byte of every record. A reader refuses versions that it does not know.
const version = 1

// The kinds of sections. A record has at most one of each, in ascending order; empty ones are left out.
const (
	keysSection   = 1
	labelsSection = 2
	// Rows of a family have the kind rowsSection + family.
	rowsSection    = 0x10
	samplesSection = rowsSection + byte(model.Samples)
)

// The ways in which a column is stored.
const (
	columnAbsent = 0 // all zero
	columnEqual  = 1 // one value for all rows
	columnDeltas = 2 // zigzag varints of the difference to the row before
	columnRaw    = 3 // 8 bytes each, little-endian
)

const (
	countsOne = 0 // each series has exactly one row
	counts    = 1 // a varint for each series
)

// EncodeBatch appends the record of a batch to dst. It allocates only where dst is too small.
func EncodeBatch(dst []byte, b *model.Batch) []byte {
	dst = grow(dst, SizeHint(b))
	dst = append(dst, version, byte(b.Signal))
	dst = binary.AppendUvarint(dst, uint64(len(b.Tenant)))
	dst = append(dst, b.Tenant...)
	if len(b.Keys) > 0 {
		dst = appendSection(dst, keysSection, b, appendKeys)
	}
	if b.Labels.Len() > 0 {
		dst = appendSection(dst, labelsSection, b, appendLabels)
	}
	if b.Samples.Len() > 0 {
		dst = appendSection(dst, samplesSection, b, appendSamples)
	}
	return dst
}

// SizeHint returns about how many bytes the record of a batch has: rather too many than too few, unless its times are
// far apart.
func SizeHint(b *model.Batch) int {
	return 64 + len(b.Tenant) + len(b.Keys)*(model.KeyBytes+1) + len(b.Samples.Times)*(5+8) +
		len(b.Samples.Starts)*5 + b.Labels.Len()*10 + len(b.Labels.Bytes)
}

// grow makes room for n more bytes at once, so that the columns below are stored without growing.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, len(dst)+n), dst...)
}

func appendSection(dst []byte, kind byte, b *model.Batch, body func([]byte, *model.Batch) []byte) []byte {
	dst = append(dst, kind, 0, 0, 0, 0)
	begin := len(dst)
	dst = body(dst, b)
	binary.LittleEndian.PutUint32(dst[begin-4:], uint32(len(dst)-begin))
	return dst
}

func appendKeys(dst []byte, b *model.Batch) []byte {
	at := len(dst)
	dst = extend(dst, len(b.Keys)*model.KeyBytes)
	out := dst[at:]
	for _, k := range b.Keys {
		binary.BigEndian.PutUint64(out, k.Hi)
		binary.BigEndian.PutUint64(out[8:], k.Lo)
		out = out[model.KeyBytes:]
	}
	return dst
}

func extend(dst []byte, n int) []byte {
	dst = grow(dst, n)
	return dst[:len(dst)+n]
}

func appendLabels(dst []byte, b *model.Batch) []byte {
	dst = binary.AppendUvarint(dst, uint64(b.Labels.Len()))
	for i, series := range b.Labels.Series {
		l := b.Labels.At(i)
		dst = binary.AppendUvarint(dst, uint64(series))
		dst = binary.AppendUvarint(dst, uint64(len(l)))
		dst = append(dst, l...)
	}
	return dst
}

func appendSamples(dst []byte, b *model.Batch) []byte {
	single := oneRowEach(b)
	if single {
		dst = append(dst, countsOne)
	} else {
		dst = append(dst, counts)
		for i := range b.Keys {
			dst = binary.AppendUvarint(dst, uint64(b.Samples.End(i)-b.Samples.Begin(i)))
		}
	}
	// Only rows of different series can have equal times, and a column that claims any number of rows with a few bytes
	// would let a reader be cheated out of memory: so a column of equal times goes with one row each, which the keys
	// vouch for.
	dst = appendTimes(dst, b.Samples.Times, single)
	dst = appendTimes(dst, b.Samples.Starts, single)
	return appendValues(dst, b.Samples.Values)
}

func oneRowEach(b *model.Batch) bool {
	if len(b.Keys) != b.Samples.Len() {
		return false
	}
	for i, end := range b.Samples.Ends {
		if end != uint32(i)+1 {
			return false
		}
	}
	return true
}

// appendTimes stores a column of times. Neighbours in a request have equal or close times: a delta of 0 takes a byte, a
// delta of 15 s takes five.
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

func allEqual[T comparable](xs []T) bool {
	for _, x := range xs[1:] {
		if x != xs[0] {
			return false
		}
	}
	return true
}
