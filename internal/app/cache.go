package app

import (
	"context"
	"io"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/admin"
	"github.com/shaledb/shale/internal/bucket/pace"
	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/curve"
	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/cache/record"
	"github.com/shaledb/shale/internal/cache/report"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/archive"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head/query"
	"github.com/shaledb/shale/internal/store/part"
)

// accounts are the ledger and the accounts of the tiers, in the order in which queries ask them.
type accounts struct {
	ledger                            *ledger.Ledger
	memory, lists, local, ssd, bucket *ledger.Tier
	sampler                           *curve.Sampler
	recorder                          *record.Recorder
}

func newAccounts(bytes int64, now func() int64, withSSD bool, reg prometheus.Registerer) *accounts {
	a := &accounts{ledger: ledger.New(ledger.Options{FirstBytes: bytes, Now: now, Registerer: reg})}
	a.memory, a.local = a.ledger.Tier(ledger.Memory), a.ledger.Source(ledger.Local)
	if withSSD {
		a.ssd = a.ledger.Tier(ledger.SSD)
	}
	a.recorder = record.New(a.ledger, now)
	a.bucket, a.lists = a.ledger.Source(ledger.Bucket), a.ledger.Aside(ledger.Lists)
	return a
}

// curveDir is the folder in the data folder for the curves of the cache.
const curveDir = "cache"

// assumedSSD is the size of the disk that is simulated where there is none, in multiples of the memory.
const assumedSSD = 16

// sample begins to simulate caches of other sizes.
func (e *Engine) sample(split budget) (err error) {
	a := e.accounts
	// A sixteenth of the memory is for lists.
	sizes := curve.Sizes{RAM: split.pages / 16 * 15, SSD: split.pages * assumedSSD, Queue: split.pages / 8, NoSSD: e.o.SSD == nil}
	if e.o.SSD != nil {
		sizes.SSD, sizes.Queue = e.o.SSD.MaxBytes, split.ssdQueue/4*3
	}
	sizes.Ghosts = sizes.SSD / (16 << 10)
	a.sampler, err = curve.New(curve.Options{
		MemoryBytes: split.ledger / 4 * 3, Sizes: sizes, FS: e.o.FS, Dir: e.o.FS.PathJoin(e.o.DataDir, curveDir), Now: e.now,
		Actual: func() curve.Actual {
			w := a.ledger.Way()
			return curve.Actual{First: w.First, Memory: w.Memory, Later: w.Later, Pages: w.Pages, Requests: w.Requests}
		},
		Registerer: e.o.Registerer, Logger: e.o.Logger,
	})
	if err != nil {
		return err
	}
	a.ledger.Watch(a.sampler)
	a.ledger.Start()
	a.sampler.Start()
	return nil
}

// close ends what sample began.
func (a *accounts) close() {
	a.recorder.Close()
	if a.sampler != nil {
		a.sampler.Close()
		a.ledger.Close()
	}
}

// cachesOf returns what finds the answers for the cache of an engine, once it is open.
func cachesOf(open *atomic.Pointer[Engine], c *config.Config) func() admin.Cache {
	return func() admin.Cache {
		if e := open.Load(); e != nil {
			return e.caches(c)
		}
		return nil
	}
}

// caches returns what answers for the cache.
func (e *Engine) caches(c *config.Config) admin.Cache {
	scheme, _, _ := strings.Cut(c.Bucket, "://")
	rules := pace.RulesOf(scheme)
	answers := &report.Cache{
		Ledger: e.accounts.ledger, Sampler: e.accounts.sampler, Recorder: e.accounts.recorder, Logger: e.o.Logger,
		MemoryBytes: c.MemoryBytes, Limit: max(rules.Reads, rules.PrefixReads),
	}
	if strings.Contains(c.Bucket, "://") { // a folder is free
		answers.Prices = c.Bill.Prices
	}
	return answers
}

// ofArchive returns the accounts of pages from the bucket.
func (a *accounts) ofArchive() archive.Accounts {
	return archive.Accounts{Ledger: a.ledger, Pages: a.memory, Lists: a.lists, Disk: a.ssd, Bucket: a.bucket}
}

// localCache is the tier in memory as queries of local parts ask it.
type localCache struct {
	cache.Tier
	a *accounts
}

var _ query.Counted = localCache{}

// For is [query.Counted.For].
func (c localCache) For(req *model.Request) part.Cache {
	return &localView{local: c.a.local, View: ledger.View{
		Asker: c.a.ledger.LocalAsker(req.Tenant, req.Cost.QueryID()), Memory: c.Tier, Pages: c.a.memory, Lists: c.a.lists,
	}}
}

// localView is the cache as one request for local parts asks it.
type localView struct {
	ledger.View
	local *ledger.Tier
}

// Get is [part.Cache.Get]. What is not in memory comes from the part's file.
func (v *localView) Get(ctx context.Context, k cache.Key, load func(context.Context) ([]byte, error)) (value []byte, hit bool, err error) {
	value, hit, _, err = v.Ask(ctx, k, load)
	if !hit && err == nil && !k.Kind.Derived() {
		key := v.StoredKey(k.Object, k.Off)
		v.Served(v.local, key.Hash(), len(value), 0)
	}
	return value, hit, err
}

// fresh gives the pages of a new block to the tiers of the cache. A block is as good without.
func (e *Engine) fresh(ctx context.Context, b *catalog.Block, file io.ReaderAt) {
	if e.archive == nil { // the replay of the journal may ship before there are tiers
		return
	}
	if err := e.archive.Fresh(ctx, b, file); err != nil && ctx.Err() == nil {
		e.o.Logger.Warn("the pages of a new block could not be given to the cache", "block", b.ID, "err", err)
	}
}
