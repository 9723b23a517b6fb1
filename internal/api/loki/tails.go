package loki

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// tenantsOfTails is the ratio of the tail connections of all tenants to the maximum of one tenant.
const tenantsOfTails = 16

// tails bounds the tail connections.
type tails struct {
	ctx     context.Context // ends with close
	cancel  context.CancelFunc
	running sync.WaitGroup
	most    int // of one tenant

	mu       sync.Mutex
	closed   bool
	byTenant map[string]int
	all      int
}

func newTails(most int) *tails {
	ctx, cancel := context.WithCancel(context.Background())
	return &tails{ctx: ctx, cancel: cancel, most: most, byTenant: make(map[string]int)}
}

// tailPlace is a slot for a tail connection.
type tailPlace struct {
	ctx    context.Context // of the connection
	tenant string
}

// enter takes a slot. The caller must give it to leave.
func (t *tails) enter(tenant string) (*tailPlace, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byTenant[tenant]
	switch {
	case t.closed:
		return nil, fmt.Errorf("%w: the server is shutting down", model.ErrClosed)
	case n >= t.most:
		return nil, failed(http.StatusBadRequest, fmt.Errorf("max concurrent tail requests limit exceeded, count > limit (%d > %d)", n+1, t.most))
	case t.all >= tenantsOfTails*t.most:
		return nil, failed(http.StatusTooManyRequests, fmt.Errorf("max concurrent tail requests limit of all tenants exceeded, count > limit (%d > %d)", t.all+1, tenantsOfTails*t.most))
	}
	t.byTenant[tenant] = n + 1
	t.all++
	t.running.Add(1)
	return &tailPlace{t.ctx, tenant}, nil
}

func (t *tails) leave(p *tailPlace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byTenant[p.tenant]--; t.byTenant[p.tenant] == 0 {
		delete(t.byTenant, p.tenant)
	}
	t.all--
	t.running.Done()
}

// close ends all connections and waits for them.
func (t *tails) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	t.running.Wait()
}
