package logql

import (
	"context"
	"hash/maphash"
	"sort"

	"github.com/shaledb/shale/internal/heap"
	"github.com/shaledb/shale/internal/model"
)

// volumeMerge merges chunks of a stream that share times. It holds only the chunks that have rows around the
// current time.
type volumeMerge struct {
	cursors []volumeCursor
	free    []int // the cursors whose chunks have ended
	heap    heap.Heap[int64, int]
	tied    []int // the cursors that have rows of one time
	charged int64
	seeds   [2]maphash.Seed
}

// volumeCursor is a chunk of a merge.
type volumeCursor struct {
	chunk     *model.TextChunk
	rows      model.TextRows // times and lengths
	next, end int            // the rows within the range that have not been counted
	lines     model.TextRows // with lines and metadata, if they had to be compared
	tie       int            // the end of the rows of the time that is compared
}

// merge counts chunks that share times, sorted by their least times.
func (c *volumeCount) merge(ctx context.Context, chunks []model.TextChunk) error {
	m := &c.merging
	defer func() {
		_ = c.req.Quota.TakeBytes(-m.charged) // giving back does not fail
		*m = volumeMerge{heap: m.heap, seeds: m.seeds, tied: m.tied[:0]}
		m.heap.Reset()
	}()
	for steps := 0; ; steps++ {
		if steps%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for len(chunks) > 0 && (m.heap.Len() == 0 || chunks[0].Min <= m.heap.First().Key) {
			if err := c.begin(ctx, &chunks[0]); err != nil {
				return err
			}
			chunks = chunks[1:]
		}
		if m.heap.Len() == 0 {
			return nil
		}
		first := m.heap.Pop()
		if m.heap.Len() > 0 && m.heap.First().Key == first.Key {
			if err := c.tie(ctx, first); err != nil {
				return err
			}
			continue
		}
		// Up to the next time of another chunk, rows are in this chunk alone.
		x := &m.cursors[first.Index]
		to := x.end
		if m.heap.Len() > 0 {
			to = x.index(m.heap.First().Key)
		}
		if len(chunks) > 0 {
			to = min(to, x.index(chunks[0].Min))
		}
		c.addRows(&x.rows, x.next, to)
		c.advance(first.Index, to)
	}
}

// index returns the index of the first row that is not counted and not before a time.
func (x *volumeCursor) index(t int64) int {
	times := x.rows.Times[x.next:x.end]
	return x.next + sort.Search(len(times), func(i int) bool { return times[i] >= t })
}

// begin reads a chunk and takes it into the merge.
func (c *volumeCount) begin(ctx context.Context, chunk *model.TextChunk) error {
	m := &c.merging
	bytes := int64(chunk.Rows) * volumeRowBytes
	if err := c.req.Quota.TakeBytes(bytes); err != nil {
		return err
	}
	m.charged += bytes
	i := len(m.cursors)
	if n := len(m.free); n > 0 {
		i, m.free = m.free[n-1], m.free[:n-1]
	} else {
		m.cursors = append(m.cursors, volumeCursor{})
	}
	x := &m.cursors[i]
	x.chunk = chunk
	if err := c.read(ctx, chunk, model.WantLengths, &x.rows); err != nil {
		return err
	}
	from, to := c.clip(x.rows.Times)
	if from < to {
		c.volume.Chunks++
	}
	x.end = to
	c.advance(i, from)
	return nil
}

// advance sets the next row of a cursor, which is not in the heap, and puts the cursor into the heap unless
// its chunk has ended.
func (c *volumeCount) advance(i, next int) {
	m := &c.merging
	x := &m.cursors[i]
	if x.next = next; x.next < x.end {
		m.heap.Push(heap.Item[int64, int]{Key: x.rows.Times[x.next], Tie: i, Index: i})
		return
	}
	bytes := int64(x.chunk.Rows) * volumeRowBytes
	_ = c.req.Quota.TakeBytes(-bytes) // giving back does not fail
	m.charged -= bytes
	*x = volumeCursor{rows: x.rows}
	m.free = append(m.free, i)
}

// tie counts the rows of one time, which several chunks have. The first of these has left the heap. Only
// chunks of different orders may have copies of a row.
func (c *volumeCount) tie(ctx context.Context, first heap.Item[int64, int]) error {
	m := &c.merging
	m.tied = append(m.tied[:0], first.Index)
	for m.heap.Len() > 0 && m.heap.First().Key == first.Key {
		m.tied = append(m.tied, m.heap.Pop().Index)
	}
	for _, i := range m.tied {
		x := &m.cursors[i]
		x.tie = x.next
		for x.tie < x.end && x.rows.Times[x.tie] == first.Key {
			x.tie++
		}
	}
	if c.mayHaveCopies() {
		if err := c.addDistinct(ctx, first.Key); err != nil {
			return err
		}
	} else {
		for _, i := range m.tied {
			x := &m.cursors[i]
			c.addRows(&x.rows, x.next, x.tie)
		}
	}
	for _, i := range m.tied {
		c.advance(i, m.cursors[i].tie)
	}
	return nil
}

// mayHaveCopies reports whether tied chunks of different orders have rows of the same length.
func (c *volumeCount) mayHaveCopies() bool {
	m := &c.merging
	lengths := make(map[uint32]uint64, len(m.tied)) // of each length, the order of the first row
	for _, i := range m.tied {
		x := &m.cursors[i]
		for row := x.next; row < x.tie; row++ {
			length := lineLength(&x.rows, row)
			if order, known := lengths[length]; !known {
				lengths[length] = x.chunk.Order
			} else if order != x.chunk.Order {
				return true
			}
		}
	}
	return false
}

// lineLength returns the length of a row's line.
func lineLength(rows *model.TextRows, i int) uint32 {
	if i == 0 {
		return rows.Ends[0] - rows.Begin
	}
	return rows.Ends[i] - rows.Ends[i-1]
}

// addDistinct adds the tied rows, and counts those once whose line and metadata are the same.
func (c *volumeCount) addDistinct(ctx context.Context, t int64) error {
	m := &c.merging
	rows := int64(0)
	for _, i := range m.tied {
		x := &m.cursors[i]
		rows += int64(x.tie - x.next)
		if len(x.lines.Times) > 0 {
			continue
		}
		if err := c.read(ctx, x.chunk, model.WantLines|model.WantMetadata, &x.lines); err != nil {
			return err
		}
	}
	if err := c.req.Quota.TakeBytes(rows * volumeSumBytes); err != nil {
		return err
	}
	defer func() { _ = c.req.Quota.TakeBytes(-rows * volumeSumBytes) }() // giving back does not fail
	seen := make(map[[2]uint64]struct{}, rows)
	bytes := uint64(0)
	for _, i := range m.tied {
		x := &m.cursors[i]
		for row := x.next; row < x.tie; row++ {
			line, metadata := x.lines.Line(row), x.lines.MetadataAt(row)
			var sum [2]uint64
			for k, seed := range m.seeds {
				sum[k] = maphash.Bytes(seed, line) + 31*maphash.Bytes(seed, metadata)
			}
			c.req.Cost.TextLines.Add(1)
			c.req.Cost.TextBytes.Add(int64(len(line)))
			if _, copied := seen[sum]; !copied {
				seen[sum] = struct{}{}
				bytes += uint64(len(line))
			}
		}
	}
	c.add(c.interval(t), len(seen), bytes)
	return nil
}
