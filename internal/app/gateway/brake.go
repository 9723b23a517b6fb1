package gateway

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/topics"
)

const (
	// brakeCreation and brakeAll are the shares of the retention from which on gateways refuse to create series,
	// and all writes.
	brakeCreation = 0.75
	brakeAll      = 0.90
	// Kafka is asked hundreds of times in the retention, though not more often than is worth it.
	mostBrakeEvery  = 10 * time.Second
	leastBrakeEvery = 500 * time.Millisecond
)

// brake refuses writes while ingesters lag so far that Kafka would delete what they have not taken to the
// bucket. They say how far the bucket has come, and Kafka how old what follows is: so it also works while no
// ingester runs. It goes off by itself.
type brake struct {
	o     *Options
	asker *kafka.Asker

	mu      sync.Mutex
	epoch   topics.Epoch // that takes writes
	covered map[int32]int64

	last kafka.Uses // what Kafka has said last of each setting

	use    atomic.Pointer[kafka.Use]
	failed prometheus.Counter
}

func newBrake(o *Options) (b *brake, err error) {
	b = &brake{o: o, epoch: o.Epoch, covered: map[int32]int64{}}
	if b.asker, err = kafka.NewAsker(o.Connection); err != nil {
		return nil, err
	}
	b.use.Store(&kafka.Use{})
	f := promauto.With(o.Registerer)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_gateway_retention_used_ratio", Help: "Share of the retention of the topic that has passed for the oldest record that is not in the bucket. From 0.75 on gateways create no series, from 0.9 on they refuse all writes, and at 1 Kafka deletes the record.",
	}, func() float64 { return b.use.Load().Share })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_gateway_unknown_partitions", Help: "Partitions of which no ingester has ever said how far the bucket has them. They refuse no writes.",
	}, func() float64 {
		b.mu.Lock()
		defer b.mu.Unlock()
		return float64(int(b.epoch.Partitions) - len(b.covered))
	})
	b.failed = f.NewCounter(prometheus.CounterOpts{
		Name: "shale_gateway_retention_failed_checks_total", Help: "Times that Kafka did not say how old the records are that are not in the bucket. The last known share goes on to count.",
	})
	return b, nil
}

// take is told how far the bucket has a partition.
func (b *brake) take(c *state.Covered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Partition.Epoch != b.epoch.Number || c.Partition.Number >= b.epoch.Partitions {
		return
	}
	b.covered[c.Partition.Number] = max(c.Next, b.covered[c.Partition.Number])
}

// follow goes on with the topic of a later epoch.
func (b *brake) follow(e topics.Epoch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Number > b.epoch.Number {
		b.epoch = e
		clear(b.covered)
		b.use.Store(&kafka.Use{})
		b.last = kafka.Uses{}
	}
}

// run asks Kafka until ctx ends.
func (b *brake) run(ctx context.Context) {
	defer b.asker.Close()
	failing := false
	for {
		r, err := b.check(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			b.failed.Inc()
			if !failing {
				b.o.Logger.Warn("cannot find how much of the retention of the topic is used; trying again", "err", err)
			}
		}
		failing = err != nil
		wait := mostBrakeEvery
		if r.Time > 0 {
			wait = max(leastBrakeEvery, min(wait, r.Time/100))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// check asks once.
func (b *brake) check(ctx context.Context) (kafka.Retention, error) {
	b.mu.Lock()
	from, topic := maps.Clone(b.covered), b.epoch.Topic
	b.mu.Unlock()
	r, err := b.asker.Retention(ctx, topic)
	if err != nil {
		return r, err
	}
	uses, err := b.asker.Use(ctx, topic, r, from, time.Now())
	before, use := b.found(topic, uses)
	switch level := levelOf(use.Share); {
	case level > levelOf(before.Share):
		b.o.Logger.Error("refusing writes", "why", b.text(use, level))
	case level < levelOf(before.Share):
		b.o.Logger.Info("refusing fewer writes: ingesters catch up", "retention_used", use.Share)
	}
	return r, err
}

// found notes what Kafka has said, and returns what counted before and what counts now. A setting that it has
// not said goes on to count as it did, and does not keep the other one from falling.
func (b *brake) found(topic string, uses kafka.Uses) (before, now *kafka.Use) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before = b.use.Load()
	if b.epoch.Topic != topic { // another one takes writes meanwhile
		return before, before
	}
	now = &kafka.Use{}
	for _, x := range []struct{ said, last **kafka.Use }{{&uses.Time, &b.last.Time}, {&uses.Bytes, &b.last.Bytes}} {
		if *x.said != nil {
			*x.last = *x.said
		}
		if l := *x.last; l != nil && l.Share > now.Share {
			now = l
		}
	}
	now.Topic = topic
	b.use.Store(now)
	return before, now
}

// level is what is refused.
type level int

const (
	refuseNothing level = iota
	refuseCreation
	refuseAll
)

func levelOf(share float64) level {
	switch {
	case share >= brakeAll:
		return refuseAll
	case share >= brakeCreation:
		return refuseCreation
	}
	return refuseNothing
}

// refused returns why writes, or the creation of series, are refused, or nil.
func (b *brake) refused(l level) error {
	if b == nil {
		return nil
	}
	use := b.use.Load()
	if levelOf(use.Share) < l {
		return nil
	}
	return &model.LimitError{Limit: use.Setting, Text: b.text(use, l)}
}

func (b *brake) text(use *kafka.Use, l level) string {
	what, from := "creates no series", brakeCreation
	if l == refuseAll {
		what, from = "takes no writes", brakeAll
	}
	return fmt.Sprintf("the oldest record of topic %s, partition %d, that is not in the bucket has used %.0f%% of %s, which is %s, and Kafka deletes it at 100%%: "+
		"from %.0f%% on a gateway %s until ingesters have caught up; look at their logs, or raise %s of the topic",
		use.Topic, use.Partition, 100*use.Share, use.Setting, use.Value, 100*from, what, use.Setting)
}
