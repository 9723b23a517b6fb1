package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shaledb/shale/internal/app/buckets"
	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/buckettest"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func usualRequests() config.Requests {
	return config.Requests{Gap: 512 << 10, Hedge: "on", Concurrent: 256}
}

// TestScheduledSuite: all wrappers together keep the contract of a bucket.
func TestScheduledSuite(t *testing.T) {
	buckettest.Run(t, func(t testing.TB) bucket.Bucket {
		b, err := bucketfs.New(vfs.NewMem(), "bucket")
		if err != nil {
			t.Fatal(err)
		}
		return buckets.Scheduled(b, "s3", usualRequests(), nil)
	})
}

// cloud is a store that takes a number of reads per second and refuses others. It locks a client out for a
// day if it refuses too many of its requests in a minute.
type cloud struct {
	bucket.Bucket
	perSecond float64

	mu       sync.Mutex
	tokens   float64
	filled   time.Time
	sent     int
	refused  int
	minute   time.Time
	inMinute int
	locked   bool
}

// lockOut is how many refusals in a minute lock a client out.
const lockOut = 1000

func (c *cloud) admit() (i int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.tokens = min(c.perSecond/10, c.tokens+c.perSecond*now.Sub(c.filled).Seconds())
	c.filled = now
	c.sent++
	if c.tokens >= 1 && !c.locked {
		c.tokens--
		return c.sent, nil
	}
	if now.Sub(c.minute) > time.Minute {
		c.minute, c.inMinute = now, 0
	}
	c.refused++
	if c.inMinute++; c.inMinute > lockOut {
		c.locked = true
	}
	return 0, &bucket.ThrottledError{Err: errors.New("503 SlowDown")}
}

func (c *cloud) GetRange(ctx context.Context, name string, _, n int64) ([]byte, error) {
	i, err := c.admit()
	took := 5 * time.Millisecond
	if err == nil {
		took = time.Duration(15+i*7%11)*time.Millisecond + time.Duration(n*12)*time.Nanosecond
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", name, ctx.Err())
	case <-time.After(took):
	}
	if err != nil {
		return nil, err
	}
	return make([]byte, n), nil
}

// insistent repeats each read at once, up to five times, as clients without a scheduler do.
type insistent struct{ bucket.Bucket }

func (b insistent) GetRange(ctx context.Context, name string, off, n int64) (data []byte, err error) {
	for range 5 {
		if data, err = b.Bucket.GetRange(ctx, name, off, n); err == nil {
			break
		}
	}
	return data, err
}

// panels sends the panels of ten tenants every two seconds, 20 reads each, while another tenant reads all
// that it can, unless greedy is 0. It returns the 99th percentile of the panels after the first seconds, the
// number of failed reads, and the reads per second of the greedy tenant.
func panels(t *testing.T, b bucket.Bucket, greedy int) (p99 time.Duration, failed int, perSecond float64) {
	const tenants, settle = 10, 5 * time.Second
	span := 20 * time.Second
	if !testing.Short() {
		span = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	began := time.Now()
	var mu sync.Mutex
	var took []time.Duration
	var reads int
	var all sync.WaitGroup
	for i := range greedy {
		all.Go(func() {
			ctx := model.WithCaller(ctx, model.Caller{Tenant: "greedy", Class: model.Explore})
			for k := 0; ctx.Err() == nil; k++ {
				data, _ := b.GetRange(ctx, fmt.Sprintf("blocks/%d/%d", i, k), 0, 200_000)
				mu.Lock()
				if len(data) > 0 {
					reads++
				}
				mu.Unlock()
			}
		})
	}
	for i := range tenants {
		all.Go(func() {
			ctx := model.WithCaller(ctx, model.Caller{Tenant: fmt.Sprint("t", i), Class: model.Dashboard})
			time.Sleep(time.Duration(i) * 200 * time.Millisecond)
			for k := 0; time.Since(began) < span-5*time.Second; k++ {
				asked := time.Now()
				var reads sync.WaitGroup
				for r := range 20 {
					reads.Go(func() {
						if _, err := b.GetRange(ctx, fmt.Sprintf("blocks/%d/%d/%d", i, k, r), 0, 50_000); err != nil {
							mu.Lock()
							failed++
							mu.Unlock()
						}
					})
				}
				reads.Wait()
				if asked.Sub(began) > settle {
					mu.Lock()
					took = append(took, time.Since(asked))
					mu.Unlock()
				}
				time.Sleep(2*time.Second - time.Since(asked))
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	return took[len(took)*99/100], failed, float64(reads) / span.Seconds()
}

// TestIncident replays an incident of another store: a tenant reads everything, the store refuses, the client
// insists, and the store locks it out for a day. Here the tenant is slowed down to what the store takes, the
// panels of others stay fast, and no storm follows.
func TestIncident(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 12 seconds; TestIncidentAtScale is the short test of this")
	}
	const perSecond, greedy = 2000, 200
	newCloud := func() *cloud {
		now := time.Now()
		return &cloud{perSecond: perSecond, tokens: perSecond / 10, filled: now, minute: now}
	}
	var alone time.Duration
	synctest.Test(t, func(t *testing.T) {
		var failed int
		if alone, failed, _ = panels(t, buckets.Scheduled(newCloud(), "s3", usualRequests(), nil), 0); failed > 0 {
			t.Errorf("%d reads failed without the greedy tenant", failed)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		p99, failed, rate := panels(t, buckets.Scheduled(c, "s3", usualRequests(), nil), greedy)
		if c.locked || failed > 0 {
			t.Errorf("locked out: %v; %d reads of panels failed", c.locked, failed)
		}
		if p99 > 2*alone {
			t.Errorf("p99 of the panels is %s, and %s without the greedy tenant", p99, alone)
		}
		if rate < perSecond/2 {
			t.Errorf("the greedy tenant gets %.0f reads a second of %d", rate, perSecond)
		}
		t.Logf("p99 of the panels: %s alone, %s with the greedy tenant; %d requests, %d refused; %.0f reads a second for the greedy tenant",
			alone, p99, c.sent, c.refused, rate)
	})
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		if _, failed, _ := panels(t, insistent{c}, greedy); !c.locked || failed == 0 {
			t.Errorf("without the scheduler the client is not locked out: %d of %d requests refused", c.refused, c.sent)
		}
	})
}
