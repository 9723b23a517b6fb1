package segment

import (
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Writer appends records to a file. After an error it can only be closed.
type Writer struct {
	file    vfs.File
	records *record.Writer
}

// Append adds a record, which Sync makes durable.
func (w *Writer) Append(text []byte) error {
	_, err := w.records.WriteRecord(text)
	return err
}

// Sync makes durable what was appended.
func (w *Writer) Sync() error { return w.file.SyncData() }

// Size returns the size of the file in bytes.
func (w *Writer) Size() int64 { return w.records.Size() }

// Close closes the file. What was not synced may be lost.
func (w *Writer) Close() error { return w.file.Close() }
