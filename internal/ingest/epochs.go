package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/ship"
	"github.com/shaledb/shale/internal/store/topics"
)

// A topic that is followed by another one ends. Its partitions are read up to their ends, shipped, and
// closed. The partitions of the next epoch wait for that, each for its parents: rows of one series and time
// must be shipped in the order in which they came.

// ErrClosed says that the bucket has all records of a partition, and that none will follow.
var ErrClosed = errors.New("the partition has ended, and the bucket has all of its records")

// errEnd stops the reading at the end of an epoch.
var errEnd = errors.New("the topic ends here")

// WaitsError says that a partition does not begin before another one of the epoch before is closed. It is of
// class transient.
type WaitsError struct {
	Partition, Parent int32
	Epoch             uint64 // of Parent
}

// Error names both partitions.
func (e *WaitsError) Error() string {
	return fmt.Sprintf("partition %d waits until partition %d of epoch %d is closed, which has older rows of the same series", e.Partition, e.Parent, e.Epoch)
}

// Unwrap returns the class.
func (e *WaitsError) Unwrap() error { return model.ErrTransient }

// parents returns the epoch before another one, and its partitions that have series of some of the latter.
func (p *Partition) parents(e *topics.Epoch, children []int32) (before *topics.Epoch, all []int32) {
	before = &p.o.Epochs[e.Number-2]
	for _, c := range children {
		all = append(all, topics.Parents(c, before.Partitions, e.Partitions)...)
	}
	return before, all
}

// parentsClosed returns an error unless all rows of the partition's series in earlier epochs are shipped.
// What was not shipped of an epoch that an operator has given up never will be: its partitions are closed
// where they are, so that no life of them ships later. Its own parents are waited for all the same.
func (p *Partition) parentsClosed(ctx context.Context) error {
	children := []int32{p.o.Partition}
	for e := &p.epoch; e.Number > 1; {
		before, parents := p.parents(e, children)
		if !e.BeforeLost {
			return p.closed(ctx, before.Number, parents) // they have waited for theirs
		}
		for _, parent := range parents {
			if err := p.giveUp(ctx, before.Number, parent); err != nil {
				return err
			}
		}
		e, children = before, parents
	}
	return nil
}

// closed returns an error unless partitions of an earlier epoch are closed.
func (p *Partition) closed(ctx context.Context, epoch uint64, partitions []int32) error {
	for polled := false; ; polled = true {
		var waits error
		for _, n := range partitions {
			if !p.o.Catalog.Covered(topics.Node(n), epoch).Closed {
				waits = &WaitsError{p.o.Partition, n, epoch}
				break
			}
		}
		if waits == nil || polled {
			return waits
		}
		if err := p.o.Catalog.Poll(ctx); err != nil { // costs less than to list the bucket
			return err
		}
	}
}

// giveUp closes a partition of an epoch that an operator has given up, as far as it is shipped.
func (p *Partition) giveUp(ctx context.Context, epoch uint64, partition int32) error {
	at := p.o.Catalog.Progress(topics.Node(partition), epoch)
	if at.Closed {
		return nil
	}
	if err := p.o.Catalog.Poll(ctx); err != nil {
		return err
	}
	if at = p.o.Catalog.Progress(at.Node, epoch); at.Closed {
		return nil
	}
	s := ship.New(ship.Options{Catalog: p.o.Catalog, Life: p.o.Life})
	s.Resume(at)
	err := s.Close(ctx, at.Node, epoch, at.To, topics.Lost(&at.Coverage))
	if errors.Is(err, catalog.ErrStale) { // another process has closed it, or has shipped just now
		return fmt.Errorf("partition %d of epoch %d, which was given up: %w: %w", partition, epoch, model.ErrTransient, err)
	}
	return err
}

// end returns the offset at which the partition ends, once a later epoch is known that says so.
func (p *Partition) end() (offset int64, ok bool) {
	if p.o.End == nil {
		return 0, false
	}
	return p.o.End(p.epoch.Number, p.o.Partition)
}

