package kafka

import (
	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// splitter makes the parts of batches. It keeps its memory for the next batch.
type splitter struct {
	parts []model.Batch // by partition
	used  []int32       // partitions that the batch has, in the order of their first series
}

// part is the record of one partition.
type part struct {
	partition int32
	record    []byte
}

// splitters are splitters for the next batches: at most as many as the channel holds.
type splitters chan *splitter

// A producer keeps at most 16 MiB in splitters.
const (
	maxSplitters     = 4
	maxSplitterBytes = 4 << 20
)

func (s splitters) get() *splitter {
	select {
	case one := <-s:
		return one
	default:
		return new(splitter)
	}
}

// put keeps a splitter, unless enough are kept or it has too much memory.
func (s splitters) put(one *splitter) {
	if one.bytes() > maxSplitterBytes {
		return
	}
	select {
	case s <- one:
	default:
	}
}

// bytes returns the memory of all parts.
func (s *splitter) bytes() (n int) {
	for i := range s.parts {
		b := &s.parts[i]
		n += model.KeyBytes*cap(b.Keys) + 4*cap(b.Labels.Series) + 4*cap(b.Labels.Ends) + cap(b.Labels.Bytes)
		for _, f := range model.Families() {
			c := b.Columns(f)
			n += 8*cap(c.Times) + 8*cap(c.Values) + 8*cap(c.Starts) + cap(c.Kinds) + 4*cap(c.Ends) + cap(c.Bytes)
		}
	}
	return n
}

// split encodes the part of each partition that has series of the batch. A batch with a control record goes
// to all partitions, since each of them has rows that it may concern. A part above limit bytes is divided.
func split(kept splitters, b *model.Batch, partitions int32, of func(model.Key) int32, limit int) []part {
	if b.Control.Kind != 0 {
		parts := make([]part, partitions)
		record := journal.EncodeBatch(nil, b)
		for p := range parts {
			parts[p] = part{int32(p), record}
		}
		return parts
	}
	if partitions == 1 {
		return fitting(nil, 0, b, limit)
	}
	s := kept.get()
	if len(s.parts) < int(partitions) {
		s.parts = make([]model.Batch, partitions)
	}
	s.divide(b, of)
	parts := make([]part, 0, len(s.used))
	for _, p := range s.used {
		mine := &s.parts[p]
		parts = fitting(parts, p, mine, limit)
		mine.Reset()
	}
	s.used = s.used[:0]
	kept.put(s)
	return parts
}

// divide copies the rows and labels of each series to the part of its partition.
func (s *splitter) divide(b *model.Batch, of func(model.Key) int32) {
	labels := 0
	for i, k := range b.Keys {
		p := of(k)
		mine := &s.parts[p]
		if len(mine.Keys) == 0 {
			mine.Tenant, mine.Signal = b.Tenant, b.Signal
			s.used = append(s.used, p)
		}
		for _, f := range model.Families() {
			if c := b.Columns(f); c.End(i) > c.Begin(i) {
				mine.Columns(f).AppendRows(&c.Rows, int(c.Begin(i)), int(c.End(i)))
			}
		}
		for ; labels < b.Labels.Len() && b.Labels.Series[labels] == uint32(i); labels++ {
			mine.Labels.Append(uint32(len(mine.Keys)), b.Labels.At(labels))
		}
		mine.EndSeries(k)
	}
}
