package model

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Processors shares the processors of the machine among the tenants whose queries compute, or whose writes
// do.
//
// A goroutine of a query enters before it computes, and leaves before it waits. It also leaves between two
// pages, so that other goroutines of its tenant have their turn. How many goroutines of a tenant compute is
// bounded while other tenants send queries:
//
//   - by three quarters of the processors while a query of another tenant runs, and by all but one if that is
//     less; one may always compute. So a query of another tenant finds a free processor.
//   - by as many if the tenant runs several queries, and others send requests all the time. Most of them come
//     while no query of another tenant runs. And with all processors busy, the kernel lets a flush of the
//     journal wait for up to 5 ms until its threads may go on.
//   - by the number of processors otherwise. So the first query of another tenant waits for few of them.
//
// The scheduler of Go serves all goroutines in turn. Without bounds, a goroutine of a small query waits for
// all those of a tenant with many, each time that it has waited for a page.
//
// A goroutine must not enter while it holds a lock: one that waits for the lock may have the last processor.
// So one that has read a page below such locks enters again at the next page. What it does until then, such
// as decompressing the page, is not bounded.
type Processors struct {
	// Count is the number of processors.
	Count int
	// Shared reports whether several tenants send queries, and Mixed whether they do all the time; nil: no.
	Shared, Mixed func() bool

	mu      sync.Mutex
	tenants map[string]*computing // with queries that run
}

// computing is the goroutines of a tenant.
type computing struct {
	queries, running int
	queue            []chan struct{} // each closed when its goroutine may go on
}

// patience bounds each wait for a processor: a mistake in the rules above makes queries slow, and never hangs
// them.
const patience = 10 * time.Second

// Processor says whether one goroutine computes. Goroutines that it starts with its context, to wait for
// pages, may leave for it. A nil Processor is that of a goroutine that is not bounded.
type Processor struct {
	p *Processors
	c *computing
	// in says that the goroutine computes, and over that it never will again. Both change under p.mu.
	in   atomic.Bool
	over bool
}

type processorKey struct{}

// Waiting returns the number of goroutines that wait for a processor.
func (p *Processors) Waiting() (n int) {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.tenants {
		n += len(c.queue)
	}
	return n
}

// Run returns the context of the goroutine that runs a query, which enters. The caller must call end when the
// query has ended.
func (p *Processors) Run(ctx context.Context, tenant string) (own context.Context, end func()) {
	if p == nil {
		return ctx, func() {}
	}
	p.mu.Lock()
	c := p.tenants[tenant]
	if c == nil {
		if p.tenants == nil {
			p.tenants = make(map[string]*computing)
		}
		c = new(computing)
		p.tenants[tenant] = c
	}
	c.queries++
	p.mu.Unlock()
	own, done := computes(ctx, &Processor{p: p, c: c})
	return own, func() {
		done()
		p.mu.Lock()
		defer p.mu.Unlock()
		if c.queries--; c.queries > 0 {
			p.wake(c) // it may have more, now that it runs fewer queries
			return
		}
		delete(p.tenants, tenant)
		for _, other := range p.tenants {
			p.wake(other) // there may be more of them now
		}
	}
}

// Computing returns the context of a further goroutine of a query, which enters. The goroutine must call done
// at its end.
func Computing(ctx context.Context) (own context.Context, done func()) {
	x := ProcessorOf(ctx)
	if x == nil {
		return ctx, func() {}
	}
	return computes(ctx, &Processor{p: x.p, c: x.c})
}

func computes(ctx context.Context, x *Processor) (own context.Context, done func()) {
	x.Enter(ctx)
	return context.WithValue(ctx, processorKey{}, x), x.end
}

// NotComputing returns a context for goroutines that only wait for pages while their creator computes.
func NotComputing(ctx context.Context) context.Context {
	if ProcessorOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, processorKey{}, (*Processor)(nil))
}

// ProcessorOf returns the processor of the goroutine that has a context.
func ProcessorOf(ctx context.Context) *Processor {
	x, _ := ctx.Value(processorKey{}).(*Processor)
	return x
}

// Leave says that the goroutine is going to wait.
func (x *Processor) Leave() {
	if x == nil || !x.in.Load() {
		return
	}
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	x.leaveLocked()
}

func (x *Processor) leaveLocked() {
	if x.in.CompareAndSwap(true, false) {
		x.c.running--
		x.p.wake(x.c)
	}
}

func (x *Processor) end() {
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	x.leaveLocked()
	x.over = true
}

// Enter waits until the goroutine may compute. It does not wait beyond the end of the context.
func (x *Processor) Enter(ctx context.Context) {
	if x == nil || x.in.Load() {
		return
	}
	p, c := x.p, x.c
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.over {
		return
	}
	if len(c.queue) > 0 || c.running >= p.most(c) {
		p.await(ctx, c)
	}
	c.running++
	if !x.in.CompareAndSwap(false, true) {
		c.running-- // another goroutine has entered for it
	}
}

// await waits until a goroutine of a tenant may compute, or too long. The caller holds mu, which is free
// meanwhile.
func (p *Processors) await(ctx context.Context, c *computing) {
	granted := make(chan struct{})
	c.queue = append(c.queue, granted)
	p.mu.Unlock()
	t := time.NewTimer(patience)
	select {
	case <-granted:
	case <-ctx.Done():
	case <-t.C:
	}
	t.Stop()
	p.mu.Lock()
	if i := slices.Index(c.queue, granted); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	} else {
		c.running-- // counted by wake
	}
}

// wake lets goroutines of a tenant go on, and counts them as running. The caller holds mu.
func (p *Processors) wake(c *computing) {
	for len(c.queue) > 0 && c.running < p.most(c) {
		close(c.queue[0])
		c.queue = slices.Delete(c.queue, 0, 1)
		c.running++
	}
}

// most returns how many goroutines of one tenant may compute. The caller holds mu.
func (p *Processors) most(c *computing) int {
	switch {
	case len(p.tenants) > 1, c.queries > 1 && p.Mixed != nil && p.Mixed():
		return max(1, p.Count-max(1, p.Count/4))
	case p.Shared != nil && p.Shared():
		return p.Count
	}
	return 1 << 30
}
