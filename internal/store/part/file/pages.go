package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

// Addr is the address of a page in its file. Len is the length of the stored page with its envelope.
type Addr struct {
	Off int64
	Len uint32
}

func (a Addr) end() int64 { return a.Off + int64(a.Len) }

// Pages returns the decoded pages of one file: checksum verified, decompressed. What it returns is never
// changed and may be shared. It is called by many goroutines at once.
type Pages interface {
	Page(ctx context.Context, a Addr) ([]byte, error)
}

// Fetcher is what [Pages] may be as well: pages that are far away can be fetched in parallel, and neighbours
// with one request, if it is known which ones will be read.
type Fetcher interface {
	// Fetch announces pages that will be read, in about this order. It does not wait, never fails, and keeps
	// pages.
	Fetch(ctx context.Context, pages []Addr)
}

// Prefetcher is what [Pages] may be instead of a [Fetcher]: a file of this machine, which the kernel reads
// ahead. It is told of pages of text only. These are large, and a query waits for each of them. To find out
// which other pages will be read takes as long as to read them from memory, where they mostly are.
type Prefetcher interface {
	// Prefetch announces pages that will be read. It never fails.
	Prefetch(pages []Addr)
}

// ListKey names what a query has found, in the page at Off or, if that is 0, in the whole file. Query names
// the query: it is a digest of all that the result depends on.
type ListKey struct {
	Off   int64
	Query [16]byte
}

// Lists is what [Pages] may be as well: a cache for what matchers and text filters have found in the part. A
// part never changes, so a dashboard that repeats its query need not look at a million values, or at the
// filters of all units, a second time.
type Lists interface {
	// List returns what find has returned for the key, now or earlier. Errors are not kept. It must not be
	// changed.
	List(ctx context.Context, k ListKey, find func(context.Context) ([]byte, error)) ([]byte, error)
	// Kept returns the list of a key if the cache has it.
	Kept(k ListKey) ([]byte, bool)
}

// Decoder returns the payload of a stored page, or a part of it.
type Decoder = func(stored []byte) ([]byte, error)

// Fetch reads a page and has it decoded. It is called by many goroutines at once.
type Fetch func(ctx context.Context, a Addr, decode Decoder) ([]byte, error)

// ReadRange reads exactly n bytes at an offset of a file or an object.
type ReadRange func(ctx context.Context, off, n int64) ([]byte, error)

// RangeOf makes a [ReadRange] of a file.
func RangeOf(r io.ReaderAt) ReadRange {
	return func(ctx context.Context, off, n int64) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return readFull(r, off, n)
	}
}

// FetchFile reads pages of a file. The counter, unless it is nil, counts them.
func FetchFile(r io.ReaderAt, c *atomic.Int64) Fetch {
	return func(ctx context.Context, a Addr, decode Decoder) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if a.Len > MaxPageBytes+envelopeMax {
			return nil, column.Corrupt("page at %d: stored length %d out of bounds", a.Off, a.Len)
		}
		stored, err := readFull(r, a.Off, int64(a.Len))
		if err != nil {
			return nil, err
		}
		if c != nil {
			c.Add(1)
		}
		payload, err := decode(stored)
		if err != nil {
			return nil, fmt.Errorf("at %d: %w", a.Off, err)
		}
		return payload, nil
	}
}

func readFull(r io.ReaderAt, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	got, err := r.ReadAt(b, off)
	switch {
	case int64(got) == n:
		return b, nil
	case errors.Is(err, io.EOF):
		return nil, column.Corrupt("file ends at %d, inside [%d, %d)", off+int64(got), off, off+n)
	}
	return nil, fmt.Errorf("%w: part: read [%d, %d): %w", model.ErrTransient, off, off+n, err)
}
