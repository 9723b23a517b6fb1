package loki

import (
	"math"

	"github.com/shaledb/shale/internal/read/logql"
)

// protobuf returns the statistics of a response as Loki's message stats.Result, with the members that have a
// counterpart in Shale.
func (f *figures) protobuf() message {
	var summary, querier, chunks, caches, index, m message
	if seconds := f.exec.Seconds(); seconds > 0 {
		summary.number(1, int64(float64(f.Bytes)/seconds))
		summary.number(2, int64(float64(f.Lines)/seconds))
	}
	summary.number(3, f.Bytes)
	summary.number(4, f.Lines)
	summary.double(5, f.exec.Seconds())
	summary.double(6, f.queue.Seconds())
	summary.number(8, f.Entries)
	summary.number(11, f.Passed)
	summary.number(12, f.MetadataBytes)

	querier.bytes(1, storeProtobuf(f.Stats))
	querier.double(2, f.Exec.Seconds())

	chunks.number(1, min(f.PagesRAM, math.MaxInt32))
	chunks.number(2, min(f.PagesRAM+f.PagesDisk+f.PagesShared+f.PagesBucket, math.MaxInt32))
	caches.bytes(1, chunks)

	index.number(1, f.Pages)
	index.number(2, f.Pages-f.Skipped)
	if f.Skipped > 0 {
		index.number(4, 1)
	}
	index.number(5, f.Streams)

	m.bytes(1, summary)
	m.bytes(2, querier)
	m.bytes(4, caches)
	m.bytes(5, index)
	return m
}

func storeProtobuf(s *logql.Stats) message {
	var chunk, store message
	chunk.number(6, s.Bytes)
	chunk.number(7, s.Lines)
	chunk.number(8, s.BytesBucket)
	chunk.number(9, s.Duplicates)
	chunk.number(10, s.Passed)
	chunk.number(12, s.MetadataBytes)
	store.number(1, s.Pages)
	store.number(2, s.Read)
	store.bytes(4, chunk)
	return store
}
