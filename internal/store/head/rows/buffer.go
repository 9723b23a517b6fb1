package rows

import (
	"github.com/shaledb/shale/internal/model"
)

// RowBytes is what a buffered row costs: key, time, value. A start timestamp costs startBytes more, and a
// kind kindBytes, for every row of a chunk that has one.
const (
	RowBytes   = model.KeyBytes + 8 + 8
	startBytes = 8
	KindBytes  = 1
)

// The first chunk of a buffer is small, for heads that receive few rows. The others are large, since
// appending copies columns.
const (
	firstChunkRows = 1 << 10
	ChunkRows      = 1 << 14
)

// rowChunk is a piece of the columns of a buffer.
type rowChunk struct {
	keys []model.Key
	columns
}

func newRowChunk(rows int) *rowChunk {
	return &rowChunk{
		keys:    make([]model.Key, 0, rows),
		columns: columns{Times: make([]int64, 0, rows), Values: make([]uint64, 0, rows)},
	}
}

// rest returns a chunk that uses the memory after the rows of this one, which must not be appended to any
// more. Columns that end early continue after its rows too; the gap is never read.
func (c *rowChunk) rest() *rowChunk {
	n := c.len()
	r := &rowChunk{keys: c.keys[n:], columns: columns{Times: c.Times[n:], Values: c.Values[n:]}}
	if c.starts != nil {
		r.starts = c.starts[:cap(c.starts)][n:n]
	}
	if c.kinds != nil {
		r.kinds = c.kinds[:cap(c.kinds)][n:n]
	}
	return r
}

// bytes is the memory that is not in use yet.
func (c *rowChunk) bytes() int64 {
	return int64(cap(c.Times))*RowBytes + int64(cap(c.starts))*startBytes + int64(cap(c.kinds))*KindBytes
}

// span says that rows [from, to) of a chunk belong to an owner.
type span struct {
	chunk    *rowChunk
	from, to int32
	base     uint32 // number of the first block that their references count from
}

// owner identifies the owner of the rows of a span. Signals never share a part, nor families a column.
type owner struct {
	tenant string
	signal model.Signal
	family model.Family
}

// Buffer collects rows in the order in which they were applied. The caller serialises access until it is
// sealed.
type Buffer struct {
	chunk *rowChunk
	blobs blobBuffer
	spans map[owner][]span
	Rows  int
	// Bytes is all memory of the buffer, also that which is not in use yet; blobBytes is that of the blobs
	// among it.
	Bytes, BlobBytes int64
	seqLo, seqHi     uint64
}

func NewBuffer() *Buffer { return &Buffer{spans: make(map[owner][]span)} }

// PeakBytes is the memory of rows while they are being sorted, which copies their columns but not their
// blobs. It counts against the limit of buffered rows. Those that no query has read stay where they arrived
// until a flush, and so do chunks that have such rows.
func PeakBytes(bytes, blobBytes int64) int64 { return 2*bytes - blobBytes }

// BatchPeakBytes is the most that the rows of a batch may add to PeakBytes.
func BatchPeakBytes(b *model.Batch) int64 {
	var n, blobs int64
	for _, f := range model.Families() {
		c := b.Columns(f)
		n += int64(c.Len()) * RowBytes
		if len(c.Starts) > 0 {
			n += int64(c.Len()) * startBytes
		}
		if len(c.Kinds) > 0 {
			n += int64(c.Len()) * KindBytes
			blobs += blobSpace(&c.Rows)
		}
	}
	return PeakBytes(n+blobs, blobs)
}

// Append appends the rows of a batch. Batches come in the order of seq.
func (rb *Buffer) Append(seq uint64, b *model.Batch) {
	if rb.seqLo == 0 {
		rb.seqLo = seq
	}
	rb.seqHi = seq
	for _, f := range model.Families() {
		if c := b.Columns(f); c.Len() > 0 {
			own := owner{b.Tenant, b.Signal, f}
			rb.spans[own] = rb.add(rb.spans[own], b.Keys, c)
			rb.Rows += c.Len()
		}
	}
}

