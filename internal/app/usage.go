package app

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/api/admin"
	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/usage"
	"github.com/shaledb/shale/internal/write"
)

// usageFolder has what tenants have used on each day, in the data folder.
const usageFolder = "usage"

// openUsage begins to account for what tenants use.
func openUsage(e *Engine) *usage.Ledger {
	fs := e.o.FS
	return usage.Open(usage.Options{
		FS: fs, Dir: fs.PathJoin(e.o.DataDir, usageFolder), Holdings: e.holdings, Prices: e.o.Prices, Reads: e.o.ReadPrices,
		Now: e.o.Now, Registerer: e.o.Registerer, Logger: e.o.Logger,
	})
}

// runUsage saves the accounts from time to time, and once more when the engine closes.
func (e *Engine) runUsage() {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	if !e.o.Idle {
		done.Go(func() { e.usage.Run(ctx) })
	}
	e.closeTables = append(e.closeTables, func() {
		cancel()
		done.Wait()
		e.usage.Save(ctx) // without looking at the bucket once more
	})
}

// holdings returns what tenants have: their active series, and their part of the blocks of the bucket.
func (e *Engine) holdings(ctx context.Context, tenants []string) (map[string]usage.Holding, error) {
	s := e.catalog.State()
	stored, err := e.archive.StoredBytes(ctx, slices.Concat(s.Blocks, s.Rollups))
	all := make(map[string]usage.Holding, len(tenants))
	for _, t := range tenants {
		h := usage.Holding{StoredBytes: -1}
		if e.head != nil {
			h.Series = e.head.ActiveSeries(t)
		}
		if stored != nil {
			h.StoredBytes = stored[t]
		}
		all[t] = h
	}
	return all, err
}

// writeMeters tell both the metrics and the accounts of tenants what they write.
type writeMeters struct {
	*tenantMeter
	usage *usage.Ledger
}

var _ write.Meter = writeMeters{}

// Stored counts durable rows.
func (m writeMeters) Stored(tenant string, n write.Counts) {
	m.tenantMeter.Stored(tenant, n)
	m.usage.Stored(tenant, int64(n.Samples+n.Histograms+n.Exemplars), int64(n.Lines), n.LineBytes)
}

// Received counts a request and its bytes.
func (m writeMeters) Received(tenant string, bytes int64) {
	m.tenantMeter.Received(tenant, bytes)
	m.usage.Wrote(tenant, bytes)
}

// readMeter tells the accounts of tenants what they read. Several tenants of one query share what it reads.
type readMeter struct{ usage *usage.Ledger }

// Queried counts a request.
func (m readMeter) Queried(tenants []string) {
	for _, t := range tenants {
		m.usage.Queried(t)
	}
}

// Read counts what a query has read.
func (m readMeter) Read(tenants []string, c *model.Cost) {
	n := int64(max(1, len(tenants)))
	cached := c.PagesRAM.Load() + c.PagesDisk.Load() + c.PagesShared.Load()
	for _, t := range tenants {
		m.usage.Read(t, c.BucketRequests.Load()/n, c.BytesBucket.Load()/n, cached/n, c.PagesBucket.Load()/n)
	}
}

// usageReport answers for /api/v1/usage.
type usageReport struct{ *usage.Ledger }

// Report returns what tenants have used.
func (u usageReport) Report(ctx context.Context, form url.Values) (any, func(*bytes.Buffer) error, error) {
	r, err := u.Ledger.Report(ctx, form)
	if err != nil {
		return nil, nil, err
	}
	return r, func(b *bytes.Buffer) error { return r.CSV(b) }, nil
}

// usageOf returns what finds the accounts of an engine, once it is open.
func usageOf(open *atomic.Pointer[Engine]) func() admin.Usage {
	return func() admin.Usage {
		if e := open.Load(); e != nil {
			return usageReport{e.usage}
		}
		return nil
	}
}

// readPrices are those of the bucket. A folder is free.
func readPrices(c *config.Config) bill.Prices {
	if bucketIsFree(c) {
		return bill.Prices{}
	}
	return c.Bill.Prices
}

func bucketIsFree(c *config.Config) bool { return !strings.Contains(c.Bucket, "://") }
