// Package local keeps the journal in files on the local disk: segments of framed records, written by group
// commit.
//
// It owns the folder of segments: their names, headers and frames, when they are synced, which records are
// valid after a crash or a failed write, and when segments are deleted. An append returns only when its
// record is on the disk and has been applied. The package never parses a record, never keeps rows in memory,
// and never edits a segment of an earlier run. docs/format-journal.md specifies the bytes and gives the
// reasons.
package local
