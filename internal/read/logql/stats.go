package logql

import (
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/selection"
)

// Stats are the figures of one query: what Loki's object "stats" tells, as far as there is such a thing here.
type Stats struct {
	// Exec is how long the query ran.
	Exec time.Duration
	// Lines and Bytes are what the stages have looked at: lines within the range of pages that were not skipped.
	Lines, Bytes int64
	// MetadataBytes are those of the names and values of the structured metadata that was looked at: of the
	// lines that pass the leading line filters.
	MetadataBytes int64
	// Passed counts the lines that passed all filters, those beyond the limit included as far as they were
	// looked at.
	Passed int64
	// Duplicates counts lines that were found in several places and count once.
	Duplicates int64
	// Entries is how many lines or values are in the result.
	Entries int64
	// Streams is how many streams the selector found, in that part of the range that was asked for in one
	// piece and had most. Of a metric query it is the sum over its range aggregations, and over the pieces in
	// which they were evaluated.
	Streams int64
	// Pages counts the pages of lines within the selector and the range that was looked up, Skipped those
	// whose filter said that they have no such line, and Read those that were read. The others could not
	// change the answer. A page on the border of two parts of the range counts in both.
	Pages, Skipped, Read int64
	// Selections is how many parts of the range were asked for one after the other.
	Selections int64
	// Head and Blocks are how many buffers and local parts, and blocks of the bucket, were looked at;
	// PagesRAM, PagesDisk, PagesShared and PagesBucket from where pages of all kinds came; BytesBucket and
	// Requests what was asked of the bucket.
	Head, Blocks          int64
	PagesRAM, PagesDisk   int64
	PagesShared           int64
	PagesBucket           int64
	BytesBucket, Requests int64
}

// add adds the figures of an execution.
func (s *Stats) add(f selection.Figures) {
	s.Lines += f.Lines
	s.Bytes += f.Bytes
	s.MetadataBytes += f.MetadataBytes
	s.Passed += f.Passed
	s.Duplicates += f.Duplicates
	s.Read += f.PagesRead
	s.Selections += f.Selections
	s.Streams += f.Streams
}

// addCosts adds what a statement of cost, which may be shared with other queries, says more than before.
func (s *Stats) addCosts(now, before costs) {
	s.Pages += now.pages - before.pages
	s.Skipped += now.skipped - before.skipped
	s.Head += now.head - before.head
	s.Blocks += now.blocks - before.blocks
	s.PagesRAM += now.ram - before.ram
	s.PagesDisk += now.disk - before.disk
	s.PagesShared += now.shared - before.shared
	s.PagesBucket += now.bucket - before.bucket
	s.BytesBucket += now.bytes - before.bytes
	s.Requests += now.requests - before.requests
}

// costs is what a statement of cost says at one moment.
type costs struct {
	pages, skipped, head, blocks, ram, disk, shared, bucket, bytes, requests int64
}

func costsOf(c *model.Cost) costs {
	return costs{
		pages: c.TextPages.Load(), skipped: c.TextPagesSkipped.Load(),
		head: c.HeadBuffers.Load() + c.HeadParts.Load(), blocks: c.Blocks.Load(),
		ram: c.PagesRAM.Load(), disk: c.PagesDisk.Load(), shared: c.PagesShared.Load(), bucket: c.PagesBucket.Load(),
		bytes: c.BytesBucket.Load(), requests: c.BucketRequests.Load(),
	}
}
