// Package local is the journal in files of one machine: segments of framed records, written by group commit.
//
// It owns the folder of segments: their names, their headers and frames, when they are synced, what of them counts after
// a crash or a failed write, and when they go. An append returns only when its record is on the disk and has been
// applied. The package never looks into a record, never keeps rows in memory, and never edits a segment that it did not
// begin itself. docs/format-journal.md writes the bytes down and says why they are so.
package local
