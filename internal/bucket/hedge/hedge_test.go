package hedge

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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
		return New(b, pace.New(pace.Options{Concurrent: 8}), nil)
	})
}

// store stalls each hundredth request for 2 s.
type store struct {
	bucket.Bucket
	requests atomic.Int64
}

func (s *store) GetRange(ctx context.Context, name string, _, n int64) ([]byte, error) {
	i := s.requests.Add(1)
	took := 18*time.Millisecond + time.Duration(i%5)*time.Millisecond
	if i%100 == 37 {
		took = 2 * time.Second
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", name, ctx.Err())
	case <-time.After(took):
		return make([]byte, n), nil
	}
}

// limit allows everything.
type limit struct{ throttled, full bool }

func (l *limit) Take(bool, string) (time.Duration, bool, bool) { return 0, false, !l.full }
func (l *limit) Give()                                         {}
func (l *limit) Throttled() bool                               { return l.throttled }

// read sends requests by 8 readers and returns the 99th percentile of their times.
func read(t *testing.T, b *Bucket, class model.Class, requests int) time.Duration {
	ctx := model.WithCaller(t.Context(), model.Caller{Class: class})
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range requests / 8 {
				began := time.Now()
				if data, err := b.GetRange(ctx, "x", 0, 1000); err != nil || len(data) != 1000 {
					t.Error(err)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took[len(took)*99/100]
}

// TestStalls: with 1 % of the requests stalled for 2 s, the 99th percentile stays near that of the others,
// for at most 3 % more requests.
func TestStalls(t *testing.T) {
	for name, c := range map[string]struct {
		class     model.Class
		limit     limit
		hedged    bool
		wantStall bool
	}{
		"dashboard":  {class: model.Dashboard, hedged: true},
		"scan":       {class: model.Scan, wantStall: true},
		"compaction": {class: model.Compaction, wantStall: true},
		"throttled":  {class: model.Dashboard, limit: limit{throttled: true}, wantStall: true},
		"full":       {class: model.Dashboard, limit: limit{full: true}, wantStall: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{}
				b := New(s, &c.limit, nil)
				const requests = 8000
				p99 := read(t, b, c.class, requests)
				extra := s.requests.Load() - requests
				if c.wantStall != (p99 >= 2*time.Second) || !c.wantStall && p99 > 100*time.Millisecond {
					t.Errorf("p99 %s", p99)
				}
				if most := int64(budgetShare*requests + 1); c.hedged != (extra > 0) || extra > most {
					t.Errorf("%d second requests, at most %d are allowed", extra, most)
				}
				t.Logf("p99 %s, %d second requests of %d", p99, extra, requests)
			})
		})
	}
}

// uneven is a store whose reads take between 15 and 60 ms. One of a hundred stalls for 2 s.
type uneven struct {
	bucket.Bucket
	mu                sync.Mutex
	r                 *rand.Rand
	requests, stalled int
}

func (s *uneven) GetRange(ctx context.Context, _ string, _, n int64) ([]byte, error) {
	s.mu.Lock()
	s.requests++
	took := time.Duration(15+s.r.ExpFloat64()*8) * time.Millisecond
	if s.r.IntN(100) == 0 {
		s.stalled++
		took = 2 * time.Second
	}
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(took):
		return make([]byte, n), nil
	}
}

// TestReserve: reads that are only slow leave second requests to those that are stalled, even if one read
// comes after the other and the budget does not grow during a stall.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &uneven{r: rand.New(rand.NewPCG(18, 1))}
		b := New(s, &limit{}, nil)
		ctx := model.WithCaller(t.Context(), model.Caller{Class: model.Dashboard})
		const requests = 10_000
		stalls := 0
		for range requests {
			began := time.Now()
			if _, err := b.GetRange(ctx, "x", 0, 1000); err != nil {
				t.Fatal(err)
			}
			if time.Since(began) > time.Second {
				stalls++
			}
		}
		t.Logf("%d of %d stalls were waited for, %d second requests of %d", stalls, s.stalled, s.requests-requests, requests)
		if stalls > s.stalled/10 || s.requests > requests+budgetShare*requests+1 {
			t.Errorf("%d of %d stalls were waited for, with %d second requests", stalls, s.stalled, s.requests-requests)
		}
	})
}
