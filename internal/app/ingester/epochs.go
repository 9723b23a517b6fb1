package ingester

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/ingest"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// EpochsOptions build Epochs.
type EpochsOptions struct {
	Config  *config.Config
	Bucket  bucket.Bucket
	Catalog *catalog.Catalog
	// Known are the epochs that Bucket records. Later ones are noticed.
	Known []topics.Epoch
	// Partitions are those of the last known epoch that the process has; none: a group divides them.
	Partitions []int32
	// Of returns the options of a partition that has one of so many shares of the memory. Epochs, Epoch and End
	// are set here.
	Of func(e *topics.Epoch, partition int32, shares int) ingest.Options
	// Limits are those of tenants that gateways apply.
	Limits Limits
	// Groups are those on the series of metrics and label sets, and Active emits the series.
	Groups     Groups
	Active     Active
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Epochs are the epochs whose partitions this process ingests: mostly the last one, and the one before until
// it is closed. It is safe for concurrent use.
type Epochs struct {
	o       EpochsOptions
	metrics *ingest.OwnerMetrics
	readers *kafka.ReaderMetrics
	counts  *CountMetrics
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu    sync.Mutex
	known []topics.Epoch
	lanes []*lane // of the epochs that are not closed, ascending
	// failed is why the process cannot begin with the partitions of a later epoch; nil: it can.
	failed error
}

// lane is what ingests the partitions of one epoch.
type lane struct {
	epoch    topics.Epoch
	owner    *ingest.Owner
	state    *kafka.State
	member   *Member // nil: settings say which partitions the process has
	stop     context.CancelFunc
	counting sync.WaitGroup
}

// epochEvery is how often the bucket is asked for a later epoch. Queries for the newest rows wait for it.
const epochEvery = time.Second

// OpenEpochs begins with the partitions of all epochs that are not closed.
func OpenEpochs(ctx context.Context, o EpochsOptions) (*Epochs, error) {
	x := &Epochs{o: o, known: o.Known, metrics: ingest.NewOwnerMetrics(o.Registerer), readers: kafka.NewReaderMetrics(o.Registerer), counts: NewCountMetrics(o.Registerer)}
	for i := range o.Known {
		if x.isOpen(i) {
			if err := x.begin(ctx, &o.Known[i]); err != nil {
				x.Close()
				return nil, err
			}
		}
	}
	running, stop := context.WithCancel(context.Background())
	x.stop = stop
	x.done.Go(func() { x.follow(running) })
	return x, nil
}

// isOpen reports whether partitions of an epoch may have rows that the bucket has not. The last one has.
func (x *Epochs) isOpen(i int) bool {
	if i+1 == len(x.known) {
		return true
	}
	return !x.known[i+1].BeforeLost && !x.closed(&x.known[i])
}

// closed reports whether all partitions of an epoch are closed.
func (x *Epochs) closed(e *topics.Epoch) bool {
	for p := range e.Partitions {
		if !x.o.Catalog.Covered(topics.Node(p), e.Number).Closed {
			return false
		}
	}
	return true
}

// end returns where a partition ends, once a later epoch is known.
func (x *Epochs) end(epoch uint64, partition int32) (int64, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return topics.End(x.known, epoch, partition)
}

// begin runs the partitions of an epoch that are this process's.
func (x *Epochs) begin(ctx context.Context, e *topics.Epoch) (err error) {
	l := &lane{epoch: *e}
	if l.state, err = OpenState(x.o.Config, e, x.o.Registerer, x.o.Logger); err != nil {
		return err
	}
	x.mu.Lock()
	known := x.known
	x.mu.Unlock()
	l.owner = ingest.Own(ingest.OwnerOptions{
		Topic: e.Topic, Unlabelled: Forget(l.state, e), Moves: len(x.o.Partitions) == 0, Metrics: x.metrics, Readers: x.readers, Logger: x.o.Logger,
		Of: func(partition int32, shares int) ingest.Options {
			o := x.o.Of(e, partition, shares)
			o.Epochs, o.Epoch, o.End = known, e.Number, x.end
			return o
		},
	})
	if len(x.o.Partitions) > 0 {
		l.owner.Hold(Share(x.o.Partitions, topics.Latest(x.o.Known).Partitions, e.Partitions)...)
	} else if l.member, err = Join(ctx, x.o.Config, e, l.owner, x.o.Logger); err != nil && e.Number < uint64(len(known)) && gone(err) {
		// No group divides the partitions of such a topic. Those that the bucket has all of are closed by whoever
		// is first, and the others say what is missing. Later epochs take writes meanwhile.
		x.o.Logger.Error("a topic was deleted before all of its records were in the bucket", "topic", e.Topic, "epoch", e.Number, "err", err)
		l.member = nil
		l.owner.Hold(all(e.Partitions)...)
	} else if err != nil {
		l.owner.Stop()
		l.state.Close()
		return fmt.Errorf("topic %s of epoch %d: %w", e.Topic, e.Number, err)
	}
	counting, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.counting.Go(func() { Cover(counting, l.owner, l.state, &l.epoch) })
	l.counting.Go(func() { Count(counting, l.owner, l.state, &l.epoch, x.o.Limits, x.counts, x.o.Logger) })
	if x.o.Groups != nil {
		l.counting.Go(func() {
			CountGroups(counting, l.owner, l.state, &l.epoch, x.o.Groups, x.o.Active, x.counts, x.o.Logger)
		})
	}
	x.mu.Lock()
	x.lanes = append(x.lanes, l)
	x.mu.Unlock()
	x.share()
	return nil
}

// gone reports whether a topic was deleted, or made again.
func gone(err error) bool {
	_, again := errors.AsType[*kafka.TopicError](err)
	return again || errors.Is(err, kafka.ErrNoTopic)
}

func all(partitions int32) (numbers []int32) {
	for p := range partitions {
		numbers = append(numbers, p)
	}
	return numbers
}

// share tells the owner of the last epoch how many partitions of others take memory.
func (x *Epochs) share() {
	lanes := x.Lanes()
	others := 0
	for i := range len(lanes) - 1 {
		lanes[i].Each(func(int32, *ingest.Partition, ingest.State, error) { others++ })
	}
	if len(lanes) > 0 {
		lanes[len(lanes)-1].Others(others)
	}
}

// Share returns the partitions of an epoch that a process has which has some of an epoch with so many. Of a
// larger one, these are their children; of a smaller one, those with the same number, as no other process has
// them.
func Share(own []int32, of, next int32) (all []int32) {
	for p := range next {
		if slices.Contains(own, p&(of-1)) {
			all = append(all, p)
		}
	}
	return all
}

// follow begins later epochs, and ends those that are closed, until ctx ends.
func (x *Epochs) follow(ctx context.Context) {
	tick := time.NewTicker(epochEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := x.next(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			x.o.Logger.Warn("cannot switch to another topic, or cannot ask the bucket for it; trying again", "err", err)
		}
		failing = err != nil
		x.mu.Lock()
		x.failed = err
		x.mu.Unlock()
		x.endEarlier(ctx)
	}
}

// next begins later epochs. More than one may have followed while this process slept, and the topics of some
// may be gone.
func (x *Epochs) next(ctx context.Context) error {
	x.mu.Lock()
	known := x.known
	running := x.lanes[len(x.lanes)-1].epoch.Number
	x.mu.Unlock()
	for {
		e, err := topics.Next(ctx, x.o.Bucket, uint64(len(known)))
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		x.o.Logger.Info("another topic takes writes", "topic", e.Topic, "epoch", e.Number, "partitions", e.Partitions)
		known = append(known[:len(known):len(known)], *e)
		x.mu.Lock()
		x.known = known // partitions know their ends from now on
		x.mu.Unlock()
	}
	for i := int(running); i < len(known); i++ {
		if !x.isOpen(i) {
			continue
		}
		if err := x.begin(ctx, &known[i]); err != nil {
			return err
		}
	}
	return nil
}

// endEarlier ends the epochs that are closed or given up, except for the last one.
func (x *Epochs) endEarlier(ctx context.Context) {
	x.mu.Lock()
	known, lanes := x.known, x.lanes
	x.mu.Unlock()
	for _, l := range lanes[:len(lanes)-1] {
		lost := known[l.epoch.Number].BeforeLost
		if !lost && !x.closed(&l.epoch) {
			if err := x.o.Catalog.Poll(ctx); err != nil || !x.closed(&l.epoch) {
				continue
			}
		}
		x.mu.Lock()
		x.lanes = slices.DeleteFunc(slices.Clone(x.lanes), func(other *lane) bool { return other == l })
		x.mu.Unlock()
		if lost { // what is held of it and not shipped is given up, and other processes do not wait for it
			l.owner.Each(func(n int32, _ *ingest.Partition, _ ingest.State, _ error) { l.owner.Lose(n) })
		}
		l.close()
		x.o.Logger.Info("a topic has ended, and all of its records are in the bucket", "topic", l.epoch.Topic, "epoch", l.epoch.Number, "given_up", lost)
		x.share()
	}
}

func (l *lane) close() {
	l.member.Leave()
	l.stop()
	l.counting.Wait()
	l.owner.Stop()
	l.state.Close()
}

// Lanes returns the owners of partitions, those of the last epoch last.
func (x *Epochs) Lanes() (all []*ingest.Owner) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.lanes {
		all = append(all, l.owner)
	}
	return all
}

// Ready returns why partitions of this process cannot be relied on, or nil.
func (x *Epochs) Ready() error {
	x.mu.Lock()
	lanes, failed := x.lanes, x.failed
	x.mu.Unlock()
	all := []error{failed}
	for _, l := range lanes {
		all = append(all, l.member.Ready(), l.owner.Ready())
	}
	return errors.Join(all...)
}

// Leave ships all partitions that are divided by groups, and hands them over.
func (x *Epochs) Leave() {
	if x.stop != nil {
		x.stop()
	}
	x.done.Wait()
	x.mu.Lock()
	lanes := x.lanes
	x.mu.Unlock()
	var all sync.WaitGroup
	for _, l := range lanes {
		all.Go(l.member.Leave)
	}
	all.Wait()
}

// Close ships all partitions and ends them.
func (x *Epochs) Close() {
	x.Leave()
	x.mu.Lock()
	lanes := x.lanes
	x.lanes = nil
	x.mu.Unlock()
	for _, l := range lanes {
		l.close()
	}
}
