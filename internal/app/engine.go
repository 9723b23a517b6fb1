package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/app/deletions"
	"github.com/shaledb/shale/internal/app/disk"
	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/bucket"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/memcached"
	"github.com/shaledb/shale/internal/cache/ram"
	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/journal/local"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/pressure"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/asked"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/read/results"
	"github.com/shaledb/shale/internal/read/victorialogs"
	"github.com/shaledb/shale/internal/store/archive"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/changes"
	"github.com/shaledb/shale/internal/store/compact"
	"github.com/shaledb/shale/internal/store/families"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/head/query"
	"github.com/shaledb/shale/internal/store/retention"
	"github.com/shaledb/shale/internal/store/ship"
	"github.com/shaledb/shale/internal/usage"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/creators"
	"github.com/shaledb/shale/internal/write/logs"
)

// The rooms fit.
var (
	_ write.Head    = (*head.Head)(nil)
	_ write.Journal = (*local.Journal)(nil)
	_ read.Source   = (*query.Source)(nil)
	_ read.Source   = (*archive.Archive)(nil)
	_ read.Source   = (*victorialogs.Source)(nil)
	_ read.Biller   = (*archive.Archive)(nil)
	_ read.Biller   = (*victorialogs.Source)(nil)
	_ head.Shipper  = (*ship.Shipper)(nil)
)

