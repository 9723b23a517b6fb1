// Package selection finds the lines that a LogQL query selects and offers those that pass its stages to a
// [Sink].
//
// An [Execution] walks the range in slices, from the wanted end on. Of each slice it lays out the streams and
// chunks in pieces, which a crew of workers scans as tasks. A task asks the filter of a page whether the page
// can be skipped, prefetches and reads the remaining pages, and filters the lines of a whole page at once. It
// merges chunks that overlap, runs the stages on each line that passed, and offers the result. It never keeps
// a line and never decides what a result is: that is the sink's.
//
// # The contract of sinks
//
// [Sink.Bound] and [Sink.Limit] say what a sink still wants, so that pages, chunks and lines beyond it are
// not read. [Sink.Full] ends the scan between two slices. The list of the newest lines is a sink whose bound
// comes nearer with each line. It copies the lines that it keeps, and so takes a lock for each offer.
//
// A [Counter] makes numbers of lines. It wants all lines: its bound is the far end of the range, its limit is
// 0 and it is never full. Lines come in no order, and duplicates in overlapping chunks have been removed.
// Each worker of a scan has a [Worker] of it, which runs the stages itself. If the program counts whole
// lines, these come in bulk: by what a chunk knows of itself, by its times and lengths, or as the rows that
// a filter leaves. Else they come one at a time.
//
// An interface call per page, chunk or batch of rows costs nothing; one per line is made only for lines that
// have passed the filters. No sink is called per byte.
package selection
