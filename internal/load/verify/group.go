package verify

import (
	"context"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/fleet"
)

// group compares the series [first, first+size), which are those of a metric and a target, in all of their
// cycles.
func (c *checker) group(ctx context.Context, first, size int64) {
	f := c.State.RemoteWrite
	rounds := c.from.rounds()
	each := max(1, maxRoundsPerQuery/int(size))
	for round := 0; round < rounds && ctx.Err() == nil; round += each {
		end := min(round+each, rounds)
		ls := f.GroupMatchers(first)
		curves, err := c.curves(ctx, first, ls, round, end)
		if err != nil {
			continue
		}
		of := map[string][]client.Series{}
		for _, curve := range curves {
			id := curve.Metric[fleet.SeriesLabel]
			of[id] = append(of[id], curve)
		}
		for g := first; g < first+size; g++ {
			id := f.SeriesID(g)
			c.compare(ctx, g, round, end, of[id])
			delete(of, id)
		}
		for _, others := range of {
			for _, other := range others {
				c.note(&c.out.Extra, 1, "%s: one series too many: %v", fleet.SelectorOf(ls), other.Metric)
			}
		}
	}
	if c.Metadata && f.Metadata && ctx.Err() == nil {
		c.metadata(ctx, first)
	}
	c.add(&c.out.Series, size)
	for range size {
		c.done()
	}
}
