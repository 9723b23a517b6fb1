package app

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/store/catalog"
)

// retentionEvery is the interval between searches for expired blocks.
const retentionEvery = 10 * time.Minute

// retention drops blocks whose samples have all expired.
type retention struct {
	catalog *catalog.Catalog
	keep    time.Duration
	grace   time.Duration
	now     func() int64
	log     *slog.Logger
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// startRetention starts to drop expired blocks, until close.
func startRetention(c *catalog.Catalog, o EngineOptions) *retention {
	ctx, cancel := context.WithCancel(context.Background())
	// A query that began before a block left the catalogue may read it until the query times out.
	r := &retention{catalog: c, keep: o.Retention, grace: o.QueryTimeout + time.Minute, now: o.Now, log: o.Logger, stop: cancel}
	if r.now == nil {
		r.now = func() int64 { return time.Now().UnixNano() }
	}
	r.done.Go(func() { r.run(ctx) })
	return r
}

func (r *retention) run(ctx context.Context) {
	tick := time.NewTicker(retentionEvery)
	defer tick.Stop()
	for {
		if err := r.catalog.Expire(ctx, r.horizon(), r.grace); err != nil && ctx.Err() == nil {
			r.log.Error("cannot drop expired blocks; will retry", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// horizon returns the time before which samples have expired. It follows the newest block, not the clock
// alone: a clock that is wrong for a moment must not empty the bucket.
func (r *retention) horizon() int64 {
	newest := int64(math.MinInt64)
	for _, b := range r.catalog.Live() {
		newest = max(newest, b.Range.Max)
	}
	newest = min(newest, r.now())
	if r.keep <= 0 || newest < math.MinInt64+int64(r.keep) {
		return math.MinInt64
	}
	return newest - int64(r.keep)
}

func (r *retention) close() {
	r.stop()
	r.done.Wait()
}
