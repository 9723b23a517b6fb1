package head

import (
	"github.com/shaledb/shale/internal/model"
)

// rowBytes is what a buffered row costs: key, time, value. A start timestamp costs startBytes more, and a kind kindBytes,
// for every row of a chunk that has one.
const (
	rowBytes   = model.KeyBytes + 8 + 8
	startBytes = 8
	kindBytes  = 1
)

// The first chunk of a head is small, for heads that get little; the others are large enough to make appending a copy of
// columns.
const (
	firstChunkRows = 1 << 10
	chunkRows      = 1 << 14
)

// rowChunk is a piece of the columns of a buffer.
type rowChunk struct {
	keys []model.Key
	columns
	base uint32 // block at which the blocks of its references begin
}

func newRowChunk(rows int) *rowChunk {
	return &rowChunk{
		keys:    make([]model.Key, 0, rows),
		columns: columns{times: make([]int64, 0, rows), values: make([]uint64, 0, rows)},
	}
}

// rest returns a chunk that goes on behind the rows of this one, which must not be added to any more. Columns that end
// early go on behind its rows too: nobody reads what lies between.
func (c *rowChunk) rest() *rowChunk {
	n := c.len()
	r := &rowChunk{keys: c.keys[n:], columns: columns{times: c.times[n:], values: c.values[n:]}}
	if c.starts != nil {
		r.starts = c.starts[:cap(c.starts)][n:n]
	}
	if c.kinds != nil {
		r.kinds = c.kinds[:cap(c.kinds)][n:n]
	}
	return r
}

// bytes is the memory of what is not in use yet.
func (c *rowChunk) bytes() int64 {
	return int64(cap(c.times))*rowBytes + int64(cap(c.starts))*startBytes + int64(cap(c.kinds))*kindBytes
}

// span says that rows [from, to) of a chunk belong to an owner.
type span struct {
	chunk    *rowChunk
	from, to int32
}

// owner is whose rows a span holds. Signals never meet in a part, and families never in a column.
type owner struct {
	tenant string
	signal model.Signal
	family model.Family
}

// rowBuffer collects rows in the order in which they were applied. It is guarded by Head.mu until it is sealed.
type rowBuffer struct {
	chunk *rowChunk
	blobs blobBuffer
	spans map[owner][]span
	rows  int
	// bytes is all memory of the buffer, also that which is not in use yet; blobBytes is that of the blobs among it.
	bytes, blobBytes int64
	seqLo, seqHi     uint64
}

func newRowBuffer() *rowBuffer { return &rowBuffer{spans: make(map[owner][]span)} }

// load is what counts against the limit of buffered rows: columns are copied while they are being sorted, blobs never are.
func peakBytes(bytes, blobBytes int64) int64 { return 2*bytes - blobBytes }

// batchPeakBytes is what the rows of a batch may take of it.
func batchPeakBytes(b *model.Batch) int64 {
	var n, blobs int64
	for _, f := range model.Families() {
		c := b.Columns(f)
		n += int64(c.Len()) * rowBytes
		if len(c.Starts) > 0 {
			n += int64(c.Len()) * startBytes
		}
		if len(c.Kinds) > 0 {
			n += int64(c.Len()) * kindBytes
			blobs += blobSpace(&c.Rows)
		}
	}
	return peakBytes(n+blobs, blobs)
}

// apply appends the rows of a batch. Batches come in the order of seq.
func (rb *rowBuffer) apply(seq uint64, b *model.Batch) {
	if rb.seqLo == 0 {
		rb.seqLo = seq
	}
	rb.seqHi = seq
	for _, f := range model.Families() {
		if c := b.Columns(f); c.Len() > 0 {
			own := owner{b.Tenant, b.Signal, f}
			rb.spans[own] = rb.add(rb.spans[own], b.Keys, c)
			rb.rows += c.Len()
		}
	}
}

