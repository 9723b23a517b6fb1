package replay

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/plan/evict"
	"github.com/shaledb/shale/internal/plan/trace"
)

// Grid runs a trace through all cases, so many at one time, and returns their figures in the order of the
// cases. Progress is called with the number of requests that were done since the last call, by several
// goroutines.
func Grid(ctx context.Context, t *trace.Trace, cases []Case, workers int, progress func(requests int)) ([]Counts, error) {
	var next []uint32
	for _, c := range cases {
		if c.Policy == evict.Optimum && next == nil {
			next = NextRequests(t)
		}
	}
	counts := make([]Counts, len(cases))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i, c := range cases {
		g.Go(func() (err error) {
			counts[i], err = Run(ctx, t, c, next, progress)
			return err
		})
	}
	return counts, g.Wait()
}
