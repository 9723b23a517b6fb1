// Package journal encodes and decodes the records of a journal. A record is a batch as bytes, the same in
// every kind of journal.
//
// A journal is the durable, ordered log of admitted batches. Batches have consecutive sequence numbers from
// 1, and the head applies them in that order. The package owns the bytes of a record and nothing else: it
// never does I/O, never starts a goroutine and never parses labels. The packages below it store the records.
//
// docs/format-journal.md specifies the bytes.
package journal
