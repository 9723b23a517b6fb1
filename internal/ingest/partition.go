package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/ship"
	"github.com/shaledb/shale/internal/store/topics"
)

// Options configure a Partition. Zero values take the defaults that are named.
type Options struct {
	Connection kafka.Connection
	// Epochs are those of the bucket, up to that of the partition at least. Epoch is its number; 0: the last
	// one.
	Epochs    []topics.Epoch
	Epoch     uint64
	Partition int32
	// End returns the offset at which a partition of an epoch ends, once a later one is recorded; nil: none
	// is.
	End func(epoch uint64, partition int32) (offset int64, ok bool)
	// ReadBytes bounds one response of Kafka: see [kafka.ReaderOptions].
	ReadBytes int32
	Metrics   *kafka.ReaderMetrics

	// Head has the file system, the folder, the seed and the bounds of the head. What is in the folder is
	// deleted. Node, Epoch and Shipper are set here, and its metrics get the labels "topic" and "partition".
	Head    head.Options
	Bucket  bucket.Bucket
	Catalog *catalog.Catalog
	// Life is different for each Partition that was ever opened.
	Life string
	// LabelRefresh is how often writers send the labels of a series again (1 h).
	LabelRefresh time.Duration
	// AllLabels makes Open read the labels of all blocks of the partition, however old. Without it, it reads
	// those of blocks that were made since about LabelRefresh. Records that were read late may need older
	// ones.
	AllLabels bool
	// Ahead makes Open read labels from the records that follow, up to the end of the partition: writers that
	// were told of labels that are missing send them again.
	Ahead bool
	// Version is what others can read of what this process writes, as [topics] counts it; 0: the newest.
	Version int
	// ShipEvery is how often all rows go to the bucket (10 min): what a lost disk makes the next owner read.
	ShipEvery time.Duration
	// ShipFirst makes Run ship as soon as the end is reached. Whoever had the partition before sees then that
	// it need not answer queries any more.
	ShipFirst bool
	// Ships is the part of this process in the ships (ShipsAlways). Others are for a second group.
	Ships Ships
	// FollowEvery is how often the bucket is asked what another process has shipped (a tenth of ShipEvery, 10
	// s at most).
	FollowEvery time.Duration
	// TookOver is told when the partition begins to ship because the other process does not; nil: it is not
	// told.
	TookOver func()
	// Drain bounds the last ship, once Run has been told to end (60 s).
	Drain time.Duration
	// Room returns an error while the disk has no room for further rows; nil: it always has. Then Run waits.
	Room   func() error
	Logger *slog.Logger

	// open opens the reader, except in tests.
	open func(ctx context.Context, o kafka.ReaderOptions) (reader, error)
	// sealedEnd is [kafka.SealedEnd] of the partition, except in tests.
	sealedEnd func(ctx context.Context, from int64, leader *int32) (int64, error)
}

// reader is a [kafka.Reader].
type reader interface {
	Read(ctx context.Context, fn func(*kafka.Record) error) error
	Next() int64
	End() int64
	Close()
}

// Partition is one partition on this machine.
type Partition struct {
	o        Options
	epoch    topics.Epoch
	node     string
	reader   reader
	head     *head.Head
	shipper  *ship.Shipper
	gate     *gate
	metrics  *registrations
	watchers watchers
	unknown  []uint32
	short    time.Time // since when brokers say less than the end; zero: they do not

	leaders leaders
	// appended is when brokers took the records.
	appended appended

	// overtaken ends, with the reason, when another life has shipped the partition.
	overtaken context.Context
	overtake  context.CancelCauseFunc
	// moved is when another process shipped last, or when there was nothing to ship.
	moved time.Time
	// next and last are those of the reader after its last read.
	next, last atomic.Int64
	caught     atomic.Bool
}

