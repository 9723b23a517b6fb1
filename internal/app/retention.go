package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
	"github.com/shaledb/shale/internal/store/retention"
)

// retentionEvery is the interval between searches for expired blocks.
const retentionEvery = 10 * time.Minute

// rules returns the rules of retention that count now. Those of a file of tenants may change at any time.
func (e *Engine) rules() *retention.Rules {
	if own := e.o.Tenants.retention(); own != nil {
		return own
	}
	return e.o.Retention
}

// horizon is [retention.Rules.Horizon] of the rules that count now.
func (e *Engine) horizon(tenant string, s model.Signal, now int64) (oldest int64, h *model.Horizon) {
	return e.rules().Horizon(tenant, s, now)
}

// linesKept returns how long lines of a tenant are kept that no rule selects; 0: forever.
func (e *Engine) linesKept(tenant string) time.Duration {
	p := e.rules().Policy(tenant, model.Logs)
	if rest := p.Rest(); rest != retention.Forever {
		return rest
	}
	return 0
}

// rulesChanged drops the responses and results of before. Rows that these lack may be shown now.
func (e *Engine) rulesChanged() {
	e.resultChanges.All()
	e.changes.Whole() // last, since answers are made of results
}

// expiry drops blocks whose rows have all expired.
type expiry struct {
	catalog *catalog.Catalog
	compact *compact.Compactor
	rules   func() *retention.Rules
	grace   time.Duration
	now     func() int64
	log     *slog.Logger
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// startExpiry starts to drop expired blocks, until close.
func startExpiry(c *catalog.Catalog, merges *compact.Compactor, rules func() *retention.Rules, o EngineOptions) *expiry {
	ctx, cancel := context.WithCancel(context.Background())
	// A query that began before a block left the catalogue may read it until the query times out.
	x := &expiry{catalog: c, compact: merges, rules: rules, grace: o.QueryTimeout + time.Minute, now: o.Now, log: o.Logger, stop: cancel}
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
	now, rules := compact.ExpiryTime(x.catalog.Live(), x.now()), x.rules()
	return x.catalog.Expire(ctx, func(b *catalog.Block) bool { return x.compact.Expired(rules, b, now) }, x.grace)
}

func (x *expiry) close() {
	x.stop()
	x.done.Wait()
}
