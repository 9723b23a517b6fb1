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
//
// If all workers wait, the one with the latest task gives up its piece, so that the others have its memory.
// Whenever a task ends, one that gave up its piece scans it again. None can give it up once it has handed on
// a row of it. So the promise has an end: memory may be missing if several workers read more of a page late,
// such as the metadata of the second of two chunks that are merged.
//
// A read that fails gives back at once what it has charged until then, and that counts as freed nowhere. Two
// reads at the same time may fail by that alone. So before the query is refused, each worker reads once while
// all others wait.
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

// comeBack gives back what a worker that gives up its piece holds, and waits for its turn.
func (s *scanner) comeBack(ctx context.Context) error {
	if s.page >= 0 {
		s.pages.done(s.page)
		defer s.pages.use(s.page)
	}
	s.pages.evictIdle()
	s.processor.Leave()
	defer s.processor.Enter(ctx)
	return s.crew.awaitEnd(ctx, &s.wait)
}

// waiter is a worker that has no memory to go on.
type waiter struct {
	task   int   // the place of its task
	seen   int64 // [pages.freed] before its last read
	yields bool  // it can give up its piece
	gaveUp bool  // it has given up its piece
	alone  int64 // [pages.freed] when it was let read while all others wait, plus one
	ended  int   // [crew.ended] when it did, or when another one came back
}

// await waits until memory has been given back since the last read of w. It returns false if none will be,
// and if w is to give up its piece.
func (c *crew) await(ctx context.Context, w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, w)
	defer c.leaveLocked(w)
	for ; ctx.Err() == nil; c.done.Wait() {
		if w.seen != c.pages.freed.Load() {
			return true
		}
		if len(c.waiting) < c.busy {
			continue
		}
		next := c.nextWaiterLocked()
		untried := next == nil
		if untried {
			next = c.untriedLocked()
		}
		switch {
		case next == nil:
			return false
		case next != w:
			c.done.Broadcast() // to that one
		case untried:
			w.alone = c.pages.freed.Load() + 1
			return true
		default:
			w.gaveUp, w.ended = true, c.ended
			return false
		}
	}
	return false
}

// nextWaiterLocked returns, where all workers wait, the one that is to go on: to read again, or else to give
// up its piece. It returns nil if there is none. Of those that have not given up their pieces one stays.
func (c *crew) nextWaiterLocked() (next *waiter) {
	stay := 0
	for _, w := range c.waiting {
		if w.gaveUp {
			continue
		}
		if w.seen != c.pages.freed.Load() {
			return w
		}
		if stay++; w.yields && (next == nil || w.task > next.task) {
			next = w
		}
	}
	if stay < 2 {
		return nil
	}
	return next
}

// untriedLocked returns, where all workers wait, one that has not read alone since memory was last given
// back, or nil. Those that gave up their pieces hold nothing, and read once another task has been ended.
func (c *crew) untriedLocked() *waiter {
	for _, w := range c.waiting {
		if !w.gaveUp && w.alone != c.pages.freed.Load()+1 {
			return w
		}
	}
	return nil
}

// awaitEnd waits until another task has been ended since w has given up its piece, and no earlier task comes
// back for that.
func (c *crew) awaitEnd(ctx context.Context, w *waiter) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, w)
	defer c.leaveLocked(w)
	earlier := func(o *waiter) bool { return o.gaveUp && o.task < w.task }
	for c.done.Broadcast(); c.ended == w.ended || slices.ContainsFunc(c.waiting, earlier); c.done.Wait() {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	w.gaveUp = false
	for _, o := range c.waiting {
		o.ended = c.ended
	}
	return nil
}

func (c *crew) leaveLocked(w *waiter) {
	c.waiting = slices.DeleteFunc(c.waiting, func(o *waiter) bool { return o == w })
	c.done.Broadcast() // next begins no task meanwhile
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