func (rb *Buffer) add(spans []span, keys []model.Key, rows *model.Columns) []span {
	row := 0
	for i, k := range keys {
		for end := int(rows.End(i)); row < end; row++ {
			if rb.chunk == nil || rb.chunk.len() == cap(rb.chunk.Times) {
				rb.grow()
			}
			c := rb.chunk
			n := c.len()
			value := rows.Values[row]
			if kind := rows.Kind(row); kind != model.KindFloat {
				value = rb.addBlob(kind, rows.Blob(row))
			}
			c.keys = append(c.keys, k)
			c.Times = append(c.Times, rows.Times[row])
			c.Values = append(c.Values, value)
			if start := rows.Start(row); start != 0 {
				rb.addStart(start)
			}
			if last := len(spans) - 1; last >= 0 && spans[last].chunk == c && int(spans[last].to) == n {
				spans[last].to++
			} else {
				spans = append(spans, span{chunk: c, from: int32(n), to: int32(n) + 1})
			}
		}
	}
	return spans
}

func (rb *Buffer) grow() {
	rows := ChunkRows
	if rb.chunk == nil {
		rows = firstChunkRows
	}
	rb.chunk = newRowChunk(rows)
	rb.Bytes += int64(rows) * RowBytes
}

// addBlob stores the value and the kind of the next row.
func (rb *Buffer) addBlob(kind model.Kind, blob []byte) (ref uint64) {
	c := rb.chunk
	if c.kinds == nil {
		c.kinds = make([]model.Kind, 0, cap(c.Times))
		rb.Bytes += int64(cap(c.Times)) * KindBytes
	}
	for len(c.kinds) < c.len() {
		c.kinds = append(c.kinds, model.KindFloat)
	}
	c.kinds = append(c.kinds, kind)
	ref, grown := rb.blobs.add(blob)
	rb.Bytes += grown
	rb.BlobBytes += grown
	return ref
}

// addStart stores the start timestamp of the last row.
func (rb *Buffer) addStart(start int64) {
	c := rb.chunk
	if c.starts == nil {
		c.starts = make([]int64, 0, cap(c.Times))
		rb.Bytes += int64(cap(c.Times)) * startBytes
	}
	for len(c.starts) < c.len()-1 {
		c.starts = append(c.starts, 0)
	}
	c.starts = append(c.starts, start)
}

// Seal makes a run for each signal that has rows, and a buffer that continues in the memory of this one.
// Queries seal few rows at a time, and that takes no more memory than the rows. The memory of the buffer is
// divided among the runs. Sorting is left to the first reader.
func (rb *Buffer) Seal() (runs []*Run, next *Buffer) {
	next = NewBuffer()
	next.blobs = rb.blobs.rest()
	next.BlobBytes = int64(len(next.blobs.left))
	next.Bytes = next.BlobBytes
	if rb.chunk != nil {
		next.chunk = rb.chunk.rest()
		next.Bytes += next.chunk.bytes()
	}
	bySignal := make(map[model.Signal]*Run)
	for own, spans := range rb.spans {
		r := bySignal[own.signal]
		if r == nil {
			r = &Run{
				Signal: own.signal, SeqLo: rb.seqLo, SeqHi: rb.seqHi, spans: make(map[tenantFamily][]span),
				Blobs: rb.blobs.blocks, blocks: len(rb.blobs.blocks),
			}
			bySignal[own.signal] = r
			runs = append(runs, r)
		}
		r.spans[tenantFamily{own.tenant, own.family}] = spans
		for _, s := range spans {
			r.rows += int(s.to - s.from)
		}
	}
	left, blobs := rb.Bytes-next.Bytes, rb.BlobBytes-next.BlobBytes
	for _, r := range runs {
		r.Bytes, r.BlobBytes = left*int64(r.rows)/int64(rb.Rows), blobs*int64(r.rows)/int64(rb.Rows)
		left, blobs, rb.Rows = left-r.Bytes, blobs-r.BlobBytes, rb.Rows-r.rows
	}
	return runs, next
}
