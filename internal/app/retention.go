package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
	"github.com/shaledb/shale/internal/store/retention"
)

// retentionEvery is the interval between searches for expired blocks.
const retentionEvery = 10 * time.Minute

// expiry drops blocks whose rows have all expired.
type expiry struct {
	catalog *catalog.Catalog
	rules   *retention.Rules
	grace   time.Duration
	now     func() int64
	log     *slog.Logger
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// startExpiry starts to drop expired blocks, until close.
func startExpiry(c *catalog.Catalog, o EngineOptions) *expiry {
	ctx, cancel := context.WithCancel(context.Background())
	// A query that began before a block left the catalogue may read it until the query times out.
	x := &expiry{catalog: c, rules: o.Retention, grace: o.QueryTimeout + time.Minute, now: o.Now, log: o.Logger, stop: cancel}
	if x.now == nil {
		x.now = func() int64 { return time.Now().UnixNano() }
	}
	x.done.Go(func() { x.run(ctx) })
	return x
}

func (x *expiry) run(ctx context.Context) {
	tick := time.NewTicker(retentionEvery)
	defer tick.Stop()
	for {
		if err := x.drop(ctx); err != nil && ctx.Err() == nil {
			x.log.Error("cannot drop expired blocks; will retry", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// drop hides the blocks that have expired, and deletes those that were hidden a while ago.
func (x *expiry) drop(ctx context.Context) error {
	now := compact.ExpiryTime(x.catalog.Live(), x.now())
	return x.catalog.Expire(ctx, func(b *catalog.Block) bool { return compact.Expired(x.rules, b, now) }, x.grace)
}

func (x *expiry) close() {
	x.stop()
	x.done.Wait()
}
