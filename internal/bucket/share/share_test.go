package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/buckettest"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/bucket/pace"
	"github.com/shaledb/shale/internal/model"
)

func TestSuite(t *testing.T) {
	buckettest.Run(t, func(t testing.TB) bucket.Bucket {
		b, err := fs.New(vfs.NewMem(), "bucket")
		if err != nil {
			t.Fatal(err)
		}
		return New(b, pace.New(pace.Options{Concurrent: 1}), nil)
	})
}

// store takes 10 ms and 10 ms for each megabyte, and counts bytes by caller.
type store struct {
	bucket.Bucket
	mu            sync.Mutex
	bytes         map[model.Caller]int64
	running, most atomic.Int64
}

func (s *store) GetRange(ctx context.Context, _ string, _, n int64) ([]byte, error) {
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	defer s.running.Add(-1)
	time.Sleep(10*time.Millisecond + time.Duration(n/100)*time.Microsecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes[model.CallerOf(ctx)] += n
	return nil, nil
}

// load keeps a number of reads waiting for a caller.
func load(ctx context.Context, wg *sync.WaitGroup, b *Bucket, c model.Caller, readers int, n int64) {
	for range readers {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = b.GetRange(model.WithCaller(ctx, c), "x", 0, n)
			}
		})
	}
}

// TestShares: tenants get equal shares, however many reads they have waiting and however long these are, and
// the classes of a tenant the shares of their weights.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{bytes: make(map[model.Caller]int64)}
		b := New(s, pace.New(pace.Options{Concurrent: 4}), nil)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		big := model.Caller{Tenant: "big", Class: model.Explore}
		small := model.Caller{Tenant: "small", Class: model.Explore}
		scan := model.Caller{Tenant: "small", Class: model.Scan}
		load(ctx, &wg, b, big, 200, 1_000_000)
		load(ctx, &wg, b, small, 8, 1_000_000)
		load(ctx, &wg, b, scan, 8, 1_000_000)
		wg.Wait()
		if s.most.Load() != 4 {
			t.Errorf("%d requests at one time", s.most.Load())
		}
		one, two := float64(s.bytes[big]), float64(s.bytes[small]+s.bytes[scan])
		if one/two < 0.95 || one/two > 1.05 {
			t.Errorf("%.0f bytes for one tenant, %.0f for the other", one, two)
		}
		if ratio := float64(s.bytes[small]) / float64(s.bytes[scan]); ratio < 1.9 || ratio > 2.1 {
			t.Errorf("explore gets %.2f times as much as scan", ratio)
		}
		if b.Waiting() != 0 {
			t.Errorf("%d requests still wait", b.Waiting())
		}
	})
}

// TestPanel: the reads of a panel do not wait for those of a tenant with hundreds of them.
func TestPanel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{bytes: make(map[model.Caller]int64)}
		b := New(s, pace.New(pace.Options{Concurrent: 8}), nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		load(ctx, &wg, b, model.Caller{Tenant: "big", Class: model.Scan}, 500, 1_000_000)
		time.Sleep(time.Second)
		for range 10 {
			began := time.Now()
			var panel sync.WaitGroup
			for range 8 {
				panel.Go(func() {
					_, _ = b.GetRange(model.WithCaller(ctx, model.Caller{Tenant: "small", Class: model.Dashboard}), "x", 0, 1000)
				})
			}
			panel.Wait()
			if took := time.Since(began); took > 40*time.Millisecond {
				t.Errorf("a panel took %s, of which its reads take 10 ms", took)
			}
			time.Sleep(500 * time.Millisecond)
		}
		cancel()
		wg.Wait()
	})
}

// TestGivesUp: a request whose context ends leaves the queue, and says what it waited for.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{bytes: make(map[model.Caller]int64)}
		b := New(s, pace.New(pace.Options{Concurrent: 1}), nil)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = b.GetRange(t.Context(), "x", 0, 100_000_000) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_, err := b.GetRange(ctx, "blocks/y", 0, 1)
		if !errors.Is(err, context.DeadlineExceeded) || b.Waiting() != 0 {
			t.Errorf("%v, %d wait", err, b.Waiting())
		}
		if want := "bucket: blocks/y: context deadline exceeded after a wait of 5ms for its turn: others are sent first"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
		wg.Wait()
	})
}

// prefixes is a limiter with a rate of nothing for some objects.
type prefixes struct{ given func() }

func (*prefixes) Take(_ bool, name string) (wait time.Duration, one, ok bool) {
	return time.Hour, true, name[0] != 'a'
}
func (p *prefixes) Give()           { p.given() }
func (p *prefixes) OnGive(f func()) { p.given = f }
func (*prefixes) Throttled() bool   { return true }

// TestPrefixes: a request to a prefix that is throttled does not hold back the others, of its class or not.
func TestPrefixes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(&store{bytes: make(map[model.Caller]int64)}, &prefixes{}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := b.GetRange(ctx, "a", 0, 1); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		for _, tenant := range []string{"", "x"} {
			if _, err := b.GetRange(model.WithCaller(t.Context(), model.Caller{Tenant: tenant, Class: model.Scan}), "b", 0, 1); err != nil {
				t.Error(err)
			}
		}
		cancel()
		wg.Wait()
	})
}

// TestFull: the queue is bounded.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(&store{bytes: make(map[model.Caller]int64)}, &prefixes{}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range maxWaiting {
			wg.Go(func() {
				c := model.Caller{Tenant: fmt.Sprint(i % 10), Class: model.Explore}
				_, _ = b.GetRange(model.WithCaller(ctx, c), "a", 0, 1)
			})
		}
		synctest.Wait()
		if _, err := b.GetRange(ctx, "a", 0, 1); !errors.Is(err, model.ErrTransient) {
			t.Error(err)
		}
		cancel()
		wg.Wait()
	})
}
