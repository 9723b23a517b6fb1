// Package part is the file format of Shale: sorted, immutable files of series, their labels and their rows. Local files
// are called parts, those in the bucket blocks; the bytes are the same.
//
// It owns every byte of such a file: pages, column codecs, page indexes, postings, footer; the writer, the reader, the
// merge, the full check and the dump. It never opens a file, keeps nothing between two reads but through a [Cache] that it is given, never
// starts a goroutine and knows nothing of journals, heads or buckets: it writes to an io.Writer and reads through [Pages].
//
//	+--------+------+------+-- ... --+------+--------+------+
//	| header | page | page |         | page | footer | tail |
//	+--------+------+------+-- ... --+------+--------+------+
//	    8                                                20
//
// A page is codec, length, payload, CRC-32C. There are seven sections of pages, and index pages for each:
//
//	keys       16 bytes a series, sorted, about 11 as stored; the position of a key is its rank
//	labels     canonical label sets by rank, each coded against the one before
//	postings   by tenant, name and value: which ranks have the label, as runs
//	samples    columns of the rows of consecutive ranks: floats and histograms
//	exemplars  columns of the rows of consecutive ranks
//	text       lines of logs, in units: a page of all but the lines, a page of lines, and a filter beside others
//	windows    a mask a series: in which windows of time it has rows at all; of blocks that want it
//
// The footer lists the index pages, an index page lists pages. So opening a part of any size costs one read at its end,
// and finding a series costs an index page and a page of each section that is wanted; both are pages like any other, and
// cached as such.
//
// Rows are addressed by rank alone: there is one key column, and neither labels nor rows repeat it. Times and values lie
// apart, because series that are scraped together share their times. Codecs are chosen for each run of values by trying,
// and all are exact. Histograms are taken apart into the same columns, a number of theirs being one.
//
// Lines are taken apart into the text that they share and columns of the values in it. A unit of lines of one series is
// compressed once and then copied from part to part, as long as nothing comes between. Its filter rules out substrings.
//
// docs/format.md describes every byte. testdata/golden holds parts with the meaning of each of their bytes, as Dump shows
// them; a change there is a change of the format, which needs a new version.
package part
