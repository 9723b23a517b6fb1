package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// brakeCreation and brakeAll are the shares of the retention from which on gateways refuse to create more
	// than a few series, and all writes.
	brakeCreation = 0.75
	brakeAll      = 0.90
	// Kafka is asked hundreds of times in the retention, though not more often than is worth it.
	mostBrakeEvery  = 10 * time.Second
	leastBrakeEvery = 500 * time.Millisecond
)

// mostReadEvery is how often the log of ships is read at most while writes are, or would be, refused.
const mostReadEvery = time.Minute

// brake refuses writes while ingesters lag so far that Kafka would delete what they have not taken to the
// bucket. They say how far the bucket has come, and Kafka how old what follows is: so it also works while no
// ingester runs. Before it refuses anything, it asks the bucket itself, since the state topic may be mute. It
// goes off by itself.
type brake struct {
	o     *Options
	asker brakeAsker
	ships *shipLog             // of run alone, as are read and gone
	read  time.Time            // when ships was read last; zero: not since the last epoch began
	gone  map[uint64]time.Time // since when Kafka says each time that the topic of an earlier epoch is not there

	mu      sync.Mutex
	epochs  []topics.Epoch // all of them; the last one takes writes
	covered map[state.Partition]int64
	shut    map[uint64]bool // the earlier epochs that the bucket has all of, or whose topics are gone

	last map[uint64]kafka.Uses // what Kafka has said last, by epoch

	use    atomic.Pointer[kafka.Use]
	failed prometheus.Counter
}

// brakeAsker asks Kafka. It is a [kafka.Asker].
type brakeAsker interface {
	Retention(ctx context.Context, topic string) (kafka.Retention, error)
	Use(ctx context.Context, topic string, r kafka.Retention, from map[int32]int64, now time.Time) (kafka.Uses, error)
	Close()
}

func newBrake(o *Options) (b *brake, err error) {
	asker, err := kafka.NewAsker(o.Connection)
	if err != nil {
		return nil, err
	}
	b = &brake{o: o, asker: asker, ships: newShipLog(o.Bucket), gone: map[uint64]time.Time{}, shut: map[uint64]bool{}, epochs: append(slices.Clone(o.Earlier), o.Epoch), covered: map[state.Partition]int64{}, last: map[uint64]kafka.Uses{}}
	b.use.Store(&kafka.Use{})
	f := promauto.With(o.Registerer)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_gateway_retention_used_ratio", Help: "Share of the retention of the topic that has passed for the oldest record that is not in the bucket; from 0.75 gateways create few series, from 0.9 they refuse all writes.",
	}, func() float64 { return b.use.Load().Share })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_gateway_unknown_partitions", Help: "Partitions whose position in the bucket neither an ingester nor the bucket has reported yet; they count as not stored at all.",
	}, func() float64 { return float64(b.unknown()) })
	b.failed = f.NewCounter(prometheus.CounterOpts{
		Name: "shale_gateway_retention_failed_checks_total", Help: "Failed checks of the age of the oldest record that is not in the bucket; the last known share stays in force.",
	})
	return b, nil
}

// take is told how far the bucket has a partition.
func (b *brake) take(c *state.Covered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := c.Partition.Epoch; n < 1 || n > uint64(len(b.epochs)) || c.Partition.Number >= b.epochs[n-1].Partitions {
		return
	}
	b.covered[c.Partition] = max(c.Next, b.covered[c.Partition])
}

// follow goes on with later epochs. Those before count until the bucket has all of them: the partitions that
// follow wait for them.
func (b *brake) follow(later ...topics.Epoch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range later {
		if e.Number == uint64(len(b.epochs))+1 {
			b.epochs = append(b.epochs[:len(b.epochs):len(b.epochs)], e)
		}
	}
}

