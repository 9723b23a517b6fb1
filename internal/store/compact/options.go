package compact

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// Catalog is what compaction needs of the catalogue.
type Catalog interface {
	// Refresh learns what was committed before it was called.
	Refresh(ctx context.Context) error
	// Snapshot returns the visible blocks and all deletions of one moment.
	Snapshot() ([]catalog.Block, catalog.Deletions)
	// Uploading keeps an object that no record holds yet from being collected.
	Uploading(id string) (done func())
	// Replace makes blocks visible and their inputs invisible, at once.
	Replace(ctx context.Context, inputs []string, blocks []catalog.Block) error
	// Collect deletes garbage.
	Collect(ctx context.Context, o catalog.CollectOptions) (catalog.Collected, error)
}

// Bucket is what compaction needs of the bucket. Errors are of the classes of package model; those of class transient
// are tried again.
type Bucket interface {
	// GetRange returns n bytes of an object from off. The bytes are the caller's.
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
	// Put makes an object of exactly size bytes of r.
	Put(ctx context.Context, name string, r io.Reader, size int64) error
}

// Options build a Compactor. Zero values take the defaults that are named.
type Options struct {
	Catalog Catalog
	Bucket  Bucket
	// FS and Dir are where a block lies until it is uploaded. The folder is this compactor's alone; what is in it is
	// deleted at the start.
	FS   vfs.FS
	Dir  string
	Seed model.KeySeed

	// Interval is the pause between runs (5 min).
	Interval time.Duration
	// Grace is how long after the end of a UTC day its blocks are merged (1 h).
	Grace time.Duration
	// MaxBlockBytes is the size at which a block is cut (1 GiB). The end of a tenant's postings may come on top.
	MaxBlockBytes int64
	// BigTenantShare is the share of MaxBlockBytes from which on a tenant gets blocks of its own (0.25).
	BigTenantShare float64
	// BytesPerSecond bounds what is read and written together; 0: no bound.
	BytesPerSecond int64
	// MemoryBytes bounds what a merge holds of its inputs, half of it for the windows through which these are read, and,
	// as much again, what the blocks that are being written take, by an estimate (64 MiB). A merge for whose days that is
	// too little writes them in several passes over its inputs. One day of one tenant may take more; garbage comes on top.
	MemoryBytes int64
	// MaxInputs bounds the blocks that are merged at one time (64), MaxFresh those that wait for the end of their day
	// before some are joined already (64).
	MaxInputs, MaxFresh int
	// Room returns an error of class transient unless there is room for so many bytes in Dir; nil: there is.
	Room func(bytes int64) error
	// Garbage says what is collected after a run: (5 min, 24 h, 24 h).
	Garbage catalog.CollectOptions

	// Now gives the time in Unix nanoseconds; nil means the machine's clock.
	Now        func() int64
	Registerer prometheus.Registerer
	Logger     *slog.Logger

	// maxSeries and firstPause are the constants of these names; tests make them small.
	maxSeries  int
	firstPause time.Duration
}

const (
	// maxBlockSeries bounds the series of a block, so that any set of them is at most a 2 MB bitmap.
	maxBlockSeries = 1 << 24
	// maxMergeTime ends a merge that takes longer. Deletions and uploads stay longer than that.
	maxMergeTime = 12 * time.Hour
	minBytes     = 1 << 10
)

func (o *Options) setDefaults() error {
	set(&o.Interval, 5*time.Minute)
	set(&o.Grace, time.Hour)
	set(&o.MaxBlockBytes, 1<<30)
	set(&o.BigTenantShare, 0.25)
	set(&o.MemoryBytes, 64<<20)
	set(&o.MaxInputs, 64)
	set(&o.MaxFresh, 64)
	set(&o.Garbage.Grace, 5*time.Minute)
	set(&o.Garbage.UploadGrace, 24*time.Hour)
	set(&o.Garbage.DeletionGrace, 24*time.Hour)
	set(&o.maxSeries, maxBlockSeries)
	set(&o.firstPause, firstPause)
	if o.Room == nil {
		o.Room = func(int64) error { return nil }
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Interval < 0 || o.Grace < 0 || o.Grace > day:
		return fmt.Errorf("%w: compaction: interval %s, grace %s", model.ErrInvalid, o.Interval, o.Grace)
	case o.MaxBlockBytes < minBytes || o.BytesPerSecond < 0 || o.MemoryBytes < minBytes:
		return fmt.Errorf("%w: compaction: blocks of %d bytes, %d bytes a second, %d bytes of memory", model.ErrInvalid, o.MaxBlockBytes, o.BytesPerSecond, o.MemoryBytes)
	case o.BigTenantShare < 0 || o.BigTenantShare > 1:
		return fmt.Errorf("%w: compaction: a share of %g", model.ErrInvalid, o.BigTenantShare)
	case o.MaxInputs < 2 || o.MaxFresh < 1:
		return fmt.Errorf("%w: compaction: merges of %d blocks, of %d that wait", model.ErrInvalid, o.MaxInputs, o.MaxFresh)
	case o.Garbage.UploadGrace <= maxMergeTime || o.Garbage.DeletionGrace <= maxMergeTime:
		return fmt.Errorf("%w: compaction: uploads and deletions must stay longer than a merge may take, %s", model.ErrInvalid, maxMergeTime)
	}
	return nil
}

func set[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
