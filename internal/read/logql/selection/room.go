package selection

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// begin notes that a read begins: memory that is given back from now on may be what it will lack. It returns
// true.
func (s *scanner) begin() bool {
	s.wait.seen = s.pages.freed.Load()
	return true
}

// again reports whether a read that failed may succeed now, as another worker of the query has given back
// memory since it began. It waits for that. What tasks take is an estimate, so more of them may be in flight
// than the query's memory has room for: a query that fits if its tasks go one by one must not fail by that.
func (s *scanner) again(ctx context.Context, err error) bool {
	if s.crew == nil || !model.NeedsMoreMemory(err) {
		return false
	}
	if !s.pages.evictIdle() {
		s.processor.Leave()
		defer s.processor.Enter(ctx)
		if !s.crew.await(ctx, &s.wait) {
			return false
		}
	}
	return s.begin()
}

// waiter is a worker that has no memory to go on.
type waiter struct {
	seen int64 // [pages.freed] before its last read
}

// await waits until memory has been given back since the last read of w. It returns false if none will be:
// all others wait, too.
func (c *crew) await(ctx context.Context, w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, w)
	defer func() {
		c.waiting = slices.DeleteFunc(c.waiting, func(o *waiter) bool { return o == w })
		c.done.Broadcast() // next begins no task meanwhile
	}()
	for ctx.Err() == nil {
		freed := c.pages.freed.Load()
		if w.seen != freed {
			return true
		}
		if len(c.waiting) >= c.busy {
			if !slices.ContainsFunc(c.waiting, func(o *waiter) bool { return o.seen != freed }) {
				return false
			}
			c.done.Broadcast() // to those that may read again
		}
		c.done.Wait()
	}
	return false
}

// evictIdle releases all idle pages, and reports whether there were any.
func (p *pages) evictIdle() (some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.idle
	for len(p.fifo) > 0 {
		p.evictLocked()
	}
	return p.idle < before
}
