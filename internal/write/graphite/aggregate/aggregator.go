package aggregate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
)

// Sink stores aggregates.
type Sink interface {
	// Store returns when the points are durable, or can never be stored. It retries for as long as ctx
	// lasts, and keeps nothing. Times are in Unix seconds.
	Store(ctx context.Context, tenant string, paths []string, times []int64, values []float64) error
}

// Options build an Aggregator.
type Options struct {
	FS  vfs.FS
	Dir string // of the log; it is created
	// Intervals is how many past intervals wait for late points, as MAX_AGGREGATION_INTERVALS.
	Intervals int64
	// WriteBack is how often aggregates are computed, in seconds, if that is more often than their
	// frequency, as WRITE_BACK_FREQUENCY; 0: as often as their frequency says.
	WriteBack int64
	// MaxBytes bounds the memory of buffers, snapshots and what waits to be written.
	MaxBytes int64
	Sink     Sink
	Now      func() int64 // Unix nanoseconds
	// Idle means that nothing happens in the background, for tests.
	Idle       bool
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Aggregator owns the buffers. It is safe for concurrent use. Locks are taken in the order of the fields:
// file, then mu.
type Aggregator struct {
	o       Options
	metrics *metrics
	refused atomic.Int64 // when a refusal was last logged, in Unix seconds

	file log

	mu      sync.Mutex
	byName  map[name]*buffer
	buffers map[uint64]*buffer
	nextID  uint64
	// due has the ids of buffers by the Unix second in which they compute. A buffer is there once.
	due   map[int64][]uint64
	bytes int64 // of buffers
	// pending is what is not in the log yet: the entries up to number taken.
	pending []byte
	taken   uint64
	// unlogged means that the log has failed: a snapshot will replace it, so entries are not kept.
	unlogged bool

	stop  context.CancelFunc
	wake  chan struct{} // capacity 1: much is pending
	work  sync.WaitGroup
	close sync.Once
}

const (
	syncEvery = 100 * time.Millisecond
	// wakeBytes of pending entries are synced at once, and with mostPending Take waits for it.
	wakeBytes   = 256 << 10
	mostPending = 1 << 20
)

// Open reads the log and begins to compute.
func Open(o Options) (*Aggregator, error) {
	a := &Aggregator{o: o, byName: map[name]*buffer{}, buffers: map[uint64]*buffer{}, due: map[int64][]uint64{}, wake: make(chan struct{}, 1)}
	a.metrics = newMetrics(o.Registerer, a)
	if err := a.openLog(); err != nil {
		return nil, fmt.Errorf("the log of aggregation in %s: %w", o.Dir, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.stop = cancel
	if !o.Idle {
		a.work.Go(func() { a.computeEverySecond(ctx) })
		a.work.Go(func() { a.syncOften(ctx) })
	}
	return a, nil
}

// Close stops computing and makes the log durable. What the buffers hold stays in it. The sink is not used
// afterwards.
func (a *Aggregator) Close() error {
	var err error
	a.close.Do(func() {
		a.stop()
		a.work.Wait()
		err = errors.Join(a.Sync(), a.file.closeFile())
	})
	return err
}

// Take gives a point to the buffers of its aggregates. The generation grows with each change of the
// rules. The time is in Unix seconds.
func (a *Aggregator) Take(generation uint64, tenant string, targets []Target, t int64, v float64) {
	a.mu.Lock()
	refused := 0
	for i := range targets {
		if !a.take(generation, tenant, &targets[i], t, v) {
			refused++
		}
	}
	waiting := len(a.pending)
	a.mu.Unlock()
	if refused > 0 {
		a.refuse(refused, tenant, targets[0].Path)
	}
	if waiting >= wakeBytes {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
	if waiting >= mostPending {
		_ = a.Sync() // it counts and logs its errors
	}
}

// take reports false if there is no memory for the point. REQUIRES: a.mu is held.
func (a *Aggregator) take(generation uint64, tenant string, to *Target, t int64, v float64) bool {
	b := a.byName[name{tenant, to.Path}]
	if b != nil && b.rules != generation {
		if b.method != to.Method || b.frequency != to.Frequency {
			a.retire(b)
			b = nil
		} else {
			b.rules = generation
		}
	}
	if b == nil {
		// An eighth is left for the points of buffers that exist.
		if a.bytes > a.limit()/8*7 {
			return false
		}
		b = &buffer{id: a.nextID, name: name{tenant, to.Path}, method: to.Method, frequency: to.Frequency, rules: generation}
		a.put(b)
		a.logBuffer(b)
		a.schedule(b, a.o.Now()/int64(time.Second))
	}
	need := int64(0)
	start := b.startOf(t)
	i := b.at(start)
	if i == nil {
		need = intervalBytes
	}
	if b.method.NeedsValues() {
		need += valueBytes
	}
	if need > 0 && a.bytes+need > a.limit() {
		return false
	}
	a.bytes += need
	if i == nil {
		b.intervals = append(b.intervals, interval{start: start})
		i = &b.intervals[len(b.intervals)-1]
	}
	i.add(b.method, v)
	a.logValue(b, start, v)
	return true
}

// limit bounds the bytes of buffers. The rest is for snapshots, which are smaller than what they are made
// of, and for what waits to be written.
func (a *Aggregator) limit() int64 { return a.o.MaxBytes / 2 }

// put adds a buffer. REQUIRES: a.mu is held.
func (a *Aggregator) put(b *buffer) {
	a.buffers[b.id] = b
	if !b.retired {
		a.byName[b.name] = b
	}
	a.nextID = max(a.nextID, b.id+1)
	a.bytes += b.bytes()
}

// retire takes the name from a buffer. What it holds is computed as before. REQUIRES: a.mu is held.
func (a *Aggregator) retire(b *buffer) {
	b.retired = true
	delete(a.byName, b.name)
	a.logRetired(b)
}

// forget removes an interval, and its buffer if it was the last. REQUIRES: a.mu is held.
func (a *Aggregator) forget(b *buffer, start int64) {
	i := b.at(start)
	if i == nil {
		return
	}
	a.bytes -= intervalBytes
	if b.method.NeedsValues() {
		a.bytes -= i.count * valueBytes
	}
	b.forget(start)
	a.logForgotten(b, start)
}

// remove removes a buffer. REQUIRES: a.mu is held.
func (a *Aggregator) remove(b *buffer) {
	delete(a.buffers, b.id)
	if a.byName[b.name] == b {
		delete(a.byName, b.name)
	}
	a.bytes -= b.bytes()
	a.logRemoved(b)
}

// refuse counts and logs points that no aggregate gets.
func (a *Aggregator) refuse(points int, tenant, path string) {
	a.metrics.refused.Add(float64(points))
	now := a.o.Now() / int64(time.Second)
	if last := a.refused.Load(); now/60 == last/60 || !a.refused.CompareAndSwap(last, now) {
		return
	}
	a.o.Logger.Warn("the memory for aggregation is full: points are left out of aggregates; raise memory, or make the rules aggregate less",
		"bytes", a.limit(), "setting", "memory", "tenant", tenant, "aggregate", path)
}
