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
// A range aggregation is a sink that wants all lines: its bound is the far end of the range, its limit is 0
// and it is never full. Offers then come in no order, and duplicates in overlapping chunks have been removed.
// To add one:
//
//   - Keep a partial result per worker and add them up at the end, since a lock for each line would
//     serialise the workers. To allow this, add an optional interface, Worker() Sink, that a crew asks
//     once per worker.
//   - count_over_time and rate of a plain selector need times only. They can do without stages, and
//     without the lines of single chunks. To allow this, add an optional interface that takes the times of a
//     decoded chunk in one call.
//   - With line filters (rate({..} |= "x")) a sink needs the times of the rows that a filter leaves: the
//     same call, with the selection of rows. No stage runs, unless a grouping asks for parsed labels.
//   - bytes_over_time needs lengths of lines, which are in the offsets of a decoded chunk.
//   - unwrap and groupings by parsed labels need each line after its stages, as Offer gives it. The stages
//     of such a query leave out all other labels: see line.Pipeline.Needing.
//   - Statistics of chunks alone give counts and bytes of chunks that lie within one step of the query.
//     That is decided before a chunk is read: a sink that takes a chunk as a whole keeps it from being
//     scanned. Chunks that overlap others must be scanned, since the same line may be in both.
//
// An interface call per page, chunk or batch of rows costs nothing; one per line is made only for lines that
// have passed the filters. No sink is called per byte.
package selection
