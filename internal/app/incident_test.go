package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shaledb/shale/internal/app/buckets"
	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/catalog"
)

// region is an object store that refuses what exceeds its rate, and that takes nothing more for a day once
// it has refused outrageMinute requests within a minute.
type region struct {
	bucket.Bucket
	// allows returns the reads per second that it takes at a time after its start, given those that it took in
	// the last second.
	allows func(at time.Duration, used float64) float64

	began  time.Time
	mu     sync.Mutex
	tokens float64
	filled time.Time
	// The figures of the current second and minute, and of the worst ones.
	second, minute               int64
	taken, refused, refusedSince int
	used                         float64
	sentAll, refusedAll          int
	worstSecond, worstMinute     int
	locked                       bool
}

const outrageMinute = 10_000

func newRegion(allows func(time.Duration, float64) float64) *region {
	now := time.Now()
	return &region{allows: allows, began: now, filled: now, tokens: allows(0, 0) / 10}
}

// turnLocked begins a new second or minute.
func (p *region) turnLocked(at time.Duration) {
	if s := int64(at / time.Second); s != p.second {
		p.used, p.taken, p.refused, p.second = float64(p.taken), 0, 0, s
	}
	if m := int64(at / time.Minute); m != p.minute {
		p.refusedSince, p.minute = 0, m
	}
}

func (p *region) admit() (i int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	at := now.Sub(p.began)
	p.turnLocked(at)
	rate := p.allows(at, p.used)
	p.tokens = min(rate/10, p.tokens+rate*now.Sub(p.filled).Seconds())
	p.filled = now
	p.sentAll++
	if p.tokens >= 1 && !p.locked {
		p.tokens--
		p.taken++
		return p.sentAll, true
	}
	p.refusedAll++
	p.refused++
	p.refusedSince++
	p.worstSecond, p.worstMinute = max(p.worstSecond, p.refused), max(p.worstMinute, p.refusedSince)
	p.locked = p.locked || p.refusedSince > outrageMinute
	return 0, false
}

var nothing [1 << 20]byte

// GetRange takes 15 to 25 ms and the time of the bytes at 85 MB/s, or refuses within 5 ms.
func (p *region) GetRange(ctx context.Context, name string, _, n int64) ([]byte, error) {
	i, ok := p.admit()
	took := 5 * time.Millisecond
	if ok {
		took = time.Duration(15+i*7%11)*time.Millisecond + time.Duration(n*12)*time.Nanosecond
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", name, ctx.Err())
	case <-time.After(took):
	}
	if !ok {
		return nil, &bucket.ThrottledError{Err: errors.New("503 SlowDown")}
	}
	return nothing[:n:n], nil
}

// blockOf names blocks as the catalogue does: the hash spreads them over the prefixes of a store.
func blockOf(tenant string, n int) string {
	r := model.TimeRange{Min: int64(n) * int64(time.Hour), Max: int64(n+1)*int64(time.Hour) - 1}
	return catalog.ObjectName(catalog.BlockID(tenant, 1, model.Logs, catalog.DefaultGroup, r, 1, 2, 0))
}

// crowd is fifty tenants with dashboards, and one that asks for everything.
type crowd struct {
	b bucket.Bucket
	// lanes are the reads that the greedy tenant has under way: 16 for each of its queries.
	lanes   int
	account *bill.Account
	span    time.Duration

	mu     sync.Mutex
	took   []refreshed
	failed int
	reads  int
	broke  error // why the budget refused the greedy tenant
}

// refreshed is the refresh of a dashboard.
type refreshed struct{ began, took time.Duration }

const (
	crowdTenants = 50
	refreshEvery = 10 * time.Second
	panelReads   = 40
	panelBytes   = 50_000
	greedyBytes  = 200_000
	lanesOfQuery = 16
)

// run lets all of them ask until the span is over.
func (c *crowd) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.span)
	defer cancel()
	began := time.Now()
	var all sync.WaitGroup
	for i := range c.lanes {
		all.Go(func() { c.ask(ctx, i) })
	}
	for i := range crowdTenants {
		all.Go(func() {
			time.Sleep(time.Duration(i) * refreshEvery / crowdTenants)
			for k := 0; time.Since(began) < c.span-refreshEvery; k++ {
				asked := time.Now()
				c.refresh(ctx, fmt.Sprintf("team-%02d", i), k)
				c.mu.Lock()
				c.took = append(c.took, refreshed{asked.Sub(began), time.Since(asked)})
				c.mu.Unlock()
				time.Sleep(refreshEvery - time.Since(asked))
			}
		})
	}
	all.Wait()
}

