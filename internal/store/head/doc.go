// Package head is the recent past of the store: what has been acknowledged and is not yet in the bucket.
//
// It owns the known set (which series have durable labels), the row buffers, the label store, the local parts with
// their manifest, their merging into windows, the descriptions of metric families, and the shipping of closed windows as
// self-contained blocks, through an interface that it declares. It never talks to a bucket, never acknowledges anything,
// and holds nothing that the journal and the local parts could not give back after a crash, but for descriptions of the
// last minute, which senders repeat.
//
// The way of a row: Apply puts it into the active buffer; a query or a flush seals the buffer into a sorted run; a
// flush merges the runs into one young data part, and the labels that came with them into one label part; merging
// sorts young parts into windows of sample time and one late group; when a window has closed, its parts and the labels
// of their keys become a block. Samples and exemplars go this way side by side, in columns of their own. Values that are no
// float lie in blocks beside the columns and are not moved until they are written to a part.
//
// # New series
//
// A series that is known is never held back because of others that are new. Series that find the known set full of
// active ones stay unknown: their labels travel with every batch, are in the journal with the rows, and once a flush in
// the label store, where merging leaves one set. How many are created is bounded by [Head.Create], for each tenant and in
// total, and by the labels that wait for a flush; the rows of what is put off are not taken, and their sender
// comes again.
//
// Labels that wait in a file of their own until there is time for them were thought of, so that rows of a storm of new
// series could be acknowledged at once. There is no such file, for it would hold a third copy of what the journal and the
// label buffer hold already, and queries would have to search it, since what is acknowledged must be found. What it could
// put off is sorting labels and writing them into parts, which BenchmarkNewSeries measures at one to two microseconds of a
// core for a series with 600 bytes of labels; taking them in and making them durable, which cannot be put off, costs more. So the
// journal is the file in which labels wait, and its bound is the label buffer.
//
// # Locks
//
// In this order: Head.merging (one merge or ship at a time), Head.flushing (one flush at a time, also beside a merge,
// since senders wait for it), Head.edits (one change of the set of parts at a time), Head.mu (buffers, runs, parts). The
// locks of the known set, of the limits of creation and of the metadata stand alone. A query has no lock: it holds references to parts
// and runs, and a goroutine that finds many series ahead ends before these are given up.
package head