// EngineOptions define where an engine keeps its data and how much memory and disk it may use.
type EngineOptions struct {
	FS      vfs.FS
	DataDir string
	Bucket  bucket.Bucket
	// CoalesceGap is the most unneeded bytes between two reads of a block that are made one.
	CoalesceGap int64
	Node        string
	MemoryBytes int64
	// CarbonRules means that files of carbon take a share of the memory, Replicas that requests of replicas of
	// HA pairs do. Plain writes blocks that programs of before journal-version 4 read, and no rollups.
	CarbonRules, Replicas, Plain bool
	// Write, Head, Windows and Compact are the settings of the rooms.
	Write write.Limits
	Head  head.Limits
	// Tenants has the limits of each tenant; nil: those of Write and Head.
	Tenants *tenantBook
	Windows head.Windows
	Compact compact.Limits

	// SSD is the cache on an SSD, without its memory, metrics and log; nil: none.
	SSD *ssd.Options
	// Memcached is the cache in memcached, without its seed, memory, metrics and log; nil: none.
	Memcached *memcached.Options

	// VictoriaLogs is a further source of lines, whose lines get labels and levels by LineRules.
	VictoriaLogs victorialogs.Settings
	LineRules    logs.Rules

	// Results are the settings of the cache of results, and their memory.
	Results results.Limits

	// Prices are what tenants are charged, besides ReadPrices for what their queries read of the bucket.
	Prices     usage.Prices
	ReadPrices bill.Prices

	// Retention hides and drops old rows, unless Tenants has rules; nil: none.
	Retention *retention.Rules
	// Rollups returns the policies by which rollups of metrics are made, with Summaries for PromQL; nil: none.
	Rollups   func() *policy.Policies
	Summaries bool
	// QueryTimeout is how long a query may still read a block that has left the catalogue.
	QueryTimeout time.Duration
	// FlushEvery is the age at which rows go to parts; 0 means 10 s.
	FlushEvery time.Duration
	// Disk bounds the data folder; nil: no bound.
	Disk *disk.Disk
	// BucketApart says that the bucket does not lie in the data folder.
	BucketApart bool
	// CheckBucket refuses a bucket before it is used; nil: it is taken as it is.
	CheckBucket func(ctx context.Context) error
	// Idle turns the background work off, for tests that do each step themselves.
	Idle bool

	Now        func() int64
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Engine is the store of one data folder: journal, head, catalogue and archive, with the write path into them
// and the read path out of them.
type Engine struct {
	o         EngineOptions
	lock      io.Closer
	journal   *local.Journal
	head      *head.Head
	catalog   *catalog.Catalog
	shipper   *ship.Shipper
	path      *write.Path
	archive   *archive.Archive
	querier   *read.Querier
	results   *results.Tier        // nil: none
	recent    *query.Source        // nil: the engine has no head
	unshipped read.Source          // what the bucket has not
	further   *victorialogs.Source // nil: none
	rate      *bill.Rate           // of the requests of queries to the bucket
	expiry    *expiry
	compactor *compact.Compactor
	ssd       *ssd.Store      // nil: none
	memcached *memcached.Tier // nil: none
	accounts  *accounts
	creators  *creators.Table
	usage     *usage.Ledger
	asked     *asked.Table
	// closeTables save what creates series, what tenants use and what queries ask for.
	closeTables []func()
	// wasEmpty says that nothing was stored when the engine was opened.
	wasEmpty bool
	// started is set once the journal is replayed and may be truncated.
	started atomic.Bool
	// readOnly says why writes are refused until the journal has started; nil once it has.
	readOnly  atomic.Pointer[model.LimitError]
	lost      *lost
	elsewhere elsewhere            // the zero value: nothing
	deletions *deletions.Deletions // nil: the head has them
	families  *families.Reader     // nil: the head has the descriptions of metric families
	changes   *changes.Log         // of what responses depend on
	// resultChanges are those that kept results depend on.
	resultChanges *results.Changes
	// deleting is held while a deletion is recorded.
	deleting sync.Mutex
	retrying struct {
		stop context.CancelFunc
		done sync.WaitGroup
	}
}

// OpenEngine opens or creates the store and replays the journal. When it returns, all acknowledged data is
// readable. On a full or read-only disk, writes are refused until the disk has room: see [Engine.Writable].
func OpenEngine(ctx context.Context, o EngineOptions) (_ *Engine, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := o.Write.Check(); err != nil {
		return nil, err
	}
	if o.Tenants == nil {
		o.Tenants = sameForAll(&o)
	}
	if o.Disk == nil {
		o.Disk = new(disk.Disk)
	}
	e := &Engine{o: o, changes: changes.New(o.Now), resultChanges: new(results.Changes)}
	e.lost = newLost(&e.o)
	changed := e.rulesChanged
	o.Tenants.changed.Store(&changed)
	defer func() {
		if err != nil {
			err = errors.Join(withRemedy(err, o.DataDir), e.release())
		}
	}()
	if e.lock, err = lockFolder(o.FS, o.DataDir); err != nil {
		return nil, err
	}
	seed, err := e.seed(ctx)
	if err != nil {
		return nil, err
	}
	memory, err := bucketfs.New(o.FS, o.FS.PathJoin(o.DataDir, catalogMemory))
	if err != nil {
		return nil, err
	}
	e.catalog, err = catalog.Open(ctx, o.Bucket, catalog.Options{
		Now: o.Now, Memory: memory, Changed: e.changes.Whole, Changes: e.resultChanges, Filters: lineFilter, Registerer: o.Registerer, Logger: o.Logger,
		Describe: func(ctx context.Context, id string, size int64) (catalog.Block, error) {
			return compact.Describe(ctx, o.Bucket, id, size)
		},
	})
	if err != nil {
		return nil, err
	}
	e.shipper = ship.New(ship.Options{FS: o.FS, Bucket: o.Bucket, Catalog: e.catalog, Wrote: o.Disk.Wrote, Fresh: e.fresh})
	split := splitMemory(o.MemoryBytes)
	if e.head, err = head.Open(ctx, e.headOptions(seed, split)); err != nil {
		return nil, err
	}
	if err := e.openJournal(ctx, seed, split); err != nil {
		return nil, err
	}
	e.wasEmpty = e.journal.LastSeq() == 0 && len(e.catalog.Live()) == 0
	e.usage = openUsage(e)
	bounded := openGroups(e)
	e.path = write.New(write.Options{
		Seed: seed, Head: e.head, Groups: bounded, Journal: e.journal, Metadata: e.head, Limits: o.Write, LimitsOf: o.Tenants.write, Meter: writeMeters{newTenantMeter(o.Registerer), e.usage}, Room: e.Writable, Now: o.Now,
		Registerer: o.Registerer, Logger: o.Logger,
	})
	e.path.Watch(bounded.Observe)
	openCreators(e)
	if err := e.openSources(seed, split, e.openRecent); err != nil {
		return nil, err
	}
	e.runUsage()
	e.compactor, err = compact.New(compact.Options{
		Catalog: e.catalog, Bucket: o.Bucket, FS: o.FS, Dir: o.FS.PathJoin(o.DataDir, "compact"), Seed: seed,
		Retention: e.rules, Rollups: e.rollups, Plain: o.Plain, Workers: pressure.Processors(), MemoryBytes: split.compaction, Limits: o.Compact, Room: e.roomToMerge, Fresh: e.fresh,
		Garbage: catalog.CollectOptions{Grace: o.QueryTimeout + time.Minute, Holds: e.holdsRowsOf},
		Now:     o.Now, Registerer: o.Registerer, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	registerDeletionStates(e)
	if !o.Idle {
		e.head.Start()
		e.expiry = startExpiry(e.catalog, e.compactor, e.rules, o)
		e.compactor.Start()
	}
	return e, nil
}

// openRecent returns the head as a source.
func (e *Engine) openRecent(pages *ram.Cache) read.Source {
	e.recent = e.head.Source(localCache{pages, e.accounts})
	return e.recent
}

// openSources opens the tiers of the cache, the sources of series, and the read path over them. recent
// returns the source of what is not in the bucket yet.
func (e *Engine) openSources(seed model.KeySeed, split budget, recent func(*ram.Cache) read.Source) (err error) {
	e.accounts = newAccounts(split.ledger/4, e.now, e.o.SSD != nil, e.o.Registerer)
	var secondary []cache.Secondary
	e.rate = bill.Watch(e.o.Bucket)
	used := uses{carbon: e.o.CarbonRules, replicas: e.o.Replicas, memcached: e.o.Memcached != nil, results: e.o.Results.MaxBytes}
	if e.o.SSD != nil {
		used.ssd = e.o.SSD.MaxBytes
	}
	split = split.divided(used)
	if e.o.SSD != nil {
		o := *e.o.SSD
		o.IndexBytes, o.QueueBytes, o.Registerer, o.Logger = split.ssdIndex, split.ssdQueue, e.o.Registerer, e.o.Logger
		o.Account = e.accounts.ssd
		if e.ssd, err = ssd.Open(o); err != nil {
			return err
		}
		secondary = append(secondary, e.ssd)
	}
	if e.o.Memcached != nil {
		if e.memcached, err = openMemcached(&e.o, seed, split, e.rate); err != nil {
			return err
		}
		secondary = append(secondary, e.memcached)
	}
	pages, err := ram.New(ram.Options{MaxBytes: split.pages, Account: e.accounts.memory, Registerer: e.o.Registerer})
	if err != nil {
		return err
	}
	unshipped := recent(pages)
	e.archive = archive.New(archive.Options{
		Catalog: e.catalog, Bucket: e.rate, Gap: e.o.CoalesceGap, Seed: seed, Pages: pages, Secondary: cache.Chain(secondary...),
		Accounts:   e.accounts.ofArchive(),
		Registerer: e.o.Registerer, Logger: e.o.Logger,
	})
	openAsked(e)
	e.querier = read.New(read.Options{
		Asked:   e.asked,
		Sources: e.sources(seed, unshipped, cache.Chain(secondary...)),
		Horizon: e.horizon, Warn: e.warn, Now: e.o.Now, Registerer: e.o.Registerer,
	})
	kept := e.o.Results
	kept.MaxBytes = split.results
	e.results = results.New(results.Options{
		Limits: kept, Changes: e.resultChanges, Further: e.furtherRows, Horizon: e.querier.Horizon, Now: e.o.Now, Registerer: e.o.Registerer,
	})
	if e.o.Idle {
		return nil
	}
	return e.sample(split)
}

// openJournal opens the journal, replays it and starts it.
func (e *Engine) openJournal(ctx context.Context, seed model.KeySeed, split budget) (err error) {
	o := &e.o
	e.journal, err = local.Open(local.Options{
		FS: o.FS, Dir: o.FS.PathJoin(o.DataDir, "journal"), Seed: seed, Covered: e.head.Covered(), MaxQueueBytes: split.journal,
		SegmentBytes: e.o.Disk.Part(64 << 20), Room: o.Disk.RoomToWrite, Wrote: o.Disk.Wrote,
		Apply: e.apply, Registerer: o.Registerer, Logger: o.Logger,
	})
	if err != nil {
		return err
	}
	buffered := func() int64 { return e.head.Buffered() + e.journal.Held() }
	o.Disk.Buffered.Store(&buffered)
	return e.replay(ctx)
}

// apply takes a batch that is durable, and notes what it changes before its sender is told.
func (e *Engine) apply(seq uint64, b *model.Batch) {
	e.head.Apply(seq, b)
	e.changes.Applied(b)
}

// seed checks the bucket, returns the seed of keys, and gives one to a new bucket. If the data folder is
// in use and the bucket has no seed, the bucket is the wrong one or has lost the object.
func (e *Engine) seed(ctx context.Context) (model.KeySeed, error) {
	if e.o.CheckBucket != nil {
		if err := e.o.CheckBucket(ctx); err != nil {
			return 0, err
		}
	}
	_, err := e.o.FS.Stat(e.o.FS.PathJoin(e.o.DataDir, "head", "MANIFEST"))
	if err != nil { // a new data folder
		return catalog.EnsureSeed(ctx, e.o.Bucket)
	}
	seed, err := catalog.Seed(ctx, e.o.Bucket)
	if errors.Is(err, bucket.ErrNotFound) {
		return 0, fmt.Errorf("%w: the data folder %s is in use, and the bucket has no seed: it is the bucket of another folder, or has lost the object", model.ErrInvalid, e.o.DataDir)
	}
	return seed, err
}

func (e *Engine) headOptions(seed model.KeySeed, split budget) head.Options {
	return head.Options{
		FS: e.o.FS, Dir: e.o.FS.PathJoin(e.o.DataDir, "head"), Seed: seed, Node: e.o.Node,
		KnownBytes: split.known, RowBytes: split.rows, LabelBytes: split.labels, Plain: e.o.Plain, Workers: pressure.Processors(),
		Limits: e.o.Head, TenantLimits: e.o.Tenants.head, Windows: e.o.Windows, FlushEvery: e.o.FlushEvery, MaxFuture: e.o.Write.MaxFuture,
		Truncate: func(covered uint64) error {
			if !e.started.Load() {
				return nil
			}
			return e.journal.Truncate(covered)
		},
		Shipper: e.shipper, Deleter: deleter{e}, Filters: lineFilter,
		Space: e.o.Disk, BucketApart: e.o.BucketApart, WindowBytes: e.o.Disk.Part(1 << 30),
		LabelsLost: e.lost.labels, SetAside: e.setAside, Edited: e.changes.Lists, Changes: e.resultChanges,
		Now: e.o.Now, Registerer: e.o.Registerer, Logger: e.o.Logger,
	}
}

// setAside notes that rows have gone.
func (e *Engine) setAside() {
	e.lost.read()
	e.resultChanges.All()
	e.changes.Whole() // last, since answers are made of results
}

// replay applies the batches of the journal that are not in parts to the head, and then starts the journal
// if the disk has room.
func (e *Engine) replay(ctx context.Context) error {
	if err := e.checkAge(); err != nil {
		return err
	}
	from := e.head.Covered() + 1
	batches, rows := 0, 0
	type apply = func(seq uint64, b *model.Batch) error
	replay := func(ctx context.Context, from uint64, do apply) error {
		return e.journal.Replay(ctx, from, func(seq uint64, b *model.Batch) error {
			batches, rows = batches+1, rows+b.Rows()
			if err := checkControl(seq, b); err != nil {
				return err
			}
			return do(seq, b)
		})
	}
	var err error
	if e.o.Idle { // no other goroutine flushes
		err = replay(ctx, from, func(seq uint64, b *model.Batch) error {
			e.head.Apply(seq, b)
			if e.head.HalfFull() {
				return e.head.Flush(ctx)
			}
			return nil
		})
	} else {
		err = e.head.Recover(ctx, replay)
	}
	if err != nil {
		return fmt.Errorf("replay the journal from %d: %w", from, err)
	}
	if e.journal.LastSeq() < from-1 {
		// The newest segment is never deleted, and every row of a part was in the journal first.
		e.o.Logger.Error("the journal ends before the newest rows in parts: its tail is missing, and rows that were only there are lost",
			"journal", e.o.FS.PathJoin(e.o.DataDir, "journal"), "journal_ends", e.journal.LastSeq(), "parts_cover", from-1)
	}
	if batches > 0 {
		e.o.Logger.Info("replayed the journal", "batches", batches, "rows", rows)
	}
	e.head.RemoveLeftovers()
	e.lost.read()
	// A crash may have come between the journal and the catalogue.
	if err := e.head.CommitDeletions(ctx); err != nil {
		e.o.Logger.Warn("cannot tell the bucket of a deletion; the next ship tries again", "err", err)
	}
	return e.acceptWrites(ctx)
}

// Path returns the write path.
func (e *Engine) Path() *write.Path { return e.path }

// Querier returns the read path.
func (e *Engine) Querier() *read.Querier { return e.querier }

// Results returns the cache of results, or nil.
func (e *Engine) Results() *results.Tier { return e.results }

// Compact merges all blocks that are due.
func (e *Engine) Compact(ctx context.Context) error {
	_, err := e.compactor.RunOnce(ctx)
	return err
}

// Flush moves all buffered data to local parts.
func (e *Engine) Flush() error { return e.head.Flush(context.Background()) }

// Ship moves all data to the bucket.
func (e *Engine) Ship() error { return e.head.Ship(context.Background()) }

// Close flushes and closes the store. It waits for running pushes and refuses further ones. All reads must
// have ended.
func (e *Engine) Close() error { return e.release() }

// release closes all open rooms in reverse order.
func (e *Engine) release() error {
	var errs []error
	e.stopRetrying()
	if e.path != nil {
		// Pushes may wait for buffers that cannot be flushed. Their rows are in the journal, and the next
		// start applies them.
		giveUp := time.AfterFunc(closeGrace, e.head.Shut)
		e.path.Close()
		giveUp.Stop()
	}
	for _, save := range e.closeTables {
		save()
	}
	if e.compactor != nil {
		e.compactor.Close()
	}
	if e.expiry != nil {
		e.expiry.close()
	}
	if e.head != nil && e.started.Swap(false) {
		// The next start need not replay rows that are flushed before the journal closes.
		if err := e.head.Flush(context.Background()); err != nil {
			e.head.Shut()
			errs = append(errs, err)
		}
		errs = append(errs, e.journal.Truncate(e.head.Covered()))
	}
	if e.journal != nil {
		errs = append(errs, e.journal.Close())
	}
	if e.head != nil {
		errs = append(errs, e.head.Close())
	}
	if e.further != nil {
		errs = append(errs, e.further.Close())
	}
	if e.accounts != nil {
		e.accounts.close()
	}
	if e.ssd != nil {
		errs = append(errs, e.ssd.Close())
	}
	if e.memcached != nil {
		errs = append(errs, e.memcached.Close())
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(errs...)
}
