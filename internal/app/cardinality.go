package app

import (
	"context"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/app/cardinality"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/asked"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/write/creators"
	"github.com/shaledb/shale/internal/write/groups"
)

// counter counts the series of the engine.
func (e *Engine) counter() *cardinality.Counter {
	return &cardinality.Counter{
		Recent: e.recent, Head: e.head, NoHead: errNoHead, Querier: e.querier, Creators: e.creators, Asked: e.asked, Usage: e.usage,
		SampleBytes: diskPerSample, Prices: e.o.Prices, ReadPrices: e.o.ReadPrices, Now: func() time.Time { return time.Unix(0, e.now()) },
	}
}

// creatorsFolder has what created series on each day, in the data folder.
const creatorsFolder = "creators"

// openCreators counts what creates series until the engine closes, which saves the counts.
func openCreators(e *Engine) {
	fs := e.o.FS
	t := creators.Open(creators.Options{FS: fs, Dir: fs.PathJoin(e.o.DataDir, creatorsFolder), Now: e.o.Now, Registerer: e.o.Registerer, Logger: e.o.Logger})
	cancel := e.path.Watch(t.Observe)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	if !e.o.Idle {
		done.Go(func() { t.Run(ctx) })
	}
	e.creators, e.closeTables = t, append(e.closeTables, func() {
		cancel()
		stop()
		done.Wait()
		t.Save()
	})
}

// openGroups counts series by metrics and label sets, for the tenants that have limits for these, until the
// engine closes.
func openGroups(e *Engine) *groups.Table {
	t := groups.New(groups.Options{
		Limits: e.o.Tenants.groups, Active: e.activeSeries, Now: e.o.Now, Registerer: e.o.Registerer, Logger: e.o.Logger,
	})
	e.closeTables = append(e.closeTables, t.Close)
	return t
}

// activeSeries emits the labels of the active series of a tenant.
func (e *Engine) activeSeries(ctx context.Context, tenant string, s model.Signal, emit func(model.Labels)) error {
	return activeSeries(ctx, e.head, e.recent, tenant, s, emit)
}

// activeSeries emits the labels of the active series of a tenant in a head.
func activeSeries(ctx context.Context, h *head.Head, recent read.Source, tenant string, s model.Signal, emit func(model.Labels)) error {
	active, err := h.Active(tenant, s)
	if err != nil {
		return err
	}
	set, err := read.New(read.Options{Sources: []read.Source{recent}}).Select(ctx, &model.Request{
		Tenant: tenant, Signal: s, Range: model.Always(), LabelsOnly: true,
	})
	if err != nil {
		return err
	}
	defer set.Close()
	for set.Next(ctx) {
		if active(set.Key()) {
			emit(set.Labels())
		}
	}
	return set.Err()
}

// askedFolder has what queries have asked for, in the data folder.
const askedFolder = "asked"

// openAsked notes what queries ask for until the engine closes, which saves it.
func openAsked(e *Engine) {
	fs := e.o.FS
	t := asked.Open(asked.Options{FS: fs, Dir: fs.PathJoin(e.o.DataDir, askedFolder), Now: e.o.Now, Registerer: e.o.Registerer, Logger: e.o.Logger})
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	if !e.o.Idle {
		done.Go(func() { t.Run(ctx) })
	}
	e.asked, e.closeTables = t, append(e.closeTables, func() {
		stop()
		done.Wait()
		t.Save()
	})
}
