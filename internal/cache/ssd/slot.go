package ssd

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// slot is the place of one segment: a file that is written over by one segment after the other.
type slot struct {
	file       atomic.Pointer[file]
	generation atomic.Uint64 // 0: the slot is free
	begun      time.Time     // when this process began the segment; zero: another one did
}

// file is an open file that closes when the last that reads it has released it. A slot itself holds it once.
type file struct {
	vfs.File
	holders atomic.Int64
}

func hold(f vfs.File) *file {
	open := &file{File: f}
	open.holders.Store(1)
	return open
}

// acquire returns the file of the slot, or nil if it has none. The caller releases it.
func (s *slot) acquire() *file {
	f := s.file.Load()
	for f != nil {
		n := f.holders.Load()
		if n == 0 {
			return nil
		}
		if f.holders.CompareAndSwap(n, n+1) {
			return f
		}
	}
	return nil
}

func (f *file) release() {
	if f.holders.Add(-1) == 0 {
		_ = f.Close() // nothing depends on what it would still write
	}
}

// forget lets go of the file. Reads that have begun go on.
func (s *slot) forget() {
	s.generation.Store(0)
	if f := s.file.Swap(nil); f != nil {
		f.release()
	}
}

// readFull fills b from an offset. A file that ends before is damage and not an error of the disk.
func readFull(f io.ReaderAt, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return corrupt("the segment is truncated: %d of %d bytes at offset %d", n, len(b), off)
	}
	return err
}