func (o *Options) setDefaults() {
	if o.ShipEvery <= 0 {
		o.ShipEvery = 10 * time.Minute
	}
	if o.Version == 0 {
		o.Version = topics.Newest
	}
	o.Head.Plain = o.Version < topics.VersionRollups
	if o.LabelRefresh <= 0 {
		o.LabelRefresh = time.Hour
	}
	if o.Drain <= 0 {
		o.Drain = time.Minute
	}
	if o.FollowEvery <= 0 {
		o.FollowEvery = min(max(o.ShipEvery/10, 100*time.Millisecond), 10*time.Second)
	}
	if o.TookOver == nil {
		o.TookOver = func() {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.open == nil {
		o.open = func(ctx context.Context, o kafka.ReaderOptions) (reader, error) { return kafka.OpenReader(ctx, o) }
	}
}

// Open finds where the partition goes on, and opens an empty head there.
func Open(ctx context.Context, o Options) (_ *Partition, err error) {
	last := topics.Latest(o.Epochs)
	if o.Epoch > 0 && o.Epoch <= uint64(len(o.Epochs)) {
		last = &o.Epochs[o.Epoch-1]
	}
	if last == nil || o.Epoch > last.Number || o.Partition < 0 || o.Partition >= last.Partitions || o.Life == "" {
		return nil, fmt.Errorf("partition %d: %w: no epoch has it, or the partition has no life", o.Partition, model.ErrInvalid)
	}
	o.setDefaults()
	p := &Partition{o: o, epoch: *last, node: topics.Node(o.Partition)}
	if o.sealedEnd == nil {
		p.o.sealedEnd = func(ctx context.Context, from int64, leader *int32) (int64, error) {
			return kafka.SealedEnd(ctx, o.Connection, last.Topic, last.ID, o.Partition, from, leader)
		}
	}
	if err := p.parentsClosed(ctx); err != nil {
		return nil, err
	}
	if err := o.Catalog.Refresh(ctx); err != nil {
		return nil, err
	}
	shipped := o.Catalog.Progress(p.node, last.Number)
	if shipped.Closed {
		return nil, fmt.Errorf("partition %d of epoch %d: %w", o.Partition, last.Number, ErrClosed)
	}
	// Nothing before its begin belongs to Shale, so it counts as covered.
	begin := max(shipped.To, uint64(last.Begins[o.Partition]))
	p.overtaken, p.overtake = context.WithCancelCause(context.Background())
	p.shipper = ship.New(ship.Options{FS: o.Head.FS, Bucket: o.Bucket, Catalog: o.Catalog, InBucket: true, Life: o.Life, Stale: p.overtake, Leaders: p.leaderFor, Appended: p.appended.of})
	p.shipper.Resume(shipped)
	p.gate = &gate{to: p.shipper}
	p.gate.follows.Store(o.Ships != ShipsAlways)
	p.moved = time.Now()
	if err := p.ended(ctx, begin); err != nil {
		return nil, err
	}

	// The rows of an older head are in the bucket or in Kafka, and which of them is not known.
	if err := o.Head.FS.RemoveAll(o.Head.Dir); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", o.Head.Dir, model.ErrTransient, err)
	}
	h := o.Head
	h.Node, h.Epoch, h.Shipper, h.ShipsRest = p.node, last.Number, p.gate, p.rests
	h.KeepStale, h.FencesOnly, h.IdleAfter = true, true, max(3*time.Hour, 2*o.LabelRefresh)
	p.metrics = register(h.Registerer, prometheus.Labels{"topic": last.Topic, "partition": strconv.Itoa(int(o.Partition))})
	h.Registerer = p.metrics
	if p.head, err = head.Open(ctx, h); err != nil {
		p.metrics.end()
		return nil, err
	}
	if err = p.head.Advance(ctx, begin); err == nil {
		err = p.prime(ctx)
	}
	if err == nil && o.Ahead {
		err = p.lookAhead(ctx, topics.Offset(begin))
	}
	if err == nil {
		p.reader, err = p.openReader(ctx, topics.Offset(begin), leaderOf(&shipped, begin), o.Metrics)
	}
	if err != nil {
		err = errors.Join(err, p.head.Close())
		p.metrics.end()
		return nil, err
	}
	p.next.Store(p.reader.Next())
	p.last.Store(-1)
	p.head.Start()
	return p, nil
}

func (p *Partition) openReader(ctx context.Context, from int64, leader *int32, metrics *kafka.ReaderMetrics) (reader, error) {
	return p.o.open(ctx, kafka.ReaderOptions{
		Connection: p.o.Connection, Topic: p.epoch.Topic, TopicID: p.epoch.ID, Partition: p.o.Partition, From: from, FromEpoch: leader, MaxBytes: p.o.ReadBytes, Metrics: metrics,
	})
}

// Head returns the head, for queries.
func (p *Partition) Head() *head.Head { return p.head }

// UnlabelledError says that a record has rows of series whose labels this machine has never read. They would
// be found by no query. It is of class corrupt.
type UnlabelledError struct {
	Topic     string
	Partition int32
	Offset    int64
	// Series is one of them, of Count.
	Series model.Key
	Count  int
}

// Error names the record and a series.
func (e *UnlabelledError) Error() string {
	return fmt.Sprintf("topic %s, partition %d: the record with offset %d has rows of %d series whose labels are not known, such as %s",
		e.Topic, e.Partition, e.Offset, e.Count, e.Series)
}

// Unwrap returns the class.
func (e *UnlabelledError) Unwrap() error { return model.ErrCorrupt }

// apply takes one record to the head. An error stops the partition at the record.
func (p *Partition) apply(ctx context.Context, r *kafka.Record) error {
	b := r.Batch
	if b.Control.Kind != 0 {
		if _, _, err := deletion.ParseControl(b.Control, p.o.Head.Filters); err != nil {
			return fmt.Errorf("topic %s, partition %d, offset %d: %w", p.epoch.Topic, p.o.Partition, r.Offset, err)
		}
		if !p.head.Apply(topics.Sequence(r.Offset), b) {
			return fmt.Errorf("%w: the partition ends", model.ErrClosed)
		}
		return nil
	}
	for i, k := range b.Keys {
		if at := topics.PartitionOf(k, p.epoch.Partitions); at != p.o.Partition {
			return &kafka.PoisonError{Topic: p.epoch.Topic, Partition: p.o.Partition, Offset: r.Offset, Err: fmt.Errorf("series %d, %s, belongs in partition %d", i, k, at)}
		}
	}
	var err error
	if p.unknown, err = p.head.ResolveDurable(b, p.unknown[:0]); err != nil {
		return &kafka.PoisonError{Topic: p.epoch.Topic, Partition: p.o.Partition, Offset: r.Offset, Err: err}
	}
	missing := slices.DeleteFunc(p.unknown, func(i uint32) bool {
		_, has := slices.BinarySearch(b.Labels.Series, i)
		return has
	})
	if len(missing) > 0 { // seldom: the known set is full
		if missing, err = p.head.Label(ctx, b, missing); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return &UnlabelledError{p.epoch.Topic, p.o.Partition, r.Offset, b.Keys[missing[0]], len(missing)}
	}
	if !p.head.Apply(topics.Sequence(r.Offset), b) {
		return fmt.Errorf("%w: the partition ends", model.ErrClosed) // the next owner reads the record
	}
	p.watchers.notify(&Applied{b, topics.Sequence(r.Offset), p})
	return nil
}

// Ship takes all rows to the bucket, and records up to which offset. Batches without rows count too, or else
// Kafka would delete what counts as missing.
func (p *Partition) Ship(ctx context.Context) error { return p.head.ShipCovered(ctx) }

// Shipped returns the first offset that the bucket does not have, as far as this process knows.
func (p *Partition) Shipped() int64 { return topics.Offset(p.shipper.Covered()) }

// readPause is the wait after an error of Kafka that may pass.
const readPause = time.Second

// Run reads the partition until ctx ends, and ships. Then it ships once more, unless the partition was let
// go, and returns nil. It returns earlier, after it has shipped what came before, with an error that says
// what stopped the partition: [ErrClosed] at the end of its topic. After [catalog.ErrStale] another machine
// has it, and nothing was shipped.
func (p *Partition) Run(ctx context.Context) error {
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// A batch may wait for room that no flush makes, as on a full disk. Whoever goes on reads it again.
	defer context.AfterFunc(reading, p.head.Shut)()
	defer context.AfterFunc(p.overtaken, func() { stop(context.Cause(p.overtaken)) })()
	var ships sync.WaitGroup
	ships.Go(func() { p.follow(reading) })
	ships.Go(func() {
		tick := time.NewTicker(p.o.ShipEvery)
		defer tick.Stop()
		first := p.firstShip()
		for {
			select {
			case <-reading.Done():
				return
			case <-first:
				if p.End() < 0 || p.Next() < p.End() || p.Idle() || p.gate.rests() {
					continue
				}
				first = nil
			case <-tick.C:
			}
			if p.gate.rests() {
				continue
			}
			err := p.Ship(reading)
			// What is damaged may be the catalogue, which another head would need as well.
			if errors.Is(err, model.ErrCorrupt) && p.o.Catalog.Poll(reading) == nil {
				stop(err) // no later ship will succeed, and another head reads the rows from Kafka again
				return
			}
			if err != nil && p.overtaken.Err() == nil && reading.Err() == nil {
				p.o.Logger.Error("cannot ship a partition; trying again later", "partition", p.o.Partition, "err", err)
			}
		}
	})
	err := p.read(reading)
	ended := errors.Is(err, errEnd)
	if ended {
		err = nil
	}
	if ended && p.gate.follows.Load() && p.awaitClose(reading) {
		stop(ErrClosed)
	}
	damage := context.Cause(reading)
	stop(nil)
	p.head.Rest() // a ship in the background would keep the last one waiting, for as long as the bucket is away
	ships.Wait()
	if p.overtaken.Err() != nil {
		return context.Cause(p.overtaken)
	}
	if errors.Is(damage, model.ErrCorrupt) || errors.Is(damage, ErrClosed) {
		return damage
	}
	if p.gate.rests() {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.o.Drain)
	defer cancel()
	if err := errors.Join(err, p.Ship(last)); err != nil || !ended {
		return err
	}
	if err := p.close(last); err != nil {
		return err
	}
	return ErrClosed
}

// read applies records until ctx ends or the partition stops.
func (p *Partition) read(ctx context.Context) error {
	for ctx.Err() == nil {
		var err error
		if end, ok := p.end(); ok && p.Next() >= end {
			if err = p.atEnd(ctx); err == nil {
				return errEnd
			}
		}
		if err == nil || errors.Is(err, errLonger) {
			if !p.awaitRoom(ctx) {
				return nil
			}
			err = p.readSome(ctx)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, model.ErrTransient) && !errors.Is(err, model.ErrCorrupt):
			p.o.Logger.Warn("cannot read a partition; trying again", "partition", p.o.Partition, "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(readPause):
			}
		default:
			return err
		}
	}
	return nil
}

