package prom

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// waitersPerSlot bounds how many requests wait, since each holds its form. More would not get their turn in time anyway.
const waitersPerSlot = 16

// gate lets a bounded number of requests in; a bounded number of others waits for a bounded time.
type gate struct {
	slots   chan struct{}
	waiters atomic.Int64
	maxWait time.Duration
	metrics *metrics
}

func newGate(n int, maxWait time.Duration, m *metrics) *gate {
	return &gate{slots: make(chan struct{}, n), maxWait: maxWait, metrics: m}
}

// enter returns once the request may run. It must leave then.
func (g *gate) enter(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		g.metrics.running.Inc()
		return nil
	default:
	}
	defer g.waiters.Add(-1)
	if g.waiters.Add(1) > waitersPerSlot*int64(cap(g.slots)) {
		return g.refuse("%w: %d queries are running and %d wait (query.max-concurrent); try again later",
			model.ErrTransient, cap(g.slots), waitersPerSlot*cap(g.slots))
	}
	g.metrics.waiting.Inc()
	defer g.metrics.waiting.Dec()
	t := time.NewTimer(g.maxWait)
	defer t.Stop()
	select {
	case g.slots <- struct{}{}:
		g.metrics.running.Inc()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return g.refuse("%w: %d queries are running and none ended within %s (query.max-concurrent); try again later",
			model.ErrTransient, cap(g.slots), g.maxWait)
	}
}

func (g *gate) refuse(format string, args ...any) error {
	g.metrics.refused.Inc()
	return &apiError{typeUnavailable, http.StatusServiceUnavailable, fmt.Errorf(format, args...)}
}

func (g *gate) leave() {
	<-g.slots
	g.metrics.running.Dec()
}
