package compact

import (
	"context"
	"math"
	"time"

	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/retention"
)

// keeps returns the shortest and the longest time for which series of a block may be kept, as far as its
// record tells.
func keeps(r *retention.Rules, b *catalog.Block) (least, longest time.Duration) {
	if keep, ok := r.KeepOf(b.Group); ok {
		return keep, keep
	}
	return r.Bounds(b.Tenants, b.Signal)
}

// Expired reports whether all rows of a block have expired, as far as its record tells.
func Expired(r *retention.Rules, b *catalog.Block, now int64) bool {
	_, longest := keeps(r, b)
	return b.Newest() < retention.Before(now, longest)
}

// ExpiryTime is the time by which rows expire for good: that of the newest block, if the clock is ahead of
// it. A clock that is wrong for a moment must not empty the bucket.
func ExpiryTime(live []catalog.Block, now int64) int64 {
	newest := int64(math.MinInt64)
	for i := range live {
		newest = max(newest, live[i].Range.Max)
	}
	return min(newest, now)
}

func (c *Compactor) expiryTime() int64 {
	live, _ := c.o.Catalog.Snapshot()
	return ExpiryTime(live, c.o.Now())
}

// nextExpired returns a merge of a block of which some series have expired and others have not, or nil.
// Blocks that have expired as a whole are dropped without being read.
func (c *Compactor) nextExpired(ctx context.Context, blocks []catalog.Block, tried map[string]bool) (*job, error) {
	now, rules := ExpiryTime(blocks, c.o.Now()), c.o.Retention()
	if c.keepsOf != rules {
		clear(c.keeps)
		c.keepsOf = rules
	}
	for i := range blocks {
		b := &blocks[i]
		least, longest := keeps(rules, b)
		if least == longest || b.Level < catalog.Settled || b.Newest() >= retention.Before(now, least) || !c.mayMerge(b, tried) {
			continue
		}
		keep, known := c.keeps[b.ID]
		if !known {
			var err error
			if keep, err = c.shortestKeep(ctx, rules, b, now); err != nil {
				tried[b.ID] = true
				return nil, err
			}
			c.keeps[b.ID] = keep
		}
		if b.Newest() < retention.Before(now, keep) {
			return rewriteOf(becauseExpire, b), nil
		}
	}
	return nil, nil
}

// shortestKeep returns the shortest time for which any series of a block is kept. It does not look further
// than to the first series that has expired.
func (c *Compactor) shortestKeep(ctx context.Context, rules *retention.Rules, b *catalog.Block, now int64) (keep time.Duration, err error) {
	m := &merge{c: c, ctx: ctx}
	err = m.caught(func() (err error) {
		keep, err = m.shortestKeep(ctx, rules, b, now)
		return err
	})
	return keep, err
}

func (m *merge) shortestKeep(ctx context.Context, rules *retention.Rules, b *catalog.Block, now int64) (time.Duration, error) {
	r, err := m.reader(ctx, b, leastWindow)
	if err != nil {
		return 0, err
	}
	m.reading = b.ID
	shortest := retention.Forever
	for _, t := range r.Meta().Tenants {
		p := rules.Policy(t.Name, b.Signal)
		if p.Least >= shortest {
			continue
		}
		if p.Least == p.Longest {
			shortest = p.Least
			continue
		}
		ranks, err := r.Select(ctx, t.Name, nil)
		if err != nil {
			return 0, &inputError{b.ID, err}
		}
		series := r.SeriesAt(ctx, t.Name, true)
		for _, rank := range ranks {
			if err := series.Seek(rank); err != nil {
				return 0, &inputError{b.ID, err}
			}
			if shortest = min(shortest, p.Keep(series.Labels())); b.Newest() < retention.Before(now, shortest) {
				return shortest, nil
			}
		}
	}
	return shortest, nil
}
