package share

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// maxWaiting bounds the requests that wait. Each is a goroutine of a query, of which a server has fewer.
const maxWaiting = 16384

// Limiter says when a request may be sent. Package pace has one.
type Limiter interface {
	// Take reports whether a request may be sent now. If only a rate forbids it, wait is how long, and one
	// says whether it is the rate of its prefix alone. With 0, another request must end first.
	Take(write bool, name string) (wait time.Duration, one, ok bool)
	// Give ends a request.
	Give()
	// OnGive sets the function to call when any request has ended.
	OnGive(fn func())
	// Throttled reports whether the store has throttled recently.
	Throttled() bool
}

// Bucket sends the requests to another bucket in turn. It is safe for concurrent use.
type Bucket struct {
	next    bucket.Bucket
	limit   Limiter
	seconds *prometheus.HistogramVec

	mu    sync.Mutex
	queue *queue
	timer *time.Timer // wakes the queue when a rate allows the next request; nil: none is set
}

var _ bucket.Bucket = (*Bucket)(nil)

// New wraps a bucket. With a nil registerer the metrics are not exported.
func New(next bucket.Bucket, l Limiter, reg prometheus.Registerer) *Bucket {
	b := &Bucket{next: next, limit: l, queue: newQueue()}
	l.OnGive(b.dispatch)
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_bucket_waiting_requests", Help: "Requests to the bucket that wait for their turn."},
		func() float64 { return float64(b.Waiting()) })
	b.seconds = f.NewHistogramVec(prometheus.HistogramOpts{
		Name: "shale_bucket_wait_seconds", Help: "Seconds that requests to the bucket waited for their turn, by class; those that need not wait are not counted.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}, []string{"class"})
	return b
}

// Waiting returns the number of requests that wait.
func (b *Bucket) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.waiting
}

// enter returns when the request may be sent; [Limiter.Give] must follow.
func (b *Bucket) enter(ctx context.Context, write bool, name string, bytes int64) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("bucket: %s: %w", name, err)
	}
	b.mu.Lock()
	if b.queue.waiting == 0 {
		wait, _, ok := b.limit.Take(write, name)
		end, bounded := ctx.Deadline()
		if ok || bounded && wait > time.Until(end) {
			b.mu.Unlock()
			if ok {
				return nil
			}
			return fmt.Errorf("%w: bucket: %s: the store throttles requests for %s, which is beyond the deadline", model.ErrTransient, name, wait.Round(time.Millisecond))
		}
	}
	if b.queue.waiting >= maxWaiting {
		b.mu.Unlock()
		return fmt.Errorf("%w: bucket: %s: %d requests wait for the store already (bucket-requests.max-concurrent, bucket-requests.max-per-second)",
			model.ErrTransient, name, maxWaiting)
	}
	w := &waiter{caller: model.CallerOf(ctx), bytes: max(bytes, 0), write: write, name: name, sent: make(chan struct{}), since: time.Now()}
	b.queue.add(w)
	b.dispatchLocked() // its rate may allow it although those of the others do not
	b.mu.Unlock()
	select {
	case <-w.sent:
	case <-ctx.Done():
		if b.leave(w) {
			return b.gaveUp(ctx, w)
		}
	}
	b.seconds.WithLabelValues(w.caller.Class.String()).Observe(time.Since(w.since).Seconds())
	return nil
}

// leave removes a request from the queue. It returns false if the request has its turn already.
func (b *Bucket) leave(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.granted {
		return false
	}
	b.queue.remove(w)
	return true
}

func (b *Bucket) gaveUp(ctx context.Context, w *waiter) error {
	why := "others are sent first"
	if b.limit.Throttled() {
		why = "the store throttles"
	}
	return fmt.Errorf("bucket: %s: %w after a wait of %s for its turn: %s", w.name, ctx.Err(), time.Since(w.since).Round(time.Millisecond), why)
}

func (b *Bucket) dispatch() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dispatchLocked()
}

// dispatchLocked gives turns to as many waiting requests as the limit allows.
func (b *Bucket) dispatchLocked() {
	for b.queue.waiting > 0 {
		var soonest time.Duration
		var mustWait [2]bool // all reads, all writes
		w := b.queue.next(func(w *waiter) verdict {
			kind := 0
			if w.write {
				kind = 1
			}
			if mustWait[kind] {
				return later
			}
			wait, one, ok := b.limit.Take(w.write, w.name)
			switch {
			case ok:
				return send
			case wait == 0:
				return stop // the request that ends calls dispatch
			}
			if mustWait[kind] = !one; soonest == 0 || wait < soonest {
				soonest = wait
			}
			return later
		})
		if w == nil {
			b.wakeLocked(soonest)
			return
		}
		w.granted = true
		close(w.sent)
	}
}

// wakeLocked calls dispatch after a time, unless it is 0.
func (b *Bucket) wakeLocked(after time.Duration) {
	if after <= 0 {
		return
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(after, b.dispatch)
		return
	}
	b.timer.Reset(after)
}

// Put creates or replaces an object.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	if err := b.enter(ctx, true, name, size); err != nil {
		return err
	}
	defer b.limit.Give()
	return b.next.Put(ctx, name, r, size)
}

// PutIfAbsent creates an object unless the name is taken.
func (b *Bucket) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	if err := b.enter(ctx, true, name, int64(len(data))); err != nil {
		return false, err
	}
	defer b.limit.Give()
	return b.next.PutIfAbsent(ctx, name, data)
}

// Get returns a whole object.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	if err := b.enter(ctx, false, name, 0); err != nil {
		return nil, err
	}
	defer b.limit.Give()
	return b.next.Get(ctx, name)
}

// GetRange returns n bytes of an object from off.
func (b *Bucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	if err := b.enter(ctx, false, name, n); err != nil {
		return nil, err
	}
	defer b.limit.Give()
	return b.next.GetRange(ctx, name, off, n)
}

// List calls fn for every object whose name begins with prefix. fn must not send requests to this bucket:
// they could wait for the turn of the list.
func (b *Bucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	if err := b.enter(ctx, false, prefix, 0); err != nil {
		return err
	}
	defer b.limit.Give()
	return b.next.List(ctx, prefix, fn)
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := b.enter(ctx, true, name, 0); err != nil {
		return err
	}
	defer b.limit.Give()
	return b.next.Delete(ctx, name)
}
