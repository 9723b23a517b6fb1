package api

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// waitersPerSlot bounds how many requests wait, since each holds its form. More would not get their turn in time anyway.
const waitersPerSlot = 16

// GateMetrics count what happens at a gate.
type GateMetrics struct {
	Running, Waiting prometheus.Gauge
	Refused          prometheus.Counter
}

// Gate lets a bounded number of requests in; a bounded number of others waits for a bounded time.
type Gate struct {
	slots   chan struct{}
	waiters atomic.Int64
	maxWait time.Duration
	metrics GateMetrics
}

// NewGate returns a gate that lets n requests in at one time and lets others wait for maxWait.
func NewGate(n int, maxWait time.Duration, m GateMetrics) *Gate {
	return &Gate{slots: make(chan struct{}, n), maxWait: maxWait, metrics: m}
}

// Enter returns once the request may run. It must leave then. Its error is that of the context, or of class
// [model.ErrTransient].
func (g *Gate) Enter(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		g.metrics.Running.Inc()
		return nil
	default:
	}
	defer g.waiters.Add(-1)
	if g.waiters.Add(1) > waitersPerSlot*int64(cap(g.slots)) {
		return g.refuse("%w: %d queries are running and %d wait (query.max-concurrent); try again later",
			model.ErrTransient, cap(g.slots), waitersPerSlot*cap(g.slots))
	}
	g.metrics.Waiting.Inc()
	defer g.metrics.Waiting.Dec()
	t := time.NewTimer(g.maxWait)
	defer t.Stop()
	select {
	case g.slots <- struct{}{}:
		g.metrics.Running.Inc()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return g.refuse("%w: %d queries are running and none ended within %s (query.max-concurrent); try again later",
			model.ErrTransient, cap(g.slots), g.maxWait)
	}
}

func (g *Gate) refuse(format string, args ...any) error {
	g.metrics.Refused.Inc()
	return fmt.Errorf(format, args...)
}

// Leave lets the next one in.
func (g *Gate) Leave() {
	<-g.slots
	g.metrics.Running.Dec()
}