// ask reads one page after the other, until the budget refuses.
func (c *crowd) ask(ctx context.Context, lane int) {
	ctx = model.WithCaller(ctx, model.Caller{Tenant: "greedy", Class: model.Explore})
	for k := 0; ctx.Err() == nil; k++ {
		if err := c.account.Spend(greedyBytes); err != nil {
			c.mu.Lock()
			c.broke = err
			c.mu.Unlock()
			return
		}
		data, _ := c.b.GetRange(ctx, blockOf("greedy", lane*1000+k), 0, greedyBytes)
		c.mu.Lock()
		if len(data) > 0 {
			c.reads++
		}
		c.mu.Unlock()
	}
}

// refresh reads the pages of a dashboard.
func (c *crowd) refresh(ctx context.Context, tenant string, k int) {
	ctx = model.WithCaller(ctx, model.Caller{Tenant: tenant, Class: model.Dashboard})
	var reads sync.WaitGroup
	for r := range panelReads {
		reads.Go(func() {
			if _, err := c.b.GetRange(ctx, blockOf(tenant, k*panelReads+r), 0, panelBytes); err != nil {
				c.mu.Lock()
				c.failed++
				c.mu.Unlock()
			}
		})
	}
	reads.Wait()
}

// slow returns the 99th percentile of the dashboards whose refresh began after a time. A short test has too
// few of them for that: each time the client meets the limit, a few dashboards have a read that is refused.
// There it is the 95th percentile.
func (c *crowd) slow(after time.Duration) time.Duration {
	percent := 99
	if testing.Short() {
		percent = 95
	}
	var took []time.Duration
	for _, r := range c.took {
		if r.began >= after {
			took = append(took, r.took)
		}
	}
	slices.Sort(took)
	return took[len(took)*percent/100]
}

// Stores of the simulation. A new bucket of S3 has one partition, which takes 5,500 reads a second; the
// client does not know that, and counts with 16 of them. Google begins with 5,000, and takes at most twice as
// many after 20 minutes, if they are used.
func s3Partition(time.Duration, float64) float64 { return 5500 }

func googleRamp() func(time.Duration, float64) float64 {
	capacity, last := 5000.0, time.Duration(0)
	return func(at time.Duration, used float64) float64 {
		if used > capacity/2 {
			capacity *= math.Pow(2, (at-last).Minutes()/20)
		}
		last = at
		return capacity
	}
}

// severe is a partition that takes a fifth of its reads for 5 seconds.
func severe(at time.Duration, _ float64) float64 {
	if at > 8*time.Second && at < 13*time.Second {
		return 1100
	}
	return 5500
}

// billOfAll is the bill of all pages of a tenant with an eighth of a terabyte over 30 days.
func billOfAll() model.BillFigures {
	reads := func(n int64) model.Reads { return model.Reads{Requests: n, Bytes: n * greedyBytes} }
	return model.BillFigures{Blocks: 960, Pages: 700_000, PagesCached: 40_000, Least: reads(410_000), Likely: reads(520_000), Most: reads(700_000)}
}

