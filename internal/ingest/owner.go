package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// OwnerOptions configure an Owner.
type OwnerOptions struct {
	// Of returns the options of a partition that has one of so many shares of the memory. Partition, Life,
	// AllLabels, Ahead, ShipFirst, Metrics and TookOver are set here.
	Of func(partition int32, shares int) Options
	// Topic names the partitions in metrics.
	Topic string
	// Moves says that other processes may get the partitions, and look for the ships of this one.
	Moves bool
	// Unlabelled is told of the first record of a partition whose labels are nowhere, also in old blocks, and
	// again after some time; nil: it is not told.
	Unlabelled func(partition int32, offset int64)
	// Shrink is how long a process must have had few partitions before each gets a larger share (10 min).
	Shrink time.Duration
	// Idle is how long the next owner of a partition that has no rows may take to begin (1 min).
	Idle    time.Duration
	Metrics *OwnerMetrics
	// Readers are the metrics of the readers; nil: there are none.
	Readers *kafka.ReaderMetrics
	Logger  *slog.Logger
}

// Owner runs the partitions that it is told to hold, each by itself: one that cannot go on holds back no
// other. It tries again after a while. It is safe for concurrent use.
type Owner struct {
	o      OwnerOptions
	ctx    context.Context
	stop   context.CancelFunc
	ended  sync.WaitGroup
	shares *shares

	mu  sync.Mutex
	all map[int32]*owned
	// others is how many partitions of other epochs there are.
	others int
}

// owned is a partition of an owner.
type owned struct {
	number int32

	mu sync.Mutex
	// held says that the partition is this process's; otherwise it runs until its next owner has shipped.
	held  bool
	left  time.Time // since when another process has it; zero: that is not known
	p     *Partition
	state State
	err   error // why it is stopped
	// end ends the present life; nil: there is none.
	end    context.CancelCauseFunc
	shares int // of the present life
}

// Own returns an owner without partitions. It runs what it is told to hold until Stop.
func Own(o OwnerOptions) *Owner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Shrink <= 0 {
		o.Shrink = 10 * time.Minute
	}
	if o.Idle <= 0 {
		o.Idle = time.Minute
	}
	w := &Owner{o: o, all: map[int32]*owned{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.shares = newShares(w)
	o.Metrics.watch(w)
	return w
}

// Hold begins to run partitions, or goes on with those that were let go and still run. Other processes have
// the further ones that were lost.
func (w *Owner) Hold(partitions ...int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return
	}
	w.o.Metrics.moved("held", len(partitions))
	for _, n := range partitions {
		x := w.all[n]
		if x == nil {
			x = &owned{number: n, state: Opening, held: true}
			w.all[n] = x
			w.ended.Go(func() { w.run(x) })
		} else {
			x.resume()
		}
	}
	for _, x := range w.all {
		x.othersHave()
	}
	w.shares.resize(len(w.all) + w.others)
}

// Release ships partitions and lets them go, within the time of ctx. They answer queries until their next
// owners have shipped.
func (w *Owner) Release(ctx context.Context, partitions ...int32) {
	w.o.Metrics.moved("released", len(partitions))
	var all sync.WaitGroup
	w.letGo(partitions, true, func(x *owned, p *Partition) {
		all.Go(func() {
			if err := p.Release(ctx); err != nil {
				w.o.Logger.Warn("cannot ship a partition that goes to another process, which will read its rows from Kafka", "partition", x.number, "err", err)
			}
		})
	})
	all.Wait()
}

// Lose stops ships of partitions at once. They answer queries as after Release.
func (w *Owner) Lose(partitions ...int32) {
	w.o.Metrics.moved("lost", len(partitions))
	w.letGo(partitions, false, func(_ *owned, p *Partition) { p.Lose() })
}

// letGo calls fn for the partitions that are open, and ends what is done with the others. known says that
// other processes get them; without it, there may be no group now.
func (w *Owner) letGo(partitions []int32, known bool, fn func(*owned, *Partition)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range partitions {
		if x := w.all[n]; x != nil {
			if p := x.leave(known); p != nil {
				fn(x, p)
			}
		}
	}
}

// Succeeded waits until other processes have shipped all partitions that were let go, or until ctx ends, and
// returns how many were left then. It waits less for what the bucket has all of: no one need ship it.
func (w *Owner) Succeeded(ctx context.Context, idle time.Duration) (left int) {
	began := time.Now()
	tick := time.NewTicker(leaveEvery)
	defer tick.Stop()
	for {
		left = 0
		w.Each(func(_ int32, p *Partition, _ State, _ error) {
			if p != nil && (!p.Idle() || time.Since(began) < idle) {
				left++
			}
		})
		if left == 0 {
			return 0
		}
		select {
		case <-ctx.Done():
			return left
		case <-tick.C:
		}
	}
}