// readSome applies the records of one response.
func (p *Partition) readSome(ctx context.Context) error {
	err := p.reader.Read(ctx, func(r *kafka.Record) error {
		p.leaders.note(topics.Sequence(r.Offset), r.LeaderEpoch)
		p.appended.note(topics.Sequence(r.Offset), r.Appended)
		return p.apply(ctx, r)
	})
	p.next.Store(p.reader.Next())
	p.last.Store(p.reader.End())
	if p.End() >= 0 && p.Next() >= p.End() {
		p.caught.Store(true)
	}
	if err == nil {
		err = p.lostEnd()
	}
	return err
}

// awaitRoom waits until the disk has room, and returns false if ctx ends before.
func (p *Partition) awaitRoom(ctx context.Context) bool {
	for first := true; p.o.Room != nil; first = false {
		err := p.o.Room()
		if err == nil {
			break
		}
		if first {
			p.o.Logger.Warn("a partition waits for room on the disk", "partition", p.o.Partition, "err", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(readPause):
		}
	}
	return true
}

// Journal names the partition and its epoch, as records of ships do.
func (p *Partition) Journal() (node string, epoch uint64) { return p.node, p.epoch.Number }

// Life is different for each Partition that was ever opened.
func (p *Partition) Life() string { return p.o.Life }

// Held returns the first and the last sequence number of the records that the head has and the bucket has
// not, as far as this process knows. Records from before the first are in the bucket.
func (p *Partition) Held() (from, to uint64) { return p.shipper.Covered() + 1, p.head.Applied() }

// Next returns the offset of the first record that was not applied.
func (p *Partition) Next() int64 { return p.next.Load() }

// End returns the offset after the last record of the partition, as far as it is known; -1: it is not.
func (p *Partition) End() int64 {
	last := p.last.Load()
	if end, ok := p.end(); ok && last >= 0 {
		return max(last, end)
	}
	return last
}

// Caught reports whether the end of the partition has been reached once.
func (p *Partition) Caught() bool { return p.caught.Load() }

// Close ends the partition and leaves its folder. It is called after Run.
func (p *Partition) Close() error {
	p.watchers.end()
	p.reader.Close()
	p.Lose() // a ship that waits would find no parts, and record what they had as covered
	err := p.head.Close()
	p.metrics.end()
	p.overtake(nil)
	return err
}