func (rb *rowBuffer) add(spans []span, keys []model.Key, rows *model.Columns) []span {
	row := 0
	for i, k := range keys {
		for end := int(rows.End(i)); row < end; row++ {
			if rb.chunk == nil || rb.chunk.len() == cap(rb.chunk.times) {
				rb.grow()
			}
			c := rb.chunk
			n := c.len()
			value := rows.Values[row]
			if kind := rows.Kind(row); kind != model.KindFloat {
				value = rb.addBlob(kind, rows.Blob(row))
			}
			c.keys = append(c.keys, k)
			c.times = append(c.times, rows.Times[row])
			c.values = append(c.values, value)
			if start := rows.Start(row); start != 0 {
				rb.addStart(start)
			}
			if last := len(spans) - 1; last >= 0 && spans[last].chunk == c && int(spans[last].to) == n {
				spans[last].to++
			} else {
				spans = append(spans, span{c, int32(n), int32(n) + 1})
			}
		}
	}
	return spans
}

func (rb *rowBuffer) grow() {
	rows := chunkRows
	if rb.chunk == nil {
		rows = firstChunkRows
	}
	rb.chunk = newRowChunk(rows)
	rb.bytes += int64(rows) * rowBytes
}

// addBlob stores the value and the kind of the row that comes next.
func (rb *rowBuffer) addBlob(kind model.Kind, blob []byte) (ref uint64) {
	c := rb.chunk
	if c.kinds == nil {
		c.kinds = make([]model.Kind, 0, cap(c.times))
		rb.bytes += int64(cap(c.times)) * kindBytes
	}
	for len(c.kinds) < c.len() {
		c.kinds = append(c.kinds, model.KindFloat)
	}
	c.kinds = append(c.kinds, kind)
	ref, grown := rb.blobs.add(blob)
	rb.bytes += grown
	rb.blobBytes += grown
	return ref
}

// addStart stores the start timestamp of the row that came last.
func (rb *rowBuffer) addStart(start int64) {
	c := rb.chunk
	if c.starts == nil {
		c.starts = make([]int64, 0, cap(c.times))
		rb.bytes += int64(cap(c.times)) * startBytes
	}
	for len(c.starts) < c.len()-1 {
		c.starts = append(c.starts, 0)
	}
	c.starts = append(c.starts, start)
}

// seal makes a run for each signal that has rows, and a buffer that goes on where this one ends: sealing few rows, as
// queries do all the time, takes no more memory than these. The memory of the buffer is divided among them all. Sorting is
// left to whoever needs it first.
func (rb *rowBuffer) seal() (runs []*run, next *rowBuffer) {
	next = newRowBuffer()
	next.blobs = rb.blobs.rest()
	next.blobBytes = int64(len(next.blobs.left))
	next.bytes = next.blobBytes
	if rb.chunk != nil {
		next.chunk = rb.chunk.rest()
		next.bytes += next.chunk.bytes()
	}
	bySignal := make(map[model.Signal]*run)
	for own, spans := range rb.spans {
		r := bySignal[own.signal]
		if r == nil {
			r = &run{
				signal: own.signal, seqLo: rb.seqLo, seqHi: rb.seqHi, spans: make(map[tenantFamily][]span),
				blobs: rb.blobs.blocks, blocks: len(rb.blobs.blocks),
			}
			bySignal[own.signal] = r
			runs = append(runs, r)
		}
		r.spans[tenantFamily{own.tenant, own.family}] = spans
		for _, s := range spans {
			r.rows += int(s.to - s.from)
		}
	}
	left, blobs := rb.bytes-next.bytes, rb.blobBytes-next.blobBytes
	for _, r := range runs {
		r.bytes, r.blobBytes = left*int64(r.rows)/int64(rb.rows), blobs*int64(r.rows)/int64(rb.rows)
		left, blobs, rb.rows = left-r.bytes, blobs-r.blobBytes, rb.rows-r.rows
	}
	return runs, next
}