// Others says how many partitions of other epochs take memory, too.
func (w *Owner) Others(partitions int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = partitions
	w.shares.resize(len(w.all) + w.others)
}

// Stop makes all partitions ship, except for those that were let go, and ends them.
func (w *Owner) Stop() {
	defer w.o.Metrics.unwatch(w)
	w.mu.Lock()
	w.stop() // no more begin
	w.mu.Unlock()
	w.ended.Wait()
}

// The pauses between attempts after errors.
const (
	leastPause = time.Second
	mostPause  = time.Minute
	// mostLabelPause is that of a partition that lacks labels: each attempt reads those of all blocks.
	mostLabelPause = 5 * time.Minute
	// The bucket is asked again and again whether the epoch before has ended.
	leastWait, mostWait = 500 * time.Millisecond, 10 * time.Second
)

// tellEvery is after how long writers are asked again for labels that have not come. Each time, they send all
// labels of the partition.
const tellEvery = 10 * time.Minute

// Why a life ends that could go on.
var (
	errLeft    = errors.New("the partition was let go")
	errResized = errors.New("the partition gets another share of the memory")
)

// run opens and runs a partition again and again, until it is let go.
func (w *Owner) run(x *owned) {
	pause, waiting, allLabels := leastPause, leastWait, false
	told, toldAt := int64(-1), time.Time{} // of which offset Unlabelled was told last
	for w.goesOn(x) {
		ctx, end := context.WithCancelCause(w.ctx)
		progress, err := w.life(ctx, end, x, allLabels)
		if w.ctx.Err() != nil {
			end(nil)
			break
		}
		if cause := context.Cause(ctx); errors.Is(cause, errLeft) || errors.Is(cause, errResized) {
			if err != nil {
				w.o.Logger.Warn("a partition was released, but closing it failed", "partition", x.number, "err", err)
			}
			end(nil)
			continue
		}
		if errors.Is(err, ErrClosed) {
			w.o.Logger.Info("a partition has ended, and all of its records are in the bucket", "topic", w.o.Topic, "partition", x.number)
			x.set(nil, Closed, nil)
			<-ctx.Done()
			end(nil)
			continue
		}
		if _, waits := errors.AsType[*WaitsError](err); waits {
			x.set(nil, Waiting, err)
			select {
			case <-ctx.Done():
			case <-time.After(waiting):
			}
			end(nil)
			waiting = min(waiting+leastWait, mostWait)
			continue
		}
		var unlabelled *UnlabelledError
		missing := errors.As(err, &unlabelled)
		if missing && allLabels && w.o.Unlabelled != nil && (unlabelled.Offset != told || time.Since(toldAt) > tellEvery) {
			told, toldAt = unlabelled.Offset, time.Now()
			w.o.Unlabelled(x.number, told)
		}
		// The labels may be in older blocks than those that were read, or writers send them again.
		allLabels = missing || allLabels && !progress // it may not have opened
		if progress {
			pause = leastPause
		}
		x.set(nil, Stopped, err)
		w.o.Logger.Error("a partition stopped; trying again after a pause", "partition", x.number, "pause", pause, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		end(nil)
		most := mostPause
		if missing {
			most = mostLabelPause
		}
		pause = min(2*pause, most)
	}
	x.set(nil, Ended, nil)
}

// goesOn reports whether a partition is to be opened. Otherwise the owner forgets it.
func (w *Owner) goesOn(x *owned) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return false
	}
	if x.isHeld() {
		return true
	}
	delete(w.all, x.number)
	w.o.Readers.Forget(w.o.Topic, x.number)
	w.shares.resize(len(w.all) + w.others)
	return false
}

