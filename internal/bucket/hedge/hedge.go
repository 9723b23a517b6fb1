package hedge

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/sketch"
)

const (
	// slow is the share of reads that are faster than one that is hedged.
	slow = 0.95
	// shortest is the least time before a second request: a local disk is not worth one.
	shortest = 5 * time.Millisecond
	// budgetShare is the number of second requests that each read earns, and budgetBurst the most of them
	// that are kept for later.
	budgetShare, budgetBurst = 0.03, 10.0
	// reserve is the part of the budget that is left to reads that are still waiting at three times that
	// time. More reads are slow than the budget is for, and few of them are stalled: without a reserve, there
	// was nothing left for a stalled one.
	reserve = budgetBurst / 2
)

// Limiter says whether a second request may be sent. Package pace has one.
type Limiter interface {
	// Take reports whether a request may be sent now; Give must follow.
	Take(write bool, name string) (wait time.Duration, one, ok bool)
	Give()
	// Throttled reports whether the store has throttled recently.
	Throttled() bool
}

// Bucket hedges reads of another bucket. It is safe for concurrent use.
type Bucket struct {
	bucket.Bucket
	limit  Limiter
	hedges *prometheus.CounterVec

	mu     sync.Mutex
	budget float64
	sizes  [bucket.SizeClasses]sketch.Durations
}

var _ bucket.Bucket = (*Bucket)(nil)

// New wraps a bucket. With a nil registerer the metrics are not exported.
func New(next bucket.Bucket, l Limiter, reg prometheus.Registerer) *Bucket {
	b := &Bucket{Bucket: next, limit: l, budget: 1, hedges: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "shale_bucket_hedges_total",
		Help: "Second requests for slow reads of the bucket, by result: won, if the second response came first, or lost."},
		[]string{"result"})}
	for i := range b.sizes {
		b.sizes[i] = sketch.Durations{Least: time.Millisecond, Few: 50, Most: 4000}
	}
	return b
}

// GetRange returns n bytes of an object from off.
func (b *Bucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	get := func(ctx context.Context) ([]byte, error) { return b.Bucket.GetRange(ctx, name, off, n) }
	if !model.CallerOf(ctx).Class.Interactive() {
		return get(ctx)
	}
	size := bucket.SizeClass(n)
	began := time.Now()
	data, err := b.race(ctx, name, b.patience(size), get)
	if err == nil {
		b.mu.Lock()
		b.sizes[size].Add(time.Since(began))
		b.mu.Unlock()
	}
	return data, err
}

// patience returns the time after which a read is slow, 0 if that is unknown.
func (b *Bucket) patience(size int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.budget = min(b.budget+budgetShare, budgetBurst)
	d, ok := b.sizes[size].Quantile(slow)
	if !ok {
		return 0
	}
	return max(d, shortest)
}

// second is the second request of a read.
type second struct {
	b     *Bucket
	name  string
	get   func(context.Context) ([]byte, error)
	ctx   context.Context
	first context.CancelFunc // ends the first request

	mu    sync.Mutex
	timer *time.Timer
	wait  time.Duration
	late  bool          // it was not sent when the read became slow
	over  bool          // the first request has ended
	done  chan struct{} // closed when the second request has ended; nil: there is none
	data  []byte
	err   error
}

// race carries out a read, with a second request if the first one takes longer than patience.
func (b *Bucket) race(ctx context.Context, name string, patience time.Duration, get func(context.Context) ([]byte, error)) ([]byte, error) {
	if patience == 0 {
		return get(ctx)
	}
	firstCtx, cancelFirst := context.WithCancel(ctx)
	defer cancelFirst()
	secondCtx, cancelSecond := context.WithCancel(ctx)
	defer cancelSecond()
	s := &second{b: b, name: name, get: get, ctx: secondCtx, first: cancelFirst, wait: patience}
	s.mu.Lock()
	s.timer = time.AfterFunc(patience, s.start)
	s.mu.Unlock()
	data, err := get(firstCtx)
	done := s.end()
	if done == nil {
		return data, err
	}
	if err == nil {
		cancelSecond()
		<-done
		b.hedges.WithLabelValues("lost").Inc()
		return data, nil
	}
	<-done // the first request failed, perhaps because the second one has won
	if s.err != nil {
		b.hedges.WithLabelValues("lost").Inc()
		if firstCtx.Err() != nil && ctx.Err() == nil {
			err = s.err
		}
		return nil, err
	}
	b.hedges.WithLabelValues("won").Inc()
	return s.data, nil
}

// end says that the first request has ended, and returns the channel of the second one, if it was sent.
func (s *second) end() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
	return s.done
}

// start sends the second request, or waits longer if it may not be sent now: the reads that are stalled
// outlast those that were only slow.
func (s *second) start() {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	if !s.b.spend(s.name, s.late) {
		s.late = true
		s.wait *= 2
		s.timer.Reset(s.wait)
		s.mu.Unlock()
		return
	}
	s.done = make(chan struct{})
	s.mu.Unlock()
	s.data, s.err = s.get(s.ctx)
	s.b.limit.Give()
	close(s.done)
	if s.err == nil {
		s.first()
	}
}

// spend takes a second request from the budget and from the limit. late says that the read may have the
// reserve.
func (b *Bucket) spend(name string, late bool) bool {
	if b.limit.Throttled() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	least := 1.0
	if !late {
		least += reserve
	}
	if b.budget < least {
		return false
	}
	if _, _, ok := b.limit.Take(false, name); !ok {
		return false
	}
	b.budget--
	return true
}
