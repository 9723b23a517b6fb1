package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/turns"
)

// waiters is the number of requests that wait for memory.
type waiters struct {
	n    atomic.Int64
	most int64
}

// add counts a request, and reports whether it may wait. It must be removed in either case.
func (w *waiters) add() bool { return w.n.Add(1) <= w.most }

func (w *waiters) remove() { w.n.Add(-1) }

// Gate lets a bounded number of requests in. A bounded number of others waits, for a bounded time. The tenant
// of a request is that of the caller in its context.
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
func (g *Gate) Enter(ctx context.Context) error { return g.EnterWithin(ctx, 0) }

// EnterWithin is Enter for a tenant that may have most requests that run or wait; 0: as many as fit. Beyond,
// the error has the status 429.
func (g *Gate) EnterWithin(ctx context.Context, most int) error {
	tenant := model.CallerOf(ctx).Tenant
	w, err := g.slots.Enter(tenant, most, false)
	var full *turns.TenantFullError
	var queue *turns.FullError
	switch {
	case errors.As(err, &full):
		g.metrics.Refused.Inc()
		return &Error{Status: http.StatusTooManyRequests, Err: fmt.Errorf(
			"tenant %s has %s running or waiting, and may have %d (query.tenant-concurrent); send fewer at a time",
			tenant, english.Plural(full.Has, "query", ""), full.May)}
	case errors.As(err, &queue):
		return g.refuse("%w: %s running and %d waiting (query.max-concurrent); try again later",
			model.ErrTransient, english.Plural(g.slots.Running(), "query", ""), queue.Waiting)
	}
	t := time.NewTimer(g.maxWait)
	defer t.Stop()
	err = g.await(ctx, w, t.C)
	if errors.Is(err, errNoTurn) {
		return g.refuse("%w: %s running, and none ended within %s (query.max-concurrent); try again later",
			model.ErrTransient, english.Plural(g.slots.Running(), "query", ""), g.maxWait)
	}
	return err
}

// EnterAgain is Enter for a request that gave back its turn to wait for memory. It waits until the context
// ends.
func (g *Gate) EnterAgain(ctx context.Context) error {
	w, _ := g.slots.Enter(model.CallerOf(ctx).Tenant, 0, true) // never refused
	return g.await(ctx, w, nil)
}

// errNoTurn says that a request has waited too long.
var errNoTurn = errors.New("no turn in time")

// await waits for the turn of a request, if w is not nil. Without a turn it returns the error of the context
// or errNoTurn.
func (g *Gate) await(ctx context.Context, w *turns.Waiter, timeout <-chan time.Time) (err error) {
	if w == nil {
		g.metrics.Running.Inc()
		return nil
	}
	g.metrics.Waiting.Inc()
	defer g.metrics.Waiting.Dec()
	select {
	case <-w.Granted():
		g.metrics.Running.Inc()
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout:
		err = errNoTurn
	}
	if g.slots.Cancel(w) {
		return err
	}
	g.metrics.Running.Inc() // it got its turn meanwhile
	return nil
}

func (g *Gate) refuse(format string, args ...any) error {
	g.metrics.Refused.Inc()
	return &TurnError{fmt.Errorf(format, args...)}
}

// Leave lets the next request in. The context is that of Enter.
func (g *Gate) Leave(ctx context.Context) {
	g.slots.Leave(model.CallerOf(ctx).Tenant)
	g.metrics.Running.Dec()
}

// pause is Leave for a request that has not ended. It reports false, and the request keeps its turn, if too
// many pause.
func (g *Gate) pause(ctx context.Context) bool {
	if !g.slots.Pause(model.CallerOf(ctx).Tenant) {
		return false
	}
	g.metrics.Running.Dec()
	g.metrics.Unread.Inc()
	return true
}

// resume ends the pause of a request, which has another turn or has ended.
func (g *Gate) resume(ctx context.Context) {
	g.slots.Resume(model.CallerOf(ctx).Tenant)
	g.metrics.Unread.Dec()
}
