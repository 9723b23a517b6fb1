package api

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// waitersPerSlot bounds the requests that wait for a turn, and those that wait for memory, since each holds
// its form. More would not get their turn in time anyway.
const waitersPerSlot = 16

// Slots are the turns. The gates of several dialects may share them.
type Slots struct {
	taken chan struct{}
	// Requests that wait for a turn and for memory are counted apart: heavy ones that wait for memory must not
	// keep light ones from waiting for a turn.
	forTurn, forMemory waiters
}

// waiters is the number of requests that wait.
type waiters struct {
	n    atomic.Int64
	most int64
}

// add counts a request, and reports whether it may wait. It must be removed in either case.
func (w *waiters) add() bool { return w.n.Add(1) <= w.most }

func (w *waiters) remove() { w.n.Add(-1) }

// NewSlots returns n turns, and at least one.
func NewSlots(n int) *Slots {
	s := &Slots{taken: make(chan struct{}, max(n, 1))}
	s.forTurn.most = waitersPerSlot * int64(cap(s.taken))
	s.forMemory.most = s.forTurn.most
	return s
}

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
	waiters := &g.slots.forTurn
	defer waiters.remove()
	if !waiters.add() {
		return g.refuse("%w: %d queries are running and %d wait (query.max-concurrent); try again later",
			model.ErrTransient, cap(g.slots.taken), waiters.most)
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
