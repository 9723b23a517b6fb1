package head

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/head/metadata"
	"github.com/shaledb/shale/internal/store/part"
)

// Options build a Head. Zero values of sizes and times take the defaults that are named.
type Options struct {
	FS   vfs.FS
	Dir  string
	Seed model.KeySeed
	// Node names the journal in parts and blocks: this process, or a partition of a journal that several share.
	Node string
	// Epoch is that of the journal; 0: the time at which the folder is made.
	Epoch uint64

	// KnownBytes bounds the known set, RowBytes the rows that are in no part yet, LabelBytes the label sets
	// that are in no part yet (64 MiB each). Sorting copies rows, so they take twice as much for a moment. It
	// does not copy lines and histograms, which may take 2 RowBytes.
	KnownBytes, RowBytes, LabelBytes int64
	Limits
	Windows

	// TenantLimits returns the limits of a tenant; nil: Limits.Tenant. It is called for each batch with new
	// series.
	TenantLimits func(tenant string) TenantLimits

	// Plain makes blocks that programs of before trees of names read.
	Plain bool
	// Workers is how many goroutines code the lines of a part at one time at most; 0: as many as Go has threads.
	Workers int

	// FlushEvery is the age at which buffered rows go to a part (10 s).
	FlushEvery time.Duration
	// MaxFuture is how far in the future samples may be. The write path enforces it.
	MaxFuture time.Duration
	// WindowBytes is the size at which a window is shipped before it closes (1 GiB).
	WindowBytes int64
	// LateBytes is the size at which late rows are shipped before they reach their LateAge (64 MiB).
	LateBytes int64
	// Linger is how long queries see rows that have been shipped (0).
	Linger time.Duration
	// IdleAfter is how long a series without new rows stays in the known set (3 h).
	IdleAfter time.Duration
	// KeepStale makes a series stay as long after a stale marker as after any row. It is for journals whose
	// writers decide by themselves which labels they send again.
	KeepStale bool

	// Truncate tells the journal that batches up to a sequence number are in parts.
	Truncate func(covered uint64) error
	Shipper  Shipper
	// ShipsRest reports whether the background ships nothing now, and goes on with merges; nil: it always ships.
	ShipsRest func() bool
	// Deleter is told of deletions before anything is shipped; nil: of none.
	Deleter Deleter
	// FencesOnly says that deletions keep rows of both sides apart, and queries say which of them hide rows.
	FencesOnly bool
	// Filters compiles the filters of deletions.
	Filters deletion.Compiler
	// Space is asked before merges and ships write; nil: no bound.
	Space Space
	// BucketApart says that objects of the bucket take none of that space.
	BucketApart bool
	// LabelsLost reports whether labels of series were in a part that was set aside. Then ships leave out
	// series without labels. nil: never.
	LabelsLost func() bool
	// SetAside is called after the head has set files aside.
	SetAside func()
	// Edited is called each time that queries see another set of parts; nil: none is called. It must not
	// wait. The rows are the same, and labels of series without rows may have gone.
	Edited func()
	// Changes is told of changes once queries see them. It may be nil.
	Changes Changes
	// Now gives the time in Unix nanoseconds; nil means the machine's clock.
	Now        func() int64
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Changes is told of changes of the rows that queries see, before they are acknowledged.
type Changes interface {
	// Applied says that queries see the rows of a batch. It must not keep the batch.
	Applied(b *model.Batch)
	// Range says that rows of a signal in a range have come or gone. has says whether that concerns a tenant.
	Range(s model.Signal, r model.TimeRange, has func(tenant string) bool)
}

// Limits bound what tenants may create. Zero values take the defaults that are named. The tags make the
// fields settings: see package config.
type Limits struct {
	// NewSeries bounds the series per second that all tenants together may create (no limit).
	NewSeries int64 `name:"limits.new-series" type:"count" default:"0" placeholder:"N" min:"0" help:"Most series that all tenants together may create per second, with a burst of one minute's worth. Known series are not held back. 0: as many as the disk takes."`
	// Tenant bounds each tenant, unless Options.TenantLimits is set.
	Tenant TenantLimits `embed:""`
	// Metadata bounds the descriptions of metric families.
	Metadata metadata.Limits `embed:""`
	// Tenants bounds the tenants (65,535, which is also the most there can be).
	Tenants int `name:"limits.tenants" type:"count" default:"10000" placeholder:"N" min:"1" max:"65535" help:"Most tenants. Writes of further tenants are refused."`
	// Deletion bounds deletions. The head carries them out whatever their number; app refuses further ones.
	Deletion deletion.Limits `embed:""`
}

// TenantLimits bound what one tenant may create. Zero means no limit.
type TenantLimits struct {
	// NewSeries bounds the series per second.
	NewSeries int64 `name:"limits.tenant-new-series" tenant:"own" type:"count" default:"0" placeholder:"N" min:"0" help:"Most series that each tenant may create per second, with a burst of one minute's worth. Known series are not held back. 0: as many as the disk takes."`
	// Series bounds the active ones: those in the known set. Series that requests in flight create may come on
	// top.
	Series int64 `name:"limits.tenant-series" tenant:"own" type:"count" default:"0" placeholder:"N" min:"0" help:"Most active series of each tenant, metrics and log streams together. Known series are not held back. 0: nine tenths of what the known set has room for, while other tenants have series."`
}

// Windows define when rows become blocks. The tags make the fields settings: see package config.
type Windows struct {
	// Window is the interval of sample time of a block (2 h).
	Window time.Duration `name:"store.window" type:"time" default:"2h" placeholder:"TIME" min:"1m" help:"Interval of sample time that one block covers; it must divide 24h. A shorter window ships data earlier, and makes more blocks until their day is compacted."`
	// Grace is how long after its end a window still takes rows (10 min).
	Grace time.Duration `name:"store.grace" type:"time" default:"10m" placeholder:"TIME" min:"1s" max:"1d" help:"How long a window accepts samples after its end, before its block is made."`
	// LateAge is the age at which late rows are shipped (1 h).
	LateAge time.Duration `name:"store.late-age" type:"time" default:"1h" placeholder:"TIME" min:"1m" help:"Age at which samples that arrived after the block of their window are written to a block of their own."`
}

// maxPeakBytes bounds the memory of buffered rows while they are being sorted, which copies their columns.
func (o *Options) maxPeakBytes() int64 { return 2 * o.RowBytes }

// Shipper takes finished blocks to the bucket.
type Shipper interface {
	// Ship makes the blocks durable in the bucket and then visible in the catalogue, all of them at once. The
	// files are complete and synced and stay until Ship has returned. It may be called more than once for a
	// block, each time with other blocks next to it.
	Ship(ctx context.Context, s *Ship) error
}

// Ship is what goes to the bucket at once.
type Ship struct {
	// Node and Epoch name the journal of the head.
	Node  string
	Epoch uint64
	// Blocks are of both signals. No two of them have rows of one series and time.
	Blocks []Block
	// Covered is a sequence number: the rows of all batches up to it are in parts, or in blocks. Batches that
	// were in the journal before Flushed, in Unix nanoseconds, are among them. Both are 0 if unknown.
	Covered uint64
	Flushed int64
	// Rest says that rows of those batches are in no block yet, but in parts that a later ship takes.
	Rest bool
}

// Block is a finished block on its way to the bucket.
type Block struct {
	Meta           part.Meta
	KeyMin, KeyMax model.Key
	// Cut numbers the blocks of one group in a ship, which are cut by their number of series.
	Cut  int
	File string
	Size int64
}

func (o *Options) setDefaults() {
	size := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	span := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	size(&o.KnownBytes, 64<<20)
	size(&o.RowBytes, 64<<20)
	size(&o.LabelBytes, 64<<20)
	size(&o.Metadata.TenantBytes, 4<<20)
	size(&o.Metadata.Bytes, 16<<20)
	if o.Metadata.Families == 0 {
		o.Metadata.Families = 10_000
	}
	size(&o.WindowBytes, 1<<30)
	size(&o.LateBytes, 64<<20)
	span(&o.FlushEvery, 10*time.Second)
	span(&o.Window, 2*time.Hour)
	span(&o.Grace, 10*time.Minute)
	span(&o.LateAge, time.Hour)
	span(&o.IdleAfter, 3*time.Hour)
	// Each future window may be a part that is being written. Samples beyond the limit go to the late group.
	o.MaxFuture = min(o.MaxFuture, 24*time.Hour)
	if o.Truncate == nil {
		o.Truncate = func(uint64) error { return nil }
	}
	if o.Space == nil {
		o.Space = endless{}
	}
	if o.LabelsLost == nil {
		o.LabelsLost = func() bool { return false }
	}
	if o.SetAside == nil {
		o.SetAside = func() {}
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}
