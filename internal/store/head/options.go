package head

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// Options build a Head. Zero values of sizes and times take the defaults that are named.
type Options struct {
	FS   vfs.FS
	Dir  string
	Seed model.KeySeed
	// Node names this process in parts and blocks.
	Node string

	// KnownBytes bounds the known set, RowBytes the rows that are in no part yet, LabelBytes the label sets that are in no
	// part yet (64 MiB each). Rows take as much again while they are being sorted, but for lines and histograms, of which there
	// may be twice as many bytes.
	KnownBytes, RowBytes, LabelBytes int64
	// MaxTenants bounds the tenants (65,535, which is also the most there can be).
	MaxTenants int
	// Creation bounds how fast series of all tenants together are created, TenantCreation those of each tenant (no limit).
	Creation, TenantCreation CreationLimit
	// MetadataFamilies bounds the metric families that a tenant may describe (10,000), MetadataTenantBytes their
	// descriptions (4 MiB), MetadataBytes those of all tenants (16 MiB).
	MetadataFamilies                   int
	MetadataTenantBytes, MetadataBytes int64

	// FlushEvery is the age at which buffered rows go to a part (10 s).
	FlushEvery time.Duration
	// Window is the span of sample time of a block (2 h); Grace is how long after its end a window takes rows (10 min).
	Window, Grace time.Duration
	// MaxFuture is how far ahead of now samples may lie, as the write path enforces it.
	MaxFuture time.Duration
	// WindowBytes is the size at which a window is shipped before it closes (1 GiB).
	WindowBytes int64
	// Late rows are shipped when they have LateBytes (64 MiB) or are older than LateAge (1 h).
	LateBytes int64
	LateAge   time.Duration
	// IdleAfter is how long a series that gets no rows stays in the known set (3 h).
	IdleAfter time.Duration

	// Truncate tells the journal that batches up to a sequence number are in parts.
	Truncate func(covered uint64) error
	Shipper  Shipper
	// Now gives the time in Unix nanoseconds; nil means the machine's clock.
	Now        func() int64
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Shipper takes finished blocks to the bucket.
type Shipper interface {
	// Ship makes the block durable in the bucket and then visible in the catalogue. The file is complete and synced and
	// stays until Ship has returned. It may be called again for a block that it has shipped before.
	Ship(ctx context.Context, b Block) error
}

// Block is a finished block on its way to the bucket.
type Block struct {
	Meta           part.Meta
	KeyMin, KeyMax model.Key
	// Cut is the number of the block among those that one ship was cut into because of their series.
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
	size(&o.MetadataTenantBytes, 4<<20)
	size(&o.MetadataBytes, 16<<20)
	if o.MetadataFamilies == 0 {
		o.MetadataFamilies = 10_000
	}
	size(&o.WindowBytes, 1<<30)
	size(&o.LateBytes, 64<<20)
	span(&o.FlushEvery, 10*time.Second)
	span(&o.Window, 2*time.Hour)
	span(&o.Grace, 10*time.Minute)
	span(&o.LateAge, time.Hour)
	span(&o.IdleAfter, 3*time.Hour)
	// Each window ahead may be a part that is being written. Samples beyond it are kept with the late ones.
	o.MaxFuture = min(o.MaxFuture, 24*time.Hour)
	if o.Truncate == nil {
		o.Truncate = func(uint64) error { return nil }
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}
