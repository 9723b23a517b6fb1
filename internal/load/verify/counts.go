package verify

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/fleet"
)

// tallyQuery is one count: an expression at a time, and the bounds of its value. If step is set, it is
// evaluated at all times of a range, and the bounds hold for the sum of its values.
type tallyQuery struct {
	inTenant       int    // number
	tenant         string // name
	what           string
	expr           string
	from, ms, step int64
	least, most    int64
}

// countConcurrency is low because each count may hold a million samples in the server's memory.
const countConcurrency = 2

// counts compares the number of stored samples with the number of acknowledged ones, for every metric of a
// fleet, or in total for a fleet of agents.
func (c *checker) counts(ctx context.Context) {
	queries := make(chan tallyQuery)
	var total, bound, most int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range min(c.Concurrency, countConcurrency) {
		wg.Go(func() {
			for q := range queries {
				n, ok := c.count(ctx, q)
				mu.Lock()
				total += n
				if !ok {
					total = math.MinInt64 / 2 // the failed query has been noted; there is no total
				}
				mu.Unlock()
			}
		})
	}
	send := func(q tallyQuery) {
		bound, most = bound+q.least, most+q.most
		select {
		case queries <- q:
		case <-ctx.Done():
		}
	}
	switch from := c.from.(type) {
	case *fleetOrigin:
		from.counts(c.Chunk, func(q tallyQuery) {
			q.tenant = from.TenantName(c.Server.Tenant, q.inTenant)
			send(q)
		})
	case *agentsOrigin:
		from.counts(c.Chunk, func(q tallyQuery) {
			q.tenant = c.Server.Tenant
			send(q)
		})
		if bound = from.least(); from.intact {
			bound = most
		}
	}
	close(queries)
	wg.Wait()
	if total < 0 || ctx.Err() != nil {
		return
	}
	c.out.Counted, c.out.CountedOf = total, bound
	// For a fleet, each query has noted this.
	if _, ok := c.from.(*agentsOrigin); ok && total < bound {
		c.note(&c.out.Short, bound-total, "%d points stored, but the server had received %d", total, bound)
	}
}

// count runs one query.
func (c *checker) count(ctx context.Context, q tallyQuery) (int64, bool) {
	var curves []client.Series
	if c.ask(func() (err error) {
		server := c.Server.As(q.tenant)
		if q.step > 0 {
			curves, err = server.QueryRange(ctx, q.expr, q.from, q.ms, q.step)
		} else {
			curves, err = server.Query(ctx, q.expr, q.ms)
		}
		return err
	}) != nil {
		return 0, false
	}
	var n int64
	for _, curve := range curves {
		n += int64(math.Float64frombits(curve.Value.Bits))
		for _, s := range curve.Values {
			n += int64(math.Float64frombits(s.Bits))
		}
	}
	if n < q.least {
		c.note(&c.out.Short, q.least-n, "%s: %d samples stored, %d acknowledged", q.what, n, q.least)
	}
	if n > q.most {
		c.note(&c.out.Over, n-q.most, "%s: %d samples stored, %d sent", q.what, n, q.most)
	}
	return n, true
}

// Bounds of one count besides its samples: the number of series, and of names in its pattern.
const (
	maxSeriesPerCount = 100_000
	maxNamesPerCount  = 1000
)

// counts cuts the fleet into queries of at most chunk samples: by metric, then by rounds, and by targets if
// even one round is too much.
func (o *fleetOrigin) counts(chunk int64, send func(tallyQuery)) {
	rounds := o.rounds()
	perTarget := int64(o.Series) * int64(o.ScraperCount())
	targets := int(min(int64(o.Targets), max(1, min(chunk, maxSeriesPerCount)/perTarget)))
	if targets < o.Targets {
		targets = min(targets, maxNamesPerCount)
	}
	step := 1
	if targets == o.Targets {
		step = int(max(1, chunk/(perTarget*int64(o.Targets))))
	}
	for tenant := range o.TenantCount() {
		for metric := range o.Metrics {
			for first := 0; first < rounds; first += step {
				end := min(first+step, rounds)
				for t := 0; t < o.Targets; t += targets {
					send(o.countQuery(tenant, metric, t, min(t+targets, o.Targets), first, end))
				}
			}
		}
	}
}

func (o *fleetOrigin) countQuery(tenant, metric, fromTarget, toTarget, first, end int) tallyQuery {
	q := tallyQuery{inTenant: tenant, ms: o.state.Timeline.Ms(end) - 1}
	selector := fmt.Sprintf("%s{job=%q}", o.MetricName(metric), o.Job())
	if toTarget-fromTarget < o.Targets {
		selector = fmt.Sprintf("%s{job=%q,instance=~%q}", o.MetricName(metric), o.Job(), o.instances(fromTarget, toTarget))
	}
	q.what = fmt.Sprintf("%s of targets %d to %d, rounds %d to %d", o.MetricName(metric), fromTarget, toTarget-1, first, end-1)
	// A count leaves out stale markers.
	q.expr = fmt.Sprintf("sum(count_over_time(%s%s))", selector, client.Window(o.state.Timeline.Ms(first), q.ms))
	for round := first; round < end; round++ {
		if o.regular() && o.state.Acks.Whole(round) {
			all := int64(toTarget-fromTarget) * int64(o.Series) * int64(o.ScraperCount())
			q.least, q.most = q.least+all, q.most+all
			continue
		}
		for scraper := range o.ScraperCount() {
			for t := fromTarget; t < toTarget; t++ {
				least, most := o.bounds(round, o.Number(fleet.Place{Tenant: tenant, Scraper: scraper, Target: t, Metric: metric, Series: 0}), int64(o.Series))
				q.least, q.most = q.least+least, q.most+most
			}
		}
	}
	return q
}

// regular reports whether the requests of a round have exactly one sample of each series, all of that round.
func (o *fleetOrigin) regular() bool { return o.Course.Rollout == 0 && !o.Reordering.On() }

func (o *fleetOrigin) instances(from, to int) string {
	var sb strings.Builder
	for t := from; t < to; t++ {
		if t > from {
			sb.WriteByte('|')
		}
		sb.WriteString(strings.ReplaceAll(o.Instance(t), ".", `\.`))
	}
	return sb.String()
}

// bounds returns how many samples of a round the series [g, g+n) of a target must have, and how many they may
// have.
func (o *fleetOrigin) bounds(round int, g, n int64) (least, most int64) {
	count := func(known certainty, n int64) {
		if known == surely {
			least += n
		}
		if known != never {
			most += n
		}
	}
	if round < o.First(o.Place(g).Target) {
		return 0, 0
	}
	for end := g + n; g < end; {
		if o.Reordering.On() {
			count(o.certainty(g, round), 1)
			g++
			continue
		}
		batch, next := o.BatchOf(g, o.state.Batch)
		next = min(end, next)
		count(o.batchCertainty(round, batch), next-g)
		g = next
	}
	return least, most
}
