package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

const (
	// maxTries bounds the tries of a request whose context has no deadline.
	maxTries = 10
	// A pause is a random share of a bound that begins with firstPause and doubles up to longestPause.
	firstPause, longestPause = 100 * time.Millisecond, 10 * time.Second
	// A read that takes longer than answerTime, and its bytes at slowestBytes per second, is given up: the
	// connection is dead.
	answerTime   = 15 * time.Second
	slowestBytes = 256 << 10
)

// Bucket repeats requests to another bucket. It is safe for concurrent use.
type Bucket struct {
	next    bucket.Bucket
	budget  budget
	retries *prometheus.CounterVec
}

var _ bucket.Bucket = (*Bucket)(nil)

// New wraps a bucket. With a nil registerer the metrics are not exported.
func New(next bucket.Bucket, reg prometheus.Registerer) *Bucket {
	b := &Bucket{next: next, retries: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "shale_bucket_retries_total",
		Help: "Requests to the bucket that were repeated after a temporary error, by operation, and those that were given up, by cause: tries, deadline."},
		[]string{"op", "result"})}
	b.budget.tokens = budgetBurst / 2
	return b
}

// run carries out a request until it succeeds, fails for good, or has used up its tries.
func (b *Bucket) run(ctx context.Context, op string, again func() bool, do func(ctx context.Context) error) error {
	b.budget.earn()
	bound := firstPause
	for try := 1; ; try++ {
		err := do(ctx)
		if err == nil || !errors.Is(err, model.ErrTransient) || errors.Is(err, bucket.ErrDenied) || ctx.Err() != nil || !again() {
			return err
		}
		if try == maxTries {
			b.retries.WithLabelValues(op, "tries").Inc()
			return fmt.Errorf("%w (after %d tries)", err, try)
		}
		wait := rand.N(bound)
		var throttled *bucket.ThrottledError
		if errors.As(err, &throttled) {
			wait += min(throttled.After, longestPause)
		}
		bound = min(2*bound, longestPause)
		stop := pause(ctx, wait)
		if stop == nil {
			stop = b.budget.await(ctx)
		}
		if stop != nil {
			b.retries.WithLabelValues(op, "deadline").Inc()
			return fmt.Errorf("%w (after %s: %w)", err, english.Plural(try, "try", ""), stop)
		}
		b.retries.WithLabelValues(op, "repeated").Inc()
	}
}

func always() bool { return true }

// read bounds each try of a read of n bytes in time.
func (b *Bucket) read(ctx context.Context, op, name string, n int64, do func(ctx context.Context) ([]byte, error)) (data []byte, err error) {
	patience := answerTime + time.Duration(min(n, 1<<30)/slowestBytes)*time.Second
	err = b.run(ctx, op, always, func(ctx context.Context) (err error) {
		try, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		data, err = do(try)
		if err != nil && ctx.Err() == nil && try.Err() != nil {
			err = fmt.Errorf("%w: bucket: %s %s: no response within %s", model.ErrTransient, op, name, patience.Round(time.Second))
		}
		return err
	})
	return data, err
}

// Get returns a whole object.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	const unknown = 64 << 20
	return b.read(ctx, "get", name, unknown, func(ctx context.Context) ([]byte, error) { return b.next.Get(ctx, name) })
}

// GetRange returns n bytes of an object from off. A response of another length counts as a temporary error.
func (b *Bucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	return b.read(ctx, "get_range", name, max(n, 0), func(ctx context.Context) ([]byte, error) {
		data, err := b.next.GetRange(ctx, name, off, n)
		if err == nil && int64(len(data)) != n {
			return nil, fmt.Errorf("%w: bucket: %s: got %d bytes at offset %d, expected %d", model.ErrTransient, name, len(data), off, n)
		}
		return data, err
	})
}

// Put creates or replaces an object. It is repeated if r is an [io.Seeker].
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	seeker, ok := r.(io.Seeker)
	var begin int64
	if ok {
		var err error
		begin, err = seeker.Seek(0, io.SeekCurrent)
		ok = err == nil
	}
	again := func() bool {
		if !ok {
			return false
		}
		_, err := seeker.Seek(begin, io.SeekStart)
		return err == nil
	}
	return b.run(ctx, "put", again, func(ctx context.Context) error { return b.next.Put(ctx, name, r, size) })
}

// PutIfAbsent creates an object unless the name is taken. It is never repeated.
func (b *Bucket) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	b.budget.earn()
	return b.next.PutIfAbsent(ctx, name, data)
}

// maxListed bounds the names that List remembers.
const maxListed = 100_000

// List calls fn for every object whose name begins with prefix, once, even if it is repeated. It is not
// repeated after an error of fn, nor after more than 100,000 objects.
func (b *Bucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	listed := make(map[string]struct{})
	var stop error
	again := func() bool { return stop == nil && len(listed) < maxListed }
	return b.run(ctx, "list", again, func(ctx context.Context) error {
		return b.next.List(ctx, prefix, func(name string, size int64) error {
			if _, known := listed[name]; known {
				return nil
			}
			if stop = fn(name, size); stop == nil && len(listed) < maxListed {
				listed[name] = struct{}{}
			}
			return stop
		})
	})
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	return b.run(ctx, "delete", always, func(ctx context.Context) error { return b.next.Delete(ctx, name) })
}
