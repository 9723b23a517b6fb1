package prom

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// gate lets a bounded number of requests in; the others wait a bounded time.
type gate struct {
	slots   chan struct{}
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
		g.metrics.refused.Inc()
		return &apiError{typeUnavailable, http.StatusServiceUnavailable, fmt.Errorf(
			"%w: %d queries are running and none ended within %s (query.max-concurrent); try again later",
			model.ErrTransient, cap(g.slots), g.maxWait)}
	}
}

func (g *gate) leave() {
	<-g.slots
	g.metrics.running.Dec()
}
