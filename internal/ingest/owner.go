package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// OwnerOptions configure an Owner.
type OwnerOptions struct {
	// Partitions are the ones to run.
	Partitions []int32
	// Of returns the options of a partition. Partition, Life and AllLabels are set here.
	Of      func(partition int32) Options
	Metrics *OwnerMetrics
	Logger  *slog.Logger
}

// Owner runs partitions, each by itself: one that cannot go on holds back no other. It tries again after a
// while. It is safe for concurrent use.
type Owner struct {
	o     OwnerOptions
	all   []*owned
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// State says what an owner does with a partition.
type State string

// The states of a partition.
const (
	// Opening finds where the partition goes on, and reads labels from the bucket.
	Opening State = "opening"
	// Reading has not reached the end of the partition yet.
	Reading State = "reading"
	// Ready has reached the end. Then queries may rely on the partition, also if it falls back later.
	Ready State = "ready"
	// Stopped waits before it tries again, after an error.
	Stopped State = "stopped"
	// Ended is after Close.
	Ended State = "ended"
)

// owned is a partition of an owner.
type owned struct {
	number int32

	mu    sync.Mutex
	p     *Partition // nil: it is not open
	ready bool
	state State
	err   error // why it is stopped
}

// Own begins to run partitions, until Close.
func Own(o OwnerOptions) *Owner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Owner{o: o, stop: cancel}
	for _, n := range o.Partitions {
		w.all = append(w.all, &owned{number: n, state: Opening})
	}
	o.Metrics.watch(w)
	for _, x := range w.all {
		w.ended.Go(func() { w.run(ctx, x) })
	}
	return w
}

// Stop makes all partitions ship, and then let go, and waits for them.
func (w *Owner) Stop() {
	w.stop()
	w.ended.Wait()
}

// The pauses between attempts after errors.
const (
	leastPause = time.Second
	mostPause  = time.Minute
)

// run opens and runs a partition again and again.
func (w *Owner) run(ctx context.Context, x *owned) {
	pause, allLabels := leastPause, false
	for ctx.Err() == nil {
		progress, err := w.life(ctx, x, allLabels)
		if ctx.Err() != nil {
			break
		}
		var unlabelled *UnlabelledError
		// The labels may be in older blocks than those that were read.
		allLabels = errors.As(err, &unlabelled)
		if progress {
			pause = leastPause
		}
		x.set(nil, Stopped, err)
		w.o.Logger.Error("a partition stopped; trying again after a pause", "partition", x.number, "pause", pause, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, mostPause)
	}
	x.set(nil, Ended, nil)
}

// life opens a partition, runs it until it stops or ctx ends, and closes it. It reports whether a record was
// read.
func (w *Owner) life(ctx context.Context, x *owned, allLabels bool) (progress bool, err error) {
	o := w.o.Of(x.number)
	o.Partition, o.Life, o.AllLabels = x.number, rand.Text(), allLabels
	p, err := Open(ctx, o)
	if err != nil {
		return false, err
	}
	began := p.Next()
	x.set(p, Reading, nil)
	err = p.Run(ctx)
	// Queries that ask now are told to ask elsewhere, and those that run have pinned what they read.
	x.set(nil, Stopped, err)
	if errors.Is(err, catalog.ErrStale) {
		err = fmt.Errorf("%w; give the partition to one process", err)
	}
	return p.Next() > began, errors.Join(err, p.Close())
}

func (x *owned) set(p *Partition, state State, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.p, x.state, x.ready = p, state, false
	if err != nil || state == Reading {
		x.err = err
	}
}

// get returns the partition, nil unless it is open, with its state and why it is stopped.
func (x *owned) get() (*Partition, State, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.p != nil && !x.ready {
		if end := x.p.End(); end >= 0 && x.p.Next() >= end {
			x.ready, x.state = true, Ready
		}
	}
	return x.p, x.state, x.err
}

// Each calls fn for every partition, with the partition if it is open.
func (w *Owner) Each(fn func(number int32, p *Partition, state State, err error)) {
	for _, x := range w.all {
		p, state, err := x.get()
		fn(x.number, p, state, err)
	}
}

// Ready returns nil if all partitions are ready. Otherwise the error is of class transient and names one that
// is not, first one that is stopped.
func (w *Owner) Ready() error {
	var waits, stopped error
	n := 0
	w.Each(func(number int32, p *Partition, state State, err error) {
		switch state {
		case Ready:
			return
		case Reading:
			waits = fmt.Errorf("partition %d reads offset %d of %d", number, p.Next(), p.End())
		case Opening, Ended:
			waits = fmt.Errorf("partition %d is %s", number, state)
		case Stopped:
			stopped = fmt.Errorf("partition %d is stopped: %w", number, err)
		}
		n++
	})
	if stopped != nil {
		waits = stopped
	}
	if waits == nil {
		return nil
	}
	return fmt.Errorf("%w: %d of %d partitions are not ready: %w", model.ErrTransient, n, len(w.all), waits)
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