// TestIncidentAtScale simulates what once cost another store its bucket for a day: a tenant asks for
// everything of 30 days, and the store throttles. Fifty other tenants look at dashboards meanwhile. All
// wrappers of the bucket and the budgets are those of the server; the clock is that of the test.
func TestIncidentAtScale(t *testing.T) {
	racetest.SkipSerial(t) // one goroutine runs at a time; the suites of the wrappers look for races
	span := 3 * time.Minute
	if testing.Short() {
		span = 24 * time.Second
	}
	const queries = 24
	unbounded := bill.New(bill.Options{})
	row := func(name, alone string, c *crowd, p *region, after time.Duration) {
		t.Logf("| %s | %s | %s | %d | %.0f | %d | %d | %d | %v |", name, alone, c.slow(after).Round(time.Millisecond), c.failed,
			float64(c.reads)/c.span.Seconds(), p.sentAll, p.refusedAll, p.worstSecond, p.locked)
	}
	for _, c := range []struct {
		name, scheme string
		allows       func() func(time.Duration, float64) float64
		// after is the time of the first dashboards that count: the client must find the limit first.
		after time.Duration
		// most is the greatest percentile of these dashboards; 0: twice what it is without the greedy tenant.
		most time.Duration
	}{
		{"S3, one partition: 5,500 reads a second", "s3", func() func(time.Duration, float64) float64 { return s3Partition }, 10 * time.Second, 0},
		{"Google, 5,000 reads a second and its ramp", "gs", googleRamp, 10 * time.Second, 0},
		// The rate has to rise once more, and a dashboard needs a good part of what it is in a tenth of a second.
		{"S3, a fifth of that for 5 s, and the time after", "s3", func() func(time.Duration, float64) float64 { return severe }, 25 * time.Second, 500 * time.Millisecond},
	} {
		if testing.Short() && (c.scheme != "s3" || c.most > 0) {
			continue // each store takes 10 seconds
		}
		var quiet, greedy crowd
		var p *region
		synctest.Test(t, func(t *testing.T) {
			quiet = crowd{b: buckets.Scheduled(newRegion(c.allows()), c.scheme, usualRequests(), nil), span: span}
			quiet.run(t.Context())
		})
		synctest.Test(t, func(t *testing.T) {
			p = newRegion(c.allows())
			greedy = crowd{
				b: buckets.Scheduled(p, c.scheme, usualRequests(), nil), span: span, lanes: queries * lanesOfQuery, account: unbounded.Open([]string{"greedy"}),
			}
			greedy.run(t.Context())
		})
		alone, crowded := quiet.slow(c.after), greedy.slow(c.after)
		row(c.name, alone.Round(time.Millisecond).String(), &greedy, p, c.after)
		if quiet.failed+greedy.failed > 0 || p.locked {
			t.Errorf("%s: locked out: %v; reads of dashboards that failed: %d without the greedy tenant, %d with it", c.name, p.locked, quiet.failed, greedy.failed)
		}
		if crowded > cmp.Or(c.most, 2*alone) {
			t.Errorf("%s: the percentile of the dashboards is %s, and %s without the greedy tenant", c.name, crowded, alone)
		}
		if p.refusedAll > p.sentAll/50 {
			t.Errorf("%s: %d of %d requests were refused", c.name, p.refusedAll, p.sentAll)
		}
		if greedy.reads < 500*int(span.Seconds()) {
			t.Errorf("%s: the greedy tenant made %d reads", c.name, greedy.reads)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p := newRegion(s3Partition)
		c := crowd{b: insistent{p}, span: min(span, 20*time.Second), lanes: queries * lanesOfQuery, account: unbounded.Open([]string{"greedy"})}
		c.run(t.Context())
		row("S3, one partition, without the scheduler", "", &c, p, 0)
		if !p.locked || c.failed == 0 {
			t.Errorf("a client without the scheduler is not locked out: %d of %d requests were refused", p.refusedAll, p.sentAll)
		}
	})
}

// TestIncidentIsRefused refuses the same query by its bill, and slows it down by the budget of an hour.
func TestIncidentIsRefused(t *testing.T) {
	racetest.SkipSerial(t)
	synctest.Test(t, func(t *testing.T) {
		prices := bill.Prices{Requests: 0.4}
		door := bill.New(bill.Options{Limits: bill.Limits{QueryRequests: 100_000, Prices: prices}})
		err := door.Open([]string{"greedy"}).Check(door.State(billOfAll(), model.Reads{Requests: 2000, Bytes: 60e6}, 1))
		if !errors.Is(err, model.ErrLimit) {
			t.Fatalf("the query is not refused: %v", err)
		}
		t.Log(err)
		for _, part := range []string{"at least 410000 requests", "blocks: 960", "pages: 700000", "$0.16", "query.max-bucket-requests is 100000"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the refusal lacks %q: %v", part, err)
			}
		}
		hourly := bill.New(bill.Options{Limits: bill.Limits{TenantRequests: 50_000, Prices: prices}})
		p := newRegion(s3Partition)
		c := crowd{b: buckets.Scheduled(p, "s3", usualRequests(), nil), span: 25 * time.Second, lanes: 4 * lanesOfQuery, account: hourly.Open([]string{"greedy"})}
		c.run(t.Context())
		if c.broke == nil || c.reads > 51_000 || c.failed > 0 {
			t.Errorf("the greedy tenant made %d reads, and was refused by %v; %d reads of dashboards failed", c.reads, c.broke, c.failed)
		}
		t.Log(c.broke)
	})
}
