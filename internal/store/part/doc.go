// Package part is the file format of Shale: sorted, immutable files of series, their labels and their rows.
// Local files are called parts, and files in the bucket are called blocks; the bytes are the same.
//
// It is the face of the rooms below it: the writer, the reader, the merge, the full check, the dump, and the
// list of sections that a part is made of (families.go). Below it, each room knows only those after it:
//
//	text      lines of logs: units, their merge, and reading them through filters
//	samples   rows that are points: floats, histograms, exemplars
//	lines     the codec of log lines, and of the filters over them
//	series    keys, label sets, postings, masks of windows; selection by matchers
//	file      the container: pages, index, footer, whatever is in them
//	column    codecs of numbers
//
// A part never opens a file: it writes to an io.Writer and reads through [Pages]. Between two reads it keeps
// nothing except in the [Cache] that it is given. It knows nothing about journals, heads or buckets.
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
//	postings   by tenant, name and value: the ranges of ranks that have the label
//	samples    columns of the rows of consecutive ranks: floats and histograms
//	exemplars  columns of the rows of consecutive ranks
//	text       lines of logs, in units: a page of metadata, a page of lines, and a filter in a page of filters
//	windows    a mask for each series: the windows of time in which it has rows; only in blocks that want it
//
// The footer lists the index pages, and an index page lists pages. So opening a part of any size costs one
// read at its end. Finding a series costs an index page and a page of each section that is wanted; both are
// cached like any page.
//
// Rows are addressed by rank alone: there is one key column, and neither labels nor rows repeat it. Times and
// values are stored separately, because series that are scraped together share their times. Codecs are chosen
// by trying them, and all are exact. Histograms are taken apart into the same columns, one for each of their
// numbers.
//
// docs/format.md describes every byte. testdata/golden holds parts with the meaning of each of their bytes,
// as Dump shows them; a change there is a change of the format, which needs a new version.
package part
