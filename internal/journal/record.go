package journal

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
)

// The first byte of every record is its version. A reader refuses versions that it does not know. Only
// records with a control section have controlVersion, so that older programs can read all others.
const (
	version        = 1
	controlVersion = 2
)

// The kinds of sections. A record has at most one of each, in ascending order; empty ones are left out.
const (
	keysSection   = 1
	labelsSection = 2 // read, but no longer written
	sharedSection = 3
	// controlSection is the kind of a control record in one byte, and its body.
	controlSection = 5
	// Rows of a family have the kind rowsSection + family.
	rowsSection = 0x10
)

// EncodeBatch appends the record of a batch to dst. It allocates only if dst is too small, plus what
// [JoinHint] returns.
func EncodeBatch(dst []byte, b *model.Batch) []byte {
	dst = grow(dst, SizeHint(b))
	v := byte(version)
	if b.Control.Kind != 0 {
		v = controlVersion
	}
	dst = append(dst, v, byte(b.Signal))
	dst = binary.AppendUvarint(dst, uint64(len(b.Tenant)))
	dst = append(dst, b.Tenant...)
	if len(b.Keys) > 0 {
		dst = beginSection(dst, keysSection)
		dst = endSection(appendKeys(dst, b), len(dst))
	}
	if b.Labels.Len() > 0 {
		dst = beginSection(dst, sharedSection)
		dst = endSection(appendSharedLabels(dst, b), len(dst))
	}
	if b.Control.Kind != 0 {
		dst = beginSection(dst, controlSection)
		begin := len(dst)
		dst = append(append(dst, byte(b.Control.Kind)), b.Control.Body...)
		dst = endSection(dst, begin)
	}
	for _, f := range model.Families() {
		if c := b.Columns(f); c.Len() > 0 {
			dst = beginSection(dst, rowsSection+byte(f))
			dst = endSection(appendRows(dst, f, c, len(b.Keys)), len(dst))
		}
	}
	return dst
}

// sharedPart is the factor by which labels usually shrink at least, since neighbours share most of them.
const sharedPart = 4

// SizeHint returns an estimate of the bytes of a record. It is rarely too low: only if times are far apart or
// label sets have nothing in common.
func SizeHint(b *model.Batch) int {
	n := 64 + len(b.Tenant) + len(b.Keys)*(model.KeyBytes+1) + b.Labels.Len()*10 + len(b.Labels.Bytes)/sharedPart + len(b.Control.Body)
	for _, f := range model.Families() {
		c := b.Columns(f)
		n += len(c.Times)*(5+8) + len(c.Starts)*5 + len(c.Kinds) + len(c.Bytes)
	}
	return n
}

// JoinHint returns how many bytes of temporary memory [EncodeBatch] takes besides the record: it joins lines
// that are not contiguous.
func JoinHint(b *model.Batch) int {
	if _, total, together := extent(&b.Text.Rows); !together {
		return total
	}
	return 0
}

// grow makes room for n more bytes, so that appending columns does not reallocate.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, len(dst)+n), dst...)
}

func extend(dst []byte, n int) []byte {
	dst = grow(dst, n)
	return dst[:len(dst)+n]
}

// beginSection appends the header of a section. endSection fills in its length.
func beginSection(dst []byte, kind byte) []byte { return append(dst, kind, 0, 0, 0, 0) }

func endSection(dst []byte, begin int) []byte {
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
