// Package head is the recent past of the store: what has been acknowledged and is not yet in the bucket.
//
// It decides what becomes of applied rows and labels: flushing, merging, sorting into windows, and shipping
// closed windows as self-contained blocks through an interface that it declares. Its parts live in packages
// of their own:
//
//   - known: which series have durable labels
//   - rows, labels: buffers and sealed runs, in memory; both are sorted by keysort
//   - local: the folder with the part files and the manifest
//   - metadata: descriptions of metric families
//   - query: the read path
//
// The head never talks to a bucket and never acknowledges anything. After a crash, the journal and the local
// parts give back everything that it held, except for metric metadata of the last minute, which senders
// repeat.
//
// The path of a row: Apply appends it to the row buffer. A query or a flush seals the buffer into a run, in
// which the rows of each tenant are sorted when they are first read. A flush merges the runs into one young
// data part, and the labels that came with them into one label part. Merging sorts young parts into windows
// of sample time and one group of late rows. When a window has closed, its parts and the labels of their keys
// become a block. Samples and exemplars take the same path in separate columns. Values other than floats lie
// in blocks next to the columns and do not move until they are written to a part.
//
// # New series
//
// New series never hold back known ones. A series that finds the known set full stays unknown. Its labels
// come with every batch, are in the journal with the rows, and are written to the label store once per flush.
// Merging then leaves one set. [Head.Create] bounds how many series are created, for each tenant and
// in total, and so do the labels that wait for a flush. The rows of refused series are not taken, and their
// sender retries.
//
// Labels that wait for a flush are in the journal and in the label buffer, not in a file of their own:
// docs/adr/0008-no-label-file.md has the reasons.
//
// # Deletions
//
// A deletion is a control record of the journal. Apply seals the row buffer there, and from then on queries
// hide the rows below it. No flush, merge or ship joins rows from both sides of a deletion, so that the
// catalogue can tell by sequence numbers which blocks it concerns. The head tells the catalogue of a deletion
// before it ships anything, once. The manifest keeps deletions as long as the head has rows below them, and
// for a while longer, since the label store still knows series whose rows are gone.
//
// # Locks
//
// Locks are taken in this order:
//
//   - Head.merging: one merge or ship at a time
//   - Head.flushing: one flush at a time, also during a merge, since senders wait for it
//   - Head.edits: one change of the set of parts at a time
//   - Head.mu: buffers, runs, parts
//
// The locks of the known set, of the creation limits and of the metadata are leaves:
// no other lock is taken under them. A query holds no lock, but references to parts and runs; the goroutine
// that prefetches its series ends before they are released.
package head
