package write

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// budget bounds the bytes that requests may hold at one time. It serves waiters in order of arrival.
type budget struct {
	mu      sync.Mutex
	max     int64
	used    int64
	waiters []waiter
}

type waiter struct {
	bytes int64
	ready chan struct{}
}

func (b *budget) init(max int64) { b.max = max }

// try takes n bytes if they are free and no request is waiting.
func (b *budget) try(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tryLocked(n)
}

func (b *budget) tryLocked(n int64) bool {
	if !b.freeLocked(n) {
		return false
	}
	b.used += n
	return true
}

// free reports whether try would succeed.
func (b *budget) free(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.freeLocked(n)
}

func (b *budget) freeLocked(n int64) bool {
	return len(b.waiters) == 0 && (b.max <= 0 || b.used+n <= b.max)
}

// wait takes n bytes as soon as they are free.
func (b *budget) wait(ctx context.Context, n int64) error {
	b.mu.Lock()
	if b.tryLocked(n) {
		b.mu.Unlock()
		return nil
	}
	w := waiter{bytes: n, ready: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.waiters {
		if b.waiters[i].ready == w.ready {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.wakeLocked() // the next waiter may fit now that this one has left the queue
			return ctx.Err()
		}
	}
	// wakeLocked granted the bytes just as the context ended: give them back.
	b.used -= n
	b.wakeLocked()
	return ctx.Err()
}

func (b *budget) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.wakeLocked()
}

func (b *budget) wakeLocked() {
	for len(b.waiters) > 0 && (b.max <= 0 || b.used+b.waiters[0].bytes <= b.max) {
		w := b.waiters[0]
		b.waiters = b.waiters[1:]
		b.used += w.bytes
		close(w.ready)
	}
}

// halfFree reports whether at least half of the budget is free and no request is waiting.
func (b *budget) halfFree() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.max <= 0 || len(b.waiters) == 0 && b.used <= b.max/2
}

func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Grant is a request's share of the byte budget. It belongs to one goroutine at a time.
type Grant struct {
	p      *Path
	tenant string
	// account counts the request for its tenant; nil: it is not counted, since its receiver waits for memory.
	account *account
	bytes   int64
	// refused says that the request is counted as refused. It may ask for less, and several times.
	refused bool
}

// Admit reserves bytes for a request before they are read. It does not wait: if the budget is
// exhausted, it returns a *Refused that asks the sender to retry.
func (p *Path) Admit(_ context.Context, tenant string, bytes int64) (*Grant, error) {
	if err := p.checkOpen(tenant); err != nil {
		return nil, err
	}
	t, err := p.begin(tenant)
	if err != nil {
		return nil, err
	}
	g := &Grant{p: p, tenant: tenant, account: t}
	if err := g.Grow(bytes); err != nil {
		g.end()
		return nil, err
	}
	return g, nil
}

// TryAdmit reserves bytes if they are free now and reports in ok whether they were. Unlike Admit, it
// neither returns an error nor counts a refusal when the budget is exhausted.
func (p *Path) TryAdmit(tenant string, bytes int64) (g *Grant, ok bool, err error) {
	if err := p.checkOpen(tenant); err != nil {
		return nil, false, err
	}
	if err := p.fits(bytes); err != nil {
		p.countRefusal()
		return nil, false, err
	}
	if !p.budget.try(bytes) {
		return nil, false, nil
	}
	return &Grant{p: p, bytes: bytes}, true, nil
}

// checkOpen returns an error if the tenant's name is invalid or the path is closed.
func (p *Path) checkOpen(tenant string) error {
	if err := ValidTenant(tenant); err != nil {
		return err
	}
	if p.gate.closed.Load() {
		return errStopping()
	}
	return nil
}

// AdmitWait reserves bytes and waits until they are free. It is for receivers that apply back-pressure
// by not reading.
func (p *Path) AdmitWait(ctx context.Context, tenant string, bytes int64) (*Grant, error) {
	if err := p.checkOpen(tenant); err != nil {
		return nil, err
	}
	if err := p.fits(bytes); err != nil {
		p.countRefusal()
		return nil, err
	}
	if err := p.budget.wait(ctx, bytes); err != nil {
		return nil, err
	}
	return &Grant{p: p, bytes: bytes}, nil
}

// Grow reserves more bytes. Its error is a *Refused.
func (g *Grant) Grow(bytes int64) error {
	if err := g.p.fits(bytes + g.bytes); err != nil {
		return g.refuse(err)
	}
	if err := g.hold(bytes); err != nil {
		return err
	}
	if !g.p.budget.try(bytes) {
		g.unhold(bytes)
		return g.refuse(g.p.exhausted(bytes))
	}
	g.bytes += bytes
	return nil
}

// Expect checks like Grow whether the bytes would fit, but reserves nothing. A request that is too
// large is refused before it is sent, and a sender that announces a large body and sends little does
// not block others.
func (g *Grant) Expect(bytes int64) error {
	if err := g.p.fits(bytes + g.bytes); err != nil {
		return g.refuse(err)
	}
	if !g.p.budget.free(bytes) {
		return g.refuse(g.p.exhausted(bytes))
	}
	return nil
}

// refuse counts a request once that memory is refused.
func (g *Grant) refuse(err error) error {
	if !g.refused {
		g.refused = true
		g.p.countRefusal()
	}
	return err
}

func (p *Path) countRefusal() {
	p.metrics.refusedRequests.WithLabelValues("limits.inflight-bytes").Inc()
}

// exhausted returns the refusal of a request that does not fit into the budget now.
func (p *Path) exhausted(bytes int64) error {
	return &Refused{
		Status: http.StatusServiceUnavailable, Limit: "limits.inflight-bytes", RetryAfter: 2 * time.Second,
		Text: fmt.Sprintf("requests in flight hold %d of %d bytes and this one needs %d more; retry later",
			p.budget.inUse(), p.budget.max, bytes),
	}
}

// fits refuses a request that would not fit even if it were the only one.
func (p *Path) fits(bytes int64) error {
	if p.budget.max <= 0 || bytes <= p.budget.max {
		return nil
	}
	return &Refused{
		Status: http.StatusRequestEntityTooLarge, Limit: "limits.inflight-bytes",
		Text: fmt.Sprintf("the request needs %d bytes, but all requests in flight together may hold %d; send smaller requests", bytes, p.budget.max),
	}
}

// Compute returns the context of a request whose body has arrived. While several tenants write, it waits
// until the tenant's other requests leave it a processor: see [model.Processors]. The caller must call end.
func (g *Grant) Compute(ctx context.Context) (own context.Context, end func()) {
	return g.p.processors.Run(ctx, g.tenant)
}

// Release returns all reserved bytes. It may be called more than once.
func (g *Grant) Release() {
	g.end()
	if g.bytes != 0 {
		g.p.budget.release(g.bytes)
		g.bytes = 0
	}
}
