package graphite

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// The waits before a push is tried again, each about twice the one before.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// push makes the rows of a chunk durable. While the write path refuses for a time, it tries again; ctx ends that.
func (l *Listener) push(ctx context.Context, t *transport, c *chunk) {
	b := l.o.Sink.Batch(l.tenant, model.Metrics)
	defer l.o.Sink.Recycle(b)
	c.fill(b)
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		res, err := l.o.Sink.Push(ctx, b)
		l.complainLeftOut(res)
		t.received.Add(float64(res.Stored)) // some may be stored while others are held back
		if err == nil {
			return
		}
		if !errors.Is(err, model.ErrTransient) || ctx.Err() != nil {
			l.lost(t, b.Samples.Len(), err)
			return
		}
		t.retries.Inc()
		l.log.trouble("the write path takes no points for now; trying again", "transport", t.name, "points", b.Samples.Len(), "error", err)
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			l.lost(t, b.Samples.Len(), err)
			return
		}
	}
}

// lost counts rows that were received and will not be stored.
func (l *Listener) lost(t *transport, rows int, err error) {
	t.dropped.Add(float64(rows))
	l.o.Sink.Discard(write.ReasonOverload, rows)
	l.log.trouble("points are lost", "transport", t.name, "points", rows, "error", err)
}

func (l *Listener) complainLeftOut(res write.Result) {
	for i := range res.Rejected {
		r := &res.Rejected[i]
		example := ""
		if len(r.Examples) > 0 {
			example = r.Examples[0]
		}
		l.log.leftOut("points are left out", "reason", r.Reason, "points", r.Samples, "example", example)
	}
}
