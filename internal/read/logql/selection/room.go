package selection

import (
	"context"
	"errors"

	"github.com/shaledb/shale/internal/model"
)

// again reports whether a read that failed may succeed now, as another worker of the query has given back
// memory since. It waits for that. What tasks take is an estimate, so more of them may be in flight than the
// query's memory has room for: a query that fits if its tasks go one by one must not fail by that.
func (s *scanner) again(ctx context.Context, err error) bool {
	if s.crew == nil || !errors.Is(err, model.ErrLimit) || model.ReadsTooMuch(err) {
		return false
	}
	if s.pages.evictIdle() {
		return true
	}
	s.processor.Leave()
	defer s.processor.Enter(ctx)
	return s.crew.awaitEnd(ctx)
}

// awaitEnd waits until another worker has ended a task. It returns false if none will: all others wait, too.
func (c *crew) awaitEnd(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.short++
	defer func() {
		c.short--
		c.done.Broadcast() // next begins no task meanwhile
	}()
	for ended := c.ended; c.ended == ended; c.done.Wait() {
		if ctx.Err() != nil || c.short >= c.busy {
			return false
		}
	}
	return true
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