// life opens a partition, runs it until it stops or ctx ends, and closes it. It reports whether a record was
// read.
func (w *Owner) life(ctx context.Context, end context.CancelCauseFunc, x *owned, allLabels bool) (progress bool, err error) {
	x.begin(end, w.shares.now())
	o := w.o.Of(x.number, x.shares)
	o.Partition, o.Life, o.AllLabels, o.Ahead, o.ShipFirst = x.number, rand.Text(), allLabels, allLabels, w.o.Moves
	o.Metrics, o.TookOver = w.o.Readers, w.o.Metrics.tookOver
	p, err := Open(ctx, o)
	if err != nil {
		return false, err
	}
	began := p.Next()
	x.set(p, Reading, nil)
	watching, unwatch := context.WithCancel(ctx)
	var watched sync.WaitGroup
	watched.Go(func() { w.watch(watching, x, p) })
	err = p.Run(ctx)
	// Queries that ask now are told to ask elsewhere, and those that run have pinned what they read.
	x.set(nil, Opening, nil)
	if !x.isHeld() {
		end(errLeft)
	}
	unwatch()
	watched.Wait()
	switch {
	case !errors.Is(err, catalog.ErrStale):
	case o.Ships == ShipsStandby:
		err = fmt.Errorf("%w again; this one follows it", err)
	default:
		err = fmt.Errorf("%w; give the partition to one process", err)
	}
	err = errors.Join(err, p.Close())
	if !x.isHeld() || errors.Is(err, ErrClosed) {
		err = errors.Join(err, o.Head.FS.RemoveAll(o.Head.Dir)) // its next owner has the rows, or the bucket
	}
	return p.Next() > began, err
}

// leaveEvery is how often the bucket is asked whether the next owner of a partition has shipped.
const leaveEvery = 500 * time.Millisecond

// watch ends a partition that was let go once queries need it no more.
func (w *Owner) watch(ctx context.Context, x *owned, p *Partition) {
	tick := time.NewTicker(leaveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		since, left := x.leftAt()
		if !left {
			continue
		}
		done, err := p.Succeeded(ctx)
		if err != nil && ctx.Err() == nil {
			w.o.Logger.Warn("cannot ask the bucket whether another process has a partition; trying again", "partition", x.number, "err", err)
		}
		if (done || p.Idle() && !since.IsZero() && time.Since(since) > w.o.Idle) && x.endLeft() {
			return
		}
	}
}

// begin notes how the present life can be ended.
func (x *owned) begin(end context.CancelCauseFunc, shares int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.end, x.shares = end, shares
	if !x.held { // it was let go since the owner looked
		end(errLeft)
	}
}

func (x *owned) isHeld() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.held
}

func (x *owned) leftAt() (time.Time, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.left, !x.held
}

// resume makes the partition this process's again.
func (x *owned) resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.held = true
	switch {
	case x.p == nil:
	case !x.p.gate.follows.Load() && x.p.succeeded(): // no ship of this life would be taken
		x.close(errLeft)
	default:
		x.p.Resume()
	}
}

// leave notes that the partition is let go. It returns the partition if it is open, and otherwise ends the
// life.
func (x *owned) leave(known bool) *Partition {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.held {
		x.held, x.left = false, time.Time{}
		if known {
			x.left = time.Now()
		}
	}
	if x.p == nil && x.end != nil {
		x.end(errLeft)
	}
	return x.p
}

// othersHave notes that other processes have a partition that is not this one's.
func (x *owned) othersHave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.held && x.left.IsZero() {
		x.left = time.Now()
	}
}

// endLeft ends a life unless the partition has come back.
func (x *owned) endLeft() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.held {
		return false
	}
	x.close(errLeft)
	return true
}

// close ends the present life. No query finds the partition from here on: its head takes no more rows, and
// could not say so. The caller holds mu.
func (x *owned) close(why error) {
	x.p, x.state = nil, Opening
	x.end(why)
}

func (x *owned) set(p *Partition, state State, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.p, x.state = p, state
	if err != nil || state == Reading {
		x.err = err
	}
	if p != nil && !x.held { // it was let go while it was opened
		x.end(errLeft)
	}
}

// get returns the partition, nil unless it is open, with its state and why it is stopped.
func (x *owned) get() (*Partition, State, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.state == Ended:
	case !x.held:
		return x.p, Leaving, x.err
	case x.p != nil && x.p.Caught():
		return x.p, Ready, x.err
	}
	return x.p, x.state, x.err
}

// Each calls fn for every partition, with the partition if it is open.
func (w *Owner) Each(fn func(number int32, p *Partition, state State, err error)) {
	w.mu.Lock()
	all := slices.SortedFunc(maps.Values(w.all), func(a, b *owned) int { return int(a.number - b.number) })
	w.mu.Unlock()
	for _, x := range all {
		p, state, err := x.get()
		fn(x.number, p, state, err)
	}
}

// Ready returns nil if all partitions that are this process's are ready. Otherwise the error is of class
// transient and names one that is not, first one that is stopped.
func (w *Owner) Ready() error {
	var waits, stopped error
	n, all := 0, 0
	w.Each(func(number int32, p *Partition, state State, err error) {
		all++
		switch state {
		case Ready, Leaving, Closed:
			return
		case Waiting:
			waits = err
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
	return fmt.Errorf("%w: %d of %d partitions are not ready: %w", model.ErrTransient, n, all, waits)
}
