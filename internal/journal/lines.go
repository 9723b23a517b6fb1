package journal

import (
	"encoding/binary"

	"github.com/klauspost/compress/s2"

	"github.com/shaledb/shale/internal/model"
)

// maxLineBytes bounds the decoded lines of one record, so that a hostile record cannot exhaust a reader's
// memory.
const maxLineBytes = 128 << 20

// The encodings of lines.
const (
	linesRaw = 0
	linesS2  = 1 // one block
)

// fewLineBytes is the size up to which lines are stored uncompressed.
const fewLineBytes = 64

// appendLines stores rows of text: their lengths, and all blobs of the record as one S2 block. S2 takes less
// CPU than writing and syncing the bytes that it saves. Better S2 levels and zstd compress more, but take
// several times the CPU.
func appendLines(dst []byte, r *model.Rows) []byte {
	dst = append(dst, columnLines)
	for _, v := range r.Values {
		dst = binary.AppendUvarint(dst, v&(1<<32-1))
	}
	begin, total, together := extent(r)
	if total < fewLineBytes {
		return appendBlobBytes(append(dst, linesRaw), r)
	}
	var lines []byte
	if together {
		lines = r.Bytes[begin : begin+total]
	} else {
		// Not appended to dst: the record waits for the disk and would keep this memory until then.
		lines = appendBlobBytes(make([]byte, 0, total), r)
	}
	most := 1 + s2.MaxEncodedLen(total) // which is more than the lines
	dst = grow(dst, most)
	block := s2.Encode(dst[len(dst)+1:len(dst)+most], lines)
	if len(block) >= total {
		return append(append(dst, linesRaw), lines...)
	}
	dst = append(dst, linesS2)
	return dst[:len(dst)+len(block)]
}

// extent returns where blobs begin, their total size, and whether they are contiguous. They are not if rows
// were left out of the batch.
func extent(r *model.Rows) (begin, total int, together bool) {
	together = true
	for i, v := range r.Values {
		at := int(v >> 32)
		if i == 0 {
			begin = at
		}
		together = together && at == begin+total
		total += int(v & (1<<32 - 1))
	}
	return begin, total, together
}

func appendBlobBytes(dst []byte, r *model.Rows) []byte {
	for i := range r.Values {
		dst = append(dst, r.Blob(i)...)
	}
	return dst
}

// lines reads rows of text.
func (d *decoder) lines(r *model.Rows, rows int) {
	total := uint64(0)
	for range rows {
		n := d.uvarint()
		if total += n; n > maxLineBytes || total > maxLineBytes {
			d.fail("lines exceed the limit of %d bytes", maxLineBytes)
		}
		if d.err != nil {
			return
		}
		r.Values = append(r.Values, (total-n)<<32|n)
		r.Kinds = append(r.Kinds, model.KindText)
	}
	codec := d.take(1)
	if d.err != nil {
		return
	}
	stored := d.take(len(d.in))
	switch codec[0] {
	case linesRaw:
		if uint64(len(stored)) != total {
			d.fail("expected %d bytes of lines, got %d", total, len(stored))
			return
		}
		r.Bytes = append(r.Bytes, stored...)
	case linesS2:
		if n, err := s2.DecodedLen(stored); err != nil || uint64(n) != total {
			d.fail("expected %d bytes of lines, the block has %d", total, n)
			return
		}
		r.Bytes = grow(r.Bytes, int(total))
		if _, err := s2.Decode(r.Bytes[:total], stored); err != nil {
			d.fail("lines: %v", err)
			return
		}
		r.Bytes = r.Bytes[:total]
	default:
		d.fail("unknown encoding %d of lines", codec[0])
	}
}
