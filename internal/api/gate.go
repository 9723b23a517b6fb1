package api

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// waitersPerSlot bounds the waiting requests, since each holds its form. More would not get their turn in
// time anyway.
const waitersPerSlot = 16

// Slots are the turns. The gates of several dialects may share them.
type Slots struct {
	taken   chan struct{}
	waiters atomic.Int64
}

// addWaiter counts a request that waits for a turn or for memory, and reports whether it may wait.
func (s *Slots) addWaiter() bool { return s.waiters.Add(1) <= waitersPerSlot*int64(cap(s.taken)) }

// NewSlots returns n turns, and at least one.
func NewSlots(n int) *Slots { return &Slots{taken: make(chan struct{}, max(n, 1))} }

// Gate lets a bounded number of requests in. A bounded number of others waits, for a bounded time.
type Gate struct {
	slots   *Slots
	maxWait time.Duration
	metrics GateMetrics
}

// NewGate returns a gate to the slots that lets requests wait for maxWait.
func NewGate(s *Slots, maxWait time.Duration, m GateMetrics) *Gate {
	return &Gate{slots: s, maxWait: maxWait, metrics: m}
}

// Enter returns once the request may run; the request must then call Leave. The error is that of the context
// or a [TurnError].
func (g *Gate) Enter(ctx context.Context) error {
	select {
	case g.slots.taken <- struct{}{}:
		g.metrics.Running.Inc()
		return nil
	default:
	}
	defer g.slots.waiters.Add(-1)
	if !g.slots.addWaiter() {
		return g.refuse("%w: %d queries are running and %d wait (query.max-concurrent); try again later",
			model.ErrTransient, cap(g.slots.taken), waitersPerSlot*cap(g.slots.taken))
	}
	g.metrics.Waiting.Inc()
	defer g.metrics.Waiting.Dec()
	t := time.NewTimer(g.maxWait)
	defer t.Stop()
	select {
	case g.slots.taken <- struct{}{}:
		g.metrics.Running.Inc()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return g.refuse("%w: %d queries are running and none ended within %s (query.max-concurrent); try again later",
			model.ErrTransient, cap(g.slots.taken), g.maxWait)
	}
}

// EnterAgain is Enter for a request that gave back its turn to wait for memory. It waits until the context
// ends.
func (g *Gate) EnterAgain(ctx context.Context) error {
	g.metrics.Waiting.Inc()
	defer g.metrics.Waiting.Dec()
	select {
	case g.slots.taken <- struct{}{}:
		g.metrics.Running.Inc()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Gate) refuse(format string, args ...any) error {
	g.metrics.Refused.Inc()
	return &TurnError{fmt.Errorf(format, args...)}
}

// Leave lets the next request in.
func (g *Gate) Leave() {
	<-g.slots.taken
	g.metrics.Running.Dec()
}
