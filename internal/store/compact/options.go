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
	"github.com/shaledb/shale/internal/store/retention"
)

// Catalog is the part of the catalogue that compaction needs.
type Catalog interface {
	// Refresh reads all records that were committed before the call.
	Refresh(ctx context.Context) error
	// Snapshot returns the visible blocks and all deletions at one moment.
	Snapshot() ([]catalog.Block, catalog.Deletions)
	// State returns the visible blocks, all rollups and all deletions at one moment.
	State() catalog.State
	// AddRollups makes rollups of a base visible, and others of it invisible, atomically.
	AddRollups(ctx context.Context, base string, old []string, blocks []catalog.Block) error
	// RewriteAlone puts blocks in the place of a block of rollups that is alone, atomically.
	RewriteAlone(ctx context.Context, old string, blocks []catalog.Block) error
	// MarkUnrolled notes blocks of which no rollups are made.
	MarkUnrolled(ctx context.Context, blocks []catalog.UnrolledBlock) error
	// Uploading announces the uploads of objects of blocks, which no collection deletes until done is called.
	Uploading(ctx context.Context, ids ...string) (done func(), err error)
	// Replace makes blocks visible and their inputs invisible, atomically.
	Replace(ctx context.Context, inputs []string, blocks []catalog.Block) error
	// MarkClean notes blocks in which no deletion up to a generation hides any row.
	MarkClean(ctx context.Context, blocks []catalog.CleanBlock) error
	// Collect deletes garbage.
	Collect(ctx context.Context, o catalog.CollectOptions) (catalog.Collected, error)
}

// Bucket is the part of the bucket that compaction needs. Errors are of the classes of package model;
// compaction retries those of class transient.
type Bucket interface {
	// GetRange returns n bytes of an object from off. The bytes are the caller's.
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
	// Put writes an object of exactly size bytes from r.
	Put(ctx context.Context, name string, r io.Reader, size int64) error
}

// Limits bound the load that compaction puts on the machine. The tags make the fields settings: see package
// config.
type Limits struct {
	// BytesPerSecond bounds the bytes read and written together; 0: no bound.
	BytesPerSecond int64 `name:"store.compact-bytes-per-second" type:"size" default:"0" placeholder:"SIZE" min:"0" help:"Most bytes per second that compaction reads and writes. 0: no limit."`
}

// Options configure a Compactor. A zero value means the default in parentheses.
type Options struct {
	Catalog Catalog
	Bucket  Bucket
	// FS and Dir name the folder of blocks that are not uploaded yet. No other process may use the folder; its
	// content is deleted at the start.
	FS   vfs.FS
	Dir  string
	Seed model.KeySeed
	// Retention divides the series of days that are over into groups, and drops expired rows. It is asked
	// at the start of each merge. Nil keeps all rows.
	Retention func() *retention.Rules
	// Rollups says of which series rollups are made. It is asked at the start of each run. Nil: none are made.
	Rollups func() *Rollups
	// Plain writes nothing that programs of before trees of names and rollups refuse. Rows wait for rollups
	// until a process makes them.
	Plain bool
	// Workers is how many goroutines code the lines of a block at one time at most; 0: as many as Go has
	// threads.
	Workers int

	// Interval is the pause between runs (5 min).
	Interval time.Duration
	// Grace is how long after the end of a UTC day its blocks are merged (1 h).
	Grace time.Duration
	// MaxBlockBytes is the size at which a block is cut (1 GiB). The rest of a tenant's postings may exceed it.
	MaxBlockBytes int64
	// BigTenantShare is the share of MaxBlockBytes above which a tenant gets blocks of its own (0.25).
	BigTenantShare float64
	Limits
	// MemoryBytes bounds the memory of a merge for its inputs, half of which goes to the windows through which
	// they are read (64 MiB). The blocks being written may take as much again, by an estimate. A merge of more
	// days makes several passes over its inputs. One day of one tenant may take more. Garbage is not counted.
	MemoryBytes int64
	// MaxInputs bounds the inputs of a merge (64). MaxFresh bounds the blocks that wait for the end of their
	// day: beyond it, some are joined early (64).
	MaxInputs, MaxFresh int
	// MaxMerges ends a long run, so that garbage is collected in between (256).
	MaxMerges int
	// Predict returns the blocks that the rows of the inputs in an interval would make. Merges then upload the
	// bodies that it returns, and read no rows: for simulations, whose blocks are too large to write. Nil: rows
	// are merged.
	Predict func(ctx context.Context, inputs []catalog.Block, within model.TimeRange) ([]Prediction, error)
	// Fresh, unless it is nil, is told of each block that was uploaded, with its file, which is deleted later.
	Fresh func(ctx context.Context, b *catalog.Block, file io.ReaderAt)
	// Room reserves room for that many bytes in Dir until release is called, or returns an error of class
	// transient. A nil Room means enough room.
	Room func(bytes int64) (release func(), err error)
	// Garbage defines what a run collects at its end (5 min, 24 h, 24 h; it searches for uploads once an hour).
	Garbage catalog.CollectOptions

	// Now returns the time in Unix nanoseconds; nil means the clock of the machine.
	Now        func() int64
	Registerer prometheus.Registerer
	Logger     *slog.Logger

	// maxSeries and firstPause default to maxBlockSeries and firstPause; tests make them small.
	maxSeries  int
	firstPause time.Duration
}

