package progress

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote"
	"github.com/shaledb/shale/internal/read/results"
)

// Settled tells a process with the role query which results it may keep: those of times that only the bucket
// has rows of. The catalogue tells what changes there. So a query asks ingesters first whether they have rows
// of these times, such as late ones. It asks as it would for the rows themselves: whichever process has a
// partition now answers, and has at least what the query must see.
type Settled struct {
	// Holds asks ingesters whether they have rows of a range.
	Holds     func(ctx context.Context, tenant string, s model.Signal, r model.TimeRange) (bool, error)
	ShipEvery time.Duration
	Now       func() int64
	Changes   *results.Changes
	// Losses counts what operators have given up. A result may have rows of it that an ingester had read.
	Losses func() int
	known  atomic.Int64
}

// settledAges are how old rows are, in intervals of ships, that ingesters mostly have no more. If they have
// some of one age, a query tries the next.
var settledAges = [...]int64{2, 12, 72}

// Settled returns [Settled.Until] for what ingesters hold.
func (l *Log) Settled(ingesters *remote.Source, shipEvery time.Duration, now func() int64, changes *results.Changes) func(context.Context, []string, model.Signal, model.TimeRange) (int64, bool) {
	return (&Settled{
		Holds: ingesters.Holds, ShipEvery: shipEvery, Now: now, Changes: changes,
		Losses: func() int { return len(l.Lost()) + len(l.o.Catalog.GivenUp()) },
	}).Until
}

// Until returns the time up to which no ingester has rows of a range that the bucket has not. It returns
// false if there is none, or if that cannot be told: then the query meets the same error.
func (x *Settled) Until(ctx context.Context, tenants []string, s model.Signal, r model.TimeRange) (int64, bool) {
	if n := int64(x.Losses()); x.known.Load() != n {
		x.Changes.All()
		x.known.Store(n)
	}
	for _, age := range settledAges {
		to := min(r.Max, x.Now()-age*int64(x.ShipEvery))
		if to <= r.Min {
			return 0, false
		}
		held := false
		for _, tenant := range tenants {
			some, err := x.Holds(ctx, tenant, s, model.TimeRange{Min: r.Min, Max: to})
			if err != nil {
				return 0, false
			}
			held = held || some
		}
		if !held {
			return to, true
		}
	}
	return 0, false
}
