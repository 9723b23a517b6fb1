package head

import (
	"github.com/shaledb/shale/internal/model"
)

// rowBytes is what a buffered row costs: key, time, value. A start timestamp costs 8 more.
const rowBytes = model.KeyBytes + 8 + 8

// The first chunk of a buffer is small, since a query may seal the buffer at any moment; the others are large enough to
// make appending a copy of columns.
const (
	firstChunkRows = 1 << 10
	chunkRows      = 1 << 14
)

// rowChunk is a piece of the columns of a buffer.
type rowChunk struct {
	keys   []model.Key
	values []uint64
	times  []int64
	starts []int64 // empty while no row of the chunk has one
}

func newRowChunk(rows int) *rowChunk {
	return &rowChunk{
		keys:   make([]model.Key, 0, rows),
		times:  make([]int64, 0, rows),
		values: make([]uint64, 0, rows),
	}
}

// span says that rows [from, to) of a chunk belong to a tenant.
type span struct {
	chunk    *rowChunk
	from, to int32
}

// owner is whose rows a span holds. Signals never meet in a part.
type owner struct {
	tenant string
	signal model.Signal
}

// rowBuffer collects rows in the order in which they were applied. It is guarded by Head.mu until it is sealed.
type rowBuffer struct {
	chunk        *rowChunk
	spans        map[owner][]span
	rows         int
	bytes        int64
	seqLo, seqHi uint64
}

func newRowBuffer() *rowBuffer { return &rowBuffer{spans: make(map[owner][]span)} }

// apply appends the rows of a batch. Batches come in the order of seq.
func (rb *rowBuffer) apply(seq uint64, b *model.Batch) {
	if rb.seqLo == 0 {
		rb.seqLo = seq
	}
	rb.seqHi = seq
	if len(b.Samples.Times) == 0 {
		return
	}
	own := owner{b.Tenant, b.Signal}
	spans := rb.spans[own]
	row := 0
	for i, k := range b.Keys {
		for end := int(b.Samples.End(i)); row < end; row++ {
			if rb.chunk == nil || len(rb.chunk.times) == cap(rb.chunk.times) {
				rb.grow()
			}
			c := rb.chunk
			n := len(c.times)
			c.keys = append(c.keys, k)
			c.times = append(c.times, b.Samples.Times[row])
			c.values = append(c.values, b.Samples.Values[row])
			if start := b.Samples.Start(row); start != 0 || len(c.starts) > 0 {
				rb.appendStart(c, n, start)
			}
			if last := len(spans) - 1; last >= 0 && spans[last].chunk == c && int(spans[last].to) == n {
				spans[last].to++
			} else {
				spans = append(spans, span{c, int32(n), int32(n) + 1})
			}
		}
	}
	rb.rows += row
	rb.spans[own] = spans
}

func (rb *rowBuffer) grow() {
	rows := chunkRows
	if rb.chunk == nil {
		rows = firstChunkRows
	}
	rb.chunk = newRowChunk(rows)
	rb.bytes += int64(rows) * rowBytes
}

func (rb *rowBuffer) appendStart(c *rowChunk, row int, start int64) {
	if c.starts == nil {
		c.starts = make([]int64, 0, cap(c.times))
		rb.bytes += int64(cap(c.times)) * 8
	}
	for len(c.starts) < row {
		c.starts = append(c.starts, 0)
	}
	c.starts = append(c.starts, start)
}