const (
	// maxBlockSeries bounds the series of a block, so that any set of them is at most a 2 MB bitmap.
	maxBlockSeries = 1 << 24
	// maxMergeTime bounds the time of a merge. The graces of deletions and uploads are longer.
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
	set(&o.MaxMerges, 256)
	set(&o.Garbage.Grace, 5*time.Minute)
	set(&o.Garbage.UploadGrace, 24*time.Hour)
	set(&o.Garbage.UploadSearch, time.Hour)
	set(&o.Garbage.DeletionGrace, 24*time.Hour)
	set(&o.maxSeries, maxBlockSeries)
	set(&o.firstPause, firstPause)
	if o.Room == nil {
		o.Room = func(int64) (func(), error) { return func() {}, nil }
	}
	if o.Retention == nil {
		o.Retention = func() *retention.Rules { return nil }
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Interval < 0 || o.Grace < 0 || o.Grace > day:
		return fmt.Errorf("%w: compaction: expected an interval of at least 0 and a grace of 0 to 24h, got %s and %s", model.ErrInvalid, o.Interval, o.Grace)
	case o.MaxBlockBytes < minBytes || o.BytesPerSecond < 0 || o.MemoryBytes < minBytes:
		return fmt.Errorf("%w: compaction: expected blocks and memory of at least %d bytes and a rate of at least 0, got %d, %d and %d", model.ErrInvalid, minBytes, o.MaxBlockBytes, o.MemoryBytes, o.BytesPerSecond)
	case o.BigTenantShare < 0 || o.BigTenantShare > 1:
		return fmt.Errorf("%w: compaction: expected a tenant share from 0 to 1, got %g", model.ErrInvalid, o.BigTenantShare)
	case o.MaxInputs < 2 || o.MaxFresh < 1 || o.MaxMerges < 1:
		return fmt.Errorf("%w: compaction: expected at least 2 inputs, 1 waiting block and 1 merge, got %d, %d and %d", model.ErrInvalid, o.MaxInputs, o.MaxFresh, o.MaxMerges)
	case o.Garbage.UploadGrace <= maxMergeTime || o.Garbage.DeletionGrace <= maxMergeTime:
		return fmt.Errorf("%w: compaction: the graces of uploads and deletions must exceed %s, the longest merge", model.ErrInvalid, maxMergeTime)
	}
	return nil
}

func set[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
