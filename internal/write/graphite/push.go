package graphite

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// A failed push is retried after firstRetry, then after about twice the previous wait, up to lastRetry.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// push makes the rows of a chunk durable. It retries while the write path refuses them temporarily,
// until ctx ends.
func (l *Listener) push(ctx context.Context, tenant string, t *transport, c *chunk) {
	l.syncRules()
	b := l.o.Sink.Batch(tenant, model.Metrics)
	defer l.o.Sink.Recycle(b)
	c.fill(b)
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		c.begin(ctx, l.labels, tenant)
		res, err := l.o.Sink.Push(ctx, b)
		c.end(b, err)
		l.logRejected(res)
		t.received.Add(float64(res.Stored)) // a failed push may have stored some rows
		if err == nil {
			return
		}
		var refused *write.Refused
		if errors.As(err, &refused) && refused.NewSeries {
			// Known series of the connection must not wait until the tenant may have more series. The write
			// path has counted these.
			t.dropped.Add(float64(b.Samples.Len()))
			l.log.failure("points of new series lost", "transport", t.name, "points", b.Samples.Len(), "error", err)
			return
		}
		if !errors.Is(err, model.ErrTransient) || ctx.Err() != nil {
			l.lost(tenant, t, b.Samples.Len(), err)
			return
		}
		t.retries.Inc()
		l.log.failure("the write path refuses points for now; retrying", "transport", t.name, "points", b.Samples.Len(), "error", err)
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			l.lost(tenant, t, b.Samples.Len(), err)
			return
		}
	}
}

// lost counts received rows that will not be stored.
func (l *Listener) lost(tenant string, t *transport, rows int, err error) {
	t.dropped.Add(float64(rows))
	l.o.Sink.Discard(tenant, write.ReasonOverload, rows)
	l.log.failure("points lost", "transport", t.name, "points", rows, "error", err)
}

func (l *Listener) logRejected(res write.Result) {
	for i := range res.Rejected {
		r := &res.Rejected[i]
		example := ""
		if len(r.Examples) > 0 {
			example = r.Examples[0]
		}
		l.log.rejected("points rejected", "reason", r.Reason, "points", r.Samples, "example", example)
	}
}
