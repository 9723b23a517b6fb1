// Package head is the recent past of the store: what has been acknowledged and is not yet in the bucket.
//
// It owns the known set (which series have durable labels), the row buffers, the label store, the local parts with
// their manifest, their merging into windows, and the shipping of closed windows as self-contained blocks, through an
// interface that it declares. It never talks to a bucket, never acknowledges anything, and holds nothing that the
// journal and the local parts could not give back after a crash.
//
// The way of a row: Apply puts it into the active buffer; a query or a flush seals the buffer into a sorted run; a
// flush merges the runs into one young data part, and the labels that came with them into one label part; merging
// sorts young parts into windows of sample time and one late group; when a window has closed, its parts and the labels
// of their keys become a block.
//
// Order of locks: Head.merging (one merge or ship at a time), Head.flushing (one flush at a time, also beside a merge,
// since senders wait for it), Head.edits (one change of the set of parts at a time), Head.mu (buffers, runs, parts). The
// known set's locks stand alone.
package head
