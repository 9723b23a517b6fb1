package loki

import (
	"math"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// figures are the statistics of a response.
type figures struct {
	*logql.Stats
	cost        *model.Cost
	exec, queue time.Duration
}

// newFigures takes the time until now, which does not include sending the response.
func newFigures(r *api.Request, s *logql.Stats) *figures {
	return &figures{Stats: s, cost: r.Cost, exec: time.Since(r.Began) - r.Queued, queue: r.Queued}
}

// member is a member of an object.
type member struct {
	name  string
	value int64
}

func writeMembers(b *api.Body, list []member) {
	for _, n := range list {
		b.Raw(`"`)
		b.Raw(n.name)
		b.Raw(`":`)
		b.Buf = strconv.AppendInt(b.Buf, n.value, 10)
		b.Raw(",")
	}
}

// writeObject writes an object of numbers.
func writeObject(b *api.Body, list []member) {
	b.Raw("{")
	writeMembers(b, list)
	b.Buf[len(b.Buf)-1] = '}' // replaces the last comma
}

func writeSeconds(b *api.Body, name string, d time.Duration) {
	b.Raw(`"`)
	b.Raw(name)
	b.Raw(`":`)
	b.Buf = strconv.AppendFloat(b.Buf, d.Seconds(), 'f', -1, 64)
}

// write writes all members that Loki has. Those without a counterpart in Shale are 0: it has no ingesters,
// splits or shards. Chunks are pages of lines, and the chunk cache is the page cache.
func (f *figures) write(b *api.Body) {
	b.Raw(`{"summary":{`)
	lines, bytes := f.Lines, f.Bytes
	perSecond := func(n int64) int64 {
		if f.exec <= 0 {
			return 0
		}
		return int64(float64(n) / f.exec.Seconds())
	}
	writeMembers(b, []member{
		{"bytesProcessedPerSecond", perSecond(bytes)}, {"linesProcessedPerSecond", perSecond(lines)},
		{"totalBytesProcessed", bytes}, {"totalLinesProcessed", lines},
	})
	writeSeconds(b, "execTime", f.exec)
	b.Raw(",")
	writeSeconds(b, "queueTime", f.queue)
	b.Raw(",")
	writeMembers(b, []member{
		{"subqueries", 0}, {"totalEntriesReturned", f.Entries}, {"splits", 0}, {"shards", 0}, {"totalPostFilterLines", f.Passed},
	})
	b.Raw(`"totalStructuredMetadataBytesProcessed":`)
	b.Buf = strconv.AppendInt(b.Buf, f.MetadataBytes, 10)
	b.Raw(`},"querier":{"store":`)
	writeStore(b, f.Stats)
	b.Raw(",")
	writeSeconds(b, "querierExecTime", f.Exec)
	b.Raw(`},"ingester":{"totalReached":0,"totalChunksMatched":0,"totalBatches":0,"totalLinesSent":0,"store":`)
	writeStore(b, new(logql.Stats))
	b.Raw(`},"cache":`)
	f.writeCaches(b)
	b.Raw(`,"index":`)
	f.writeIndex(b)
	// The statement of cost.
	b.Raw(`,"shale":`)
	b.Buf = api.AppendCost(b.Buf, f.cost, model.Logs)
	b.Raw("}")
}

// writeStore writes the statistics of a store.
func writeStore(b *api.Body, s *logql.Stats) {
	b.Raw("{")
	writeMembers(b, []member{{"totalChunksRef", s.Pages}, {"totalChunksDownloaded", s.Read}, {"chunksDownloadTime", 0}})
	b.Raw(`"queryReferencedStructuredMetadata":false,"queryUsedV2Engine":false,"chunk":`)
	writeObject(b, []member{
		{"headChunkBytes", 0}, {"headChunkLines", 0}, {"decompressedBytes", s.Bytes}, {"decompressedLines", s.Lines},
		{"compressedBytes", s.BytesBucket}, {"totalDuplicates", s.Duplicates}, {"postFilterLines", s.Passed},
		{"headChunkStructuredMetadataBytes", 0}, {"decompressedStructuredMetadataBytes", s.MetadataBytes},
	})
	b.Raw(",")
	writeMembers(b, []member{{"chunkRefsFetchTime", 0}, {"congestionControlLatency", 0}, {"pipelineWrapperFilteredLines", 0}})
	b.Raw(`"dataobj":`)
	writeObject(b, []member{
		{"prePredicateDecompressedRows", 0}, {"prePredicateDecompressedBytes", 0}, {"prePredicateDecompressedStructuredMetadataBytes", 0},
		{"postPredicateRows", 0}, {"postPredicateDecompressedBytes", 0}, {"postPredicateStructuredMetadataBytes", 0}, {"postFilterRows", 0},
		{"pagesScanned", 0}, {"pagesDownloaded", 0}, {"pagesDownloadedBytes", 0}, {"pageBatches", 0}, {"totalRowsAvailable", 0},
		{"totalPageDownloadTime", 0},
	})
	b.Raw("}")
}

func (f *figures) writeCaches(b *api.Body) {
	separator := "{"
	for _, name := range [...]string{
		"chunk", "index", "result", "statsResult", "volumeResult", "seriesResult", "labelResult", "instantMetricResult", "logResult", "taskResult",
	} {
		b.Raw(separator)
		separator = ","
		b.Raw(`"`)
		b.Raw(name)
		b.Raw(`":`)
		var found, requested int64
		if name == "chunk" {
			found = f.PagesRAM
			requested = found + f.PagesDisk + f.PagesShared + f.PagesBucket
		}
		// Loki's clients read these two into 32 bits.
		writeObject(b, []member{
			{"entriesFound", min(found, math.MaxInt32)}, {"entriesRequested", min(requested, math.MaxInt32)}, {"entriesStored", 0},
			{"bytesReceived", 0}, {"bytesSent", 0}, {"requests", 0}, {"downloadTime", 0}, {"queryLengthServed", 0},
		})
	}
	b.Raw("}")
}

func (f *figures) writeIndex(b *api.Body) {
	b.Raw("{")
	writeMembers(b, []member{{"totalChunks", f.Pages}, {"postFilterChunks", f.Pages - f.Skipped}, {"shardsDuration", 0}})
	b.Raw(`"usedBloomFilters":`)
	b.Buf = strconv.AppendBool(b.Buf, f.Skipped > 0)
	b.Raw(",")
	writeMembers(b, []member{{"totalStreams", f.Streams}, {"chunkRefsLookupTime", 0}})
	b.Raw(`"bloomFilterTime":0}`)
}