// run asks Kafka until ctx ends.
func (b *brake) run(ctx context.Context) {
	defer b.asker.Close()
	failing := false
	for {
		wait, err := b.check(ctx)
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
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// check asks once. It returns when it is worth while to ask again.
func (b *brake) check(ctx context.Context) (wait time.Duration, err error) {
	var unread error
	if b.read.IsZero() {
		unread = b.readShips(ctx)
	}
	said, wait, err := b.ask(ctx)
	if levelOf(b.worst(said).Share) > refuseNothing && time.Since(b.read) >= min(mostReadEvery, 6*wait) {
		// The state topic may be mute, as when it was made again, and the bucket have everything.
		if unread = b.readShips(ctx); unread == nil {
			said, wait, err = b.ask(ctx)
		}
	}
	before, use := b.found(said)
	switch level := levelOf(use.Share); {
	case level > levelOf(before.Share):
		b.o.Logger.Error("refusing writes", "why", b.text(use, level))
	case level < levelOf(before.Share):
		b.o.Logger.Info("refusing fewer writes: ingesters catch up", "retention_used", use.Share)
	}
	return wait, errors.Join(unread, err)
}

// all returns the epochs.
func (b *brake) all() []topics.Epoch {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.epochs
}

// waiting returns the epochs that may have records which the bucket has not, and from where on. What neither
// an ingester nor the bucket has mentioned begins with the epoch, as soon as the bucket was asked.
func (b *brake) waiting() (open []topics.Epoch, from map[uint64]map[int32]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from = map[uint64]map[int32]int64{}
	for i, e := range b.epochs {
		if b.doneLocked(i) {
			continue
		}
		of := map[int32]int64{}
		for p := range e.Partitions {
			covered, ok := b.covered[state.Partition{Epoch: e.Number, Number: p}]
			if end, ends := topics.End(b.epochs, e.Number, p); ends && covered >= end {
				continue
			}
			if ok || !b.read.IsZero() {
				of[p] = max(covered, e.Begins[p])
			}
		}
		if len(of) == 0 && i+1 < len(b.epochs) && !b.read.IsZero() {
			b.shut[e.Number] = true
			continue
		}
		open, from[e.Number] = append(open, e), of
	}
	return open, from
}

// doneLocked reports whether nothing of an epoch is left that could be saved.
func (b *brake) doneLocked(i int) bool {
	return i+1 < len(b.epochs) && (b.epochs[i+1].BeforeLost || b.shut[b.epochs[i].Number])
}

// unknown returns of how many partitions neither an ingester nor the bucket has said anything.
func (b *brake) unknown() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, e := range b.epochs {
		if b.doneLocked(i) {
			continue
		}
		for p := range e.Partitions {
			if _, ok := b.covered[state.Partition{Epoch: e.Number, Number: p}]; !ok {
				n++
			}
		}
	}
	return n
}

// goneAfter is for how long Kafka must say that a topic is not there. A broker also says so while it starts
// and has not read yet which topics there are.
const goneAfter = 10 * time.Minute

// isGone notes what Kafka has said of the topic of an earlier epoch, and reports whether it is gone for good.
// Then there is nothing left of it that could be saved.
func (b *brake) isGone(epoch uint64, err error, now time.Time) bool {
	if !errors.Is(err, kafka.ErrNoTopic) {
		delete(b.gone, epoch)
		return false
	}
	since, ok := b.gone[epoch]
	if !ok {
		since = now
		b.gone[epoch] = now
	}
	if now.Sub(since) < goneAfter {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut[epoch] = true
	return true
}

// readShips takes from the bucket what is not known from ingesters.
func (b *brake) readShips(ctx context.Context) error {
	open, _ := b.waiting()
	var partitions []state.Partition
	since := open[0].Begun
	for _, e := range open {
		since = min(since, e.Begun)
		for p := range e.Partitions {
			partitions = append(partitions, state.Partition{Epoch: e.Number, Number: p})
		}
	}
	if err := b.ships.poll(ctx, partitions, since-int64(clocksDiffer)); err != nil {
		return err
	}
	all := b.all()
	for _, e := range open {
		for p := range e.Partitions {
			at := state.Partition{Epoch: e.Number, Number: p}
			if v := b.ships.covered[at]; v.To > 0 || v.Closed {
				c := state.Covered{Partition: at, Next: topics.Offset(v.To)}
				if end, ends := topics.End(all, e.Number, p); v.Closed && ends {
					c.Next = max(c.Next, end)
				}
				b.take(&c)
			}
		}
	}
	b.read = time.Now()
	return nil
}

// clocksDiffer is by how much clocks of processes may differ.
const clocksDiffer = time.Hour

// ask asks Kafka about all that waits. With an error, a part of it is known.
func (b *brake) ask(ctx context.Context) (said map[uint64]kafka.Uses, wait time.Duration, err error) {
	open, from := b.waiting()
	said, wait = map[uint64]kafka.Uses{}, mostBrakeEvery
	for i, e := range open {
		r, failed := b.asker.Retention(ctx, e.Topic)
		if i+1 < len(open) && b.isGone(e.Number, failed, time.Now()) {
			continue
		}
		if r.Time > 0 {
			wait = max(leastBrakeEvery, min(wait, r.Time/100))
		}
		uses := kafka.Uses{}
		if failed == nil {
			uses, failed = b.asker.Use(ctx, e.Topic, r, from[e.Number], time.Now())
		}
		said[e.Number], err = uses, errors.Join(err, failed)
	}
	return said, wait, err
}

// worst returns what counts if Kafka has said this. A setting that it has not said goes on to count as it
// did, and does not keep the other one from falling.
func (b *brake) worst(said map[uint64]kafka.Uses) *kafka.Use {
	now := &kafka.Use{}
	all := b.all()
	for epoch, uses := range said {
		last := b.last[epoch]
		for _, x := range [][2]*kafka.Use{{uses.Time, last.Time}, {uses.Bytes, last.Bytes}} {
			use := x[0]
			if use == nil {
				use = x[1]
			}
			if use != nil && use.Share > now.Share {
				now = new(*use)
				now.Topic = all[epoch-1].Topic
			}
		}
	}
	return now
}

// found notes what Kafka has said, and returns what counted before and what counts now.
func (b *brake) found(said map[uint64]kafka.Uses) (before, now *kafka.Use) {
	now = b.worst(said)
	last := map[uint64]kafka.Uses{}
	for epoch, uses := range said {
		if uses.Time == nil {
			uses.Time = b.last[epoch].Time
		}
		if uses.Bytes == nil {
			uses.Bytes = b.last[epoch].Bytes
		}
		last[epoch] = uses
	}
	b.last = last
	return b.use.Swap(now), now
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
	what, from := fmt.Sprintf("creates only %d series of a tenant per second, and %d of all tenants,", brakeTenantSeries, brakeSeries), brakeCreation
	if l == refuseAll {
		what, from = "takes no writes", brakeAll
	}
	return fmt.Sprintf("the oldest record of topic %s, partition %d, that is not in the bucket has used %.0f%% of %s, which is %s, and Kafka deletes it at 100%%: "+
		"from %.0f%% on a gateway %s until ingesters have caught up; look at their logs, or raise %s of the topic",
		use.Topic, use.Partition, 100*use.Share, use.Setting, use.Value, 100*from, what, use.Setting)
}
