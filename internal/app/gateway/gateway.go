package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/families"
	"github.com/shaledb/shale/internal/store/head/metadata"
	"github.com/shaledb/shale/internal/store/known"
	"github.com/shaledb/shale/internal/store/topics"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/groups"
	"github.com/shaledb/shale/internal/write/replicas"
)

// The rooms fit.
var (
	_ write.Head    = (*known.Announcer)(nil)
	_ write.Journal = (*epochLog)(nil)
	_ write.Journal = (*chargedLog)(nil)
)

// Options build a Gateway.
type Options struct {
	Connection kafka.Connection
	// Epoch is the topic that takes writes: the last one that Bucket records. Later ones are noticed.
	Epoch topics.Epoch
	// Earlier are the epochs before it.
	Earlier []topics.Epoch
	Bucket  bucket.Bucket
	Seed    model.KeySeed

	// KnownBytes bounds what is known of series, and QueueBytes the batches that wait for Kafka.
	KnownBytes, QueueBytes int64
	// LabelRefresh is how often the labels of an active series travel.
	LabelRefresh time.Duration
	// Gateways is how many share the limits on the rates of tenants.
	Gateways int
	Limits   write.Limits
	LimitsOf func(tenant string) *write.Limits
	// SeriesOf returns the most active series of a tenant; 0: there is no limit.
	SeriesOf func(tenant string) int64
	// GroupsOf returns the limits of a tenant on the series of metrics and label sets; nil: there are none.
	GroupsOf func(tenant string) *groups.Limits
	// Rates bound how fast series are created.
	Rates Rates
	Meter write.Meter
	// Pairs are the settings of HA pairs; nil: all replicas are stored. SpareBytes bounds the requests of
	// replicas that are not elected.
	Pairs      *replicas.Settings
	SpareBytes int64
	// Families bounds the descriptions of metric families.
	Families metadata.Limits

	// EpochEvery is how often the bucket is asked for a later topic (10 s).
	EpochEvery time.Duration
	Now        func() int64 // see [write.Options]
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Gateway takes writes to Kafka. It is safe for concurrent use.
type Gateway struct {
	o         Options
	path      *write.Path
	announcer *known.Announcer
	series    *series
	families  *families.Writer
	brake     *brake
	pairs     *pairs // nil: all replicas are stored
	metrics   *kafka.ProducerMetrics

	now     atomic.Pointer[lane]
	follow  model.Turn // held while the next epoch is looked for; guards asked
	asked   time.Time
	running context.Context
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// Open connects to Kafka. It refuses a topic that is not the recorded one.
func Open(ctx context.Context, o Options) (_ *Gateway, err error) {
	if o.EpochEvery <= 0 {
		o.EpochEvery = 10 * time.Second
	}
	if err := o.Limits.Check(); err != nil {
		return nil, err
	}
	g := &Gateway{o: o, metrics: kafka.NewProducerMetrics(o.Registerer), follow: model.NewTurn()}
	if g.pairs, err = g.openPairs(ctx); err != nil {
		return nil, err
	}
	if g.brake, err = newBrake(&g.o); err != nil {
		return nil, err
	}
	g.announcer, err = known.NewAnnouncer(known.AnnouncerOptions{
		Bytes: o.KnownBytes, Topic: known.Topic{Epoch: o.Epoch.Number, Partitions: uint32(o.Epoch.Partitions)}, Refresh: o.LabelRefresh, Registerer: o.Registerer,
	})
	if err != nil {
		return nil, err
	}
	g.series = newSeries(&g.o, g.announcer)
	g.series.brake = g.brake
	first, err := g.open(ctx, o.Epoch)
	if err != nil {
		g.announcer.Close()
		return nil, err
	}
	g.now.Store(first)
	if g.families, err = families.OpenWriter(ctx, families.WriterOptions{Bucket: o.Bucket, Limits: o.Families, Now: o.Now, Registerer: o.Registerer, Logger: o.Logger}); err != nil {
		_ = first.close(ctx) // nothing was sent
		g.announcer.Close()
		return nil, err
	}
	parts := &parts{of: o.LimitsOf, n: int64(max(1, o.Gateways))}
	g.path = write.New(write.Options{
		Seed: o.Seed, Head: g.announcer, Journal: &chargedLog{&epochLog{g}, g.series}, Groups: g.series, Metadata: g.families, Limits: o.Limits, LimitsOf: parts.limits, Meter: o.Meter,
		Room: func() error { return g.brake.refused(refuseAll) }, Now: o.Now, Registerer: o.Registerer, Logger: o.Logger,
	})
	g.running, g.stop = context.WithCancel(context.Background())
	g.done.Go(func() { g.advance(g.running) })
	g.done.Go(func() { g.watch(g.running) })
	g.done.Go(func() { g.brake.run(g.running) })
	return g, nil
}

// Path returns the write path.
func (g *Gateway) Path() *write.Path { return g.path }

// Ready returns why writes would be refused now, or nil.
func (g *Gateway) Ready() error { return g.now.Load().producer.Ready() }

// told is told what other processes have written to the state topic.
func (g *Gateway) told(epoch uint64, key string, value []byte, offset int64) {
	record, err := state.Decode(key, value)
	switch {
	case errors.Is(err, state.ErrUnknown): // of a later version
	case err != nil:
		g.o.Logger.Warn("a record of the state topic cannot be used", "err", err)
	}
	switch r := record.(type) {
	case *state.Forget:
		g.series.forget(r.Partition)
		g.announcer.Forget(r.Partition.Epoch, uint32(r.Partition.Number))
	case *state.Series:
		g.series.take(r, time.Now())
	case *state.Groups:
		g.series.takeGroups(r, time.Now())
	case *state.Covered:
		g.brake.take(r)
	default:
		g.pairs.told(epoch, record, offset)
	}
}

// advance drops announcements that no longer count.
func (g *Gateway) advance(ctx context.Context) {
	tick := time.NewTicker(g.o.LabelRefresh / 60)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := g.announcer.Advance(); err != nil {
			g.o.Logger.Warn("cannot drop old announcements of series; trying again", "err", err)
		}
	}
}

// watch looks for a later epoch from time to time, as after a loss: a gateway that appends nothing would not
// notice, and what it appends fails. It also drops old counts of series.
func (g *Gateway) watch(ctx context.Context) {
	tick := time.NewTicker(g.o.EpochEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		g.series.expire(time.Now())
		l := g.now.Load()
		changed, err := g.next(ctx, l)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			g.o.Logger.Warn("cannot ask the bucket for another topic, or cannot switch to it; trying again", "err", err)
		case !changed: // a command that seals it may have been given up
			l.producer.Unseal(ctx)
		}
	}
}

// closeTime bounds the wait for what Kafka has not acknowledged.
const closeTime = 20 * time.Second

// Close refuses further pushes, and waits until Kafka has answered for those that run.
func (g *Gateway) Close() error {
	g.path.Close()
	g.stop()
	g.pairs.close()
	g.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := g.now.Load().close(ctx)
	if saved := g.families.Close(); saved != nil {
		g.o.Logger.Warn("cannot write the last descriptions of metric families; senders repeat them", "err", saved)
	}
	g.announcer.Close()
	return err
}
