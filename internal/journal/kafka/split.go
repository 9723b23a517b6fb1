package kafka

import (
	"sync"

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

// maxPooledBytes keeps splitters with very large parts out of the pool.
const maxPooledBytes = 4 << 20

// split encodes the part of each partition that has series of the batch. A batch with a control record goes
// to all partitions, since each of them has rows that it may concern.
func split(pool *sync.Pool, b *model.Batch, partitions int32, of func(model.Key) int32) []part {
	if b.Control.Kind != 0 {
		parts := make([]part, partitions)
		record := journal.EncodeBatch(nil, b)
		for p := range parts {
			parts[p] = part{int32(p), record}
		}
		return parts
	}
	if partitions == 1 {
		return []part{{0, journal.EncodeBatch(nil, b)}}
	}
	s := pool.Get().(*splitter)
	if len(s.parts) < int(partitions) {
		s.parts = make([]model.Batch, partitions)
	}
	s.divide(b, of)
	parts := make([]part, 0, len(s.used))
	small := true
	for _, p := range s.used {
		mine := &s.parts[p]
		parts = append(parts, part{p, journal.EncodeBatch(nil, mine)})
		for _, f := range model.Families() {
			small = small && cap(mine.Columns(f).Bytes) <= maxPooledBytes
		}
		small = small && cap(mine.Labels.Bytes) <= maxPooledBytes
		mine.Reset()
	}
	s.used = s.used[:0]
	if small {
		pool.Put(s)
	}
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
