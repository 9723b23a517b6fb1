// Package journal holds what every journal of Shale has in common: the record, which is a batch as bytes.
//
// A journal is the durable, ordered log of admitted batches. Each gets a sequence number, from 1, one more each time,
// and the head applies them in that order. The package owns the bytes of a record and nothing else: it never does I/O,
// never starts a goroutine and never looks into labels. Where records are kept is the matter of the packages below it.
//
// docs/format-journal.md writes the bytes down.
package journal