// ended closes a partition if the bucket has all of it, and returns [ErrClosed] then. begin is where it would
// go on.
func (p *Partition) ended(ctx context.Context, begin uint64) error {
	if end, ended := p.end(); !ended || p.gate.follows.Load() || begin < topics.Covered(end) {
		return nil
	}
	p.next.Store(topics.Offset(begin))
	if err := p.close(ctx); err != nil {
		if errors.Is(err, errLonger) {
			return nil
		}
		return err
	}
	return fmt.Errorf("partition %d of epoch %d: %w", p.o.Partition, p.epoch.Number, ErrClosed)
}

// errLonger says that a topic has taken records since its end was recorded. It is of class transient.
var errLonger = fmt.Errorf("%w: the topic has taken records after its recorded end, which are read first", model.ErrTransient)

// atEnd returns nil if the partition has been read up to its end, and [errLonger] if records follow.
//
// The recorded end alone does not tell. A broker may have held up a record for longer than the command that
// sealed the topic has waited, or somebody has let the topic take records for a while. Such a record is
// acknowledged. So the leader is asked again.
func (p *Partition) atEnd(ctx context.Context) error {
	end, ok := p.end()
	next := p.Next()
	if !ok || next < end {
		return fmt.Errorf("BUG: %w: partition %d is not at its end", model.ErrInvalid, p.o.Partition)
	}
	now, err := p.o.sealedEnd(ctx, next, p.leaderBefore(next))
	switch {
	case errors.Is(err, kafka.ErrNoTopic): // what it may have taken is gone as well
		return nil
	case err != nil:
		return err
	case now > next:
		return errLonger
	case now < next && next > end: // it ended earlier when it was sealed, too
		return &kafka.GapError{Topic: p.epoch.Topic, Partition: p.o.Partition, From: end, To: next - 1,
			Why: fmt.Sprintf("the partition ended at offset %d when another topic followed, and the bucket has records after it: brokers had lost those, and may have given their offsets to others", end)}
	}
	return nil
}

// leaderBefore returns the leader that had taken the record before an offset; nil: it is not known.
func (p *Partition) leaderBefore(next int64) *int32 {
	if n := p.leaders.of(topics.Covered(next)); n > 0 {
		epoch := int32(n - 1)
		return &epoch
	}
	at := p.o.Catalog.Progress(p.node, p.epoch.Number)
	return leaderOf(&at, topics.Covered(next))
}

// endLostAfter is how long brokers may say that the partition ends before its end: a new leader takes a
// moment to know which records all replicas have.
const endLostAfter = 30 * time.Second

// lostEnd returns an error if brokers have lost the last records before the end.
func (p *Partition) lostEnd() error {
	end, ok := p.end()
	last := p.last.Load()
	if !ok || last < 0 || last >= end || p.Next() < last {
		p.short = time.Time{}
		return nil
	}
	if p.short.IsZero() {
		p.short = time.Now()
	}
	if time.Since(p.short) < endLostAfter {
		return nil
	}
	return &kafka.GapError{Topic: p.epoch.Topic, Partition: p.o.Partition, From: last, To: end - 1,
		Why: fmt.Sprintf("the partition ended at offset %d when another topic followed, and ends before it now: brokers have lost records", end)}
}

// close records that the bucket has all records of the partition and that none will follow. All that were
// read are shipped.
func (p *Partition) close(ctx context.Context) error {
	if err := p.atEnd(ctx); err != nil {
		return err
	}
	if p.gate.shut.Load() {
		return fmt.Errorf("%w: the partition is not this process's", model.ErrTransient)
	}
	return p.shipper.Close(ctx, p.node, p.epoch.Number, topics.Covered(p.Next()))
}

// CheckPartitions returns an error of class invalid unless an epoch has all of the partitions.
func CheckPartitions(e *topics.Epoch, partitions []int32) error {
	for _, p := range partitions {
		if p < 0 || p >= e.Partitions {
			return fmt.Errorf("%w: partition %d: topic %s has %d partitions, 0 to %d", model.ErrInvalid, p, e.Topic, e.Partitions, e.Partitions-1)
		}
	}
	return nil
}
