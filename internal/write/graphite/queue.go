package graphite

import (
	"context"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/write"
)

// queue connects a reader, which parses into the open chunk, with a pusher, which makes chunks durable
// in order. While a push waits for the disk, further rows join the open chunk, so pushes grow with the
// load and with the latency of the disk.
type queue struct {
	l      *Listener
	tenant string
	t      *transport
	// maxFull is the largest number of full chunks that wait in addition to the open one.
	maxFull int
	// linger is how long a chunk may wait for more rows before it is pushed.
	linger time.Duration

	wake  chan struct{} // capacity 1: there are rows, or no more will come
	taken chan struct{} // capacity 1: the pusher took a chunk, or has pushed it

	mu      sync.Mutex
	full    []*chunk
	open    *chunk // nil if it would be empty
	pushing bool
	ended   bool
}

func newQueue(l *Listener, tenant string, t *transport, maxFull int, linger time.Duration) *queue {
	return &queue{l: l, tenant: tenant, t: t, maxFull: maxFull, linger: linger, wake: make(chan struct{}, 1), taken: make(chan struct{}, 1)}
}

// feeder is a source of rows.
type feeder interface {
	// feed adds rows to c until c is full, and reports whether there are more.
	feed(c *chunk) (more bool)
}

// add feeds the open chunk and waits while there is no room. The grant, which may be nil, is held until
// the last of the rows is durable. It returns false if ctx ended before all rows were added.
func (g *queue) add(ctx context.Context, f feeder, grant *write.Grant) bool {
	for {
		g.mu.Lock()
		more := g.fill(f)
		if !more && grant != nil {
			if g.open == nil {
				grant.Release()
			} else {
				g.open.grants = append(g.open.grants, grant)
			}
		}
		g.mu.Unlock()
		signal(g.wake)
		if !more {
			return true
		}
		select {
		case <-g.taken:
		case <-ctx.Done():
			if grant != nil {
				grant.Release()
			}
			return false
		}
	}
}

// empty reports whether all rows are durable or lost.
func (g *queue) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open == nil && len(g.full) == 0 && !g.pushing
}

// drain waits until all rows are durable or lost, or ctx ends.
func (g *queue) drain(ctx context.Context) {
	for {
		if g.empty() {
			return
		}
		select {
		case <-g.taken:
		case <-ctx.Done():
			return
		}
	}
}

// offer adds the rows of a datagram of that many bytes as far as there is room. It does not wait; its
// chunks reserve their own memory.
func (g *queue) offer(ctx context.Context, f feeder, bytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.admit(ctx, int64(bytes)) {
		g.fill(f)
	}
	g.dropEmpty()
	signal(g.wake)
}

// admitStep is how many bytes a chunk that reserves its own memory reserves at a time.
const admitStep = 256 << 10

// admit reserves memory for the rows of further lines of that many bytes. REQUIRES: g.mu is held.
func (g *queue) admit(ctx context.Context, bytes int64) bool {
	if g.open == nil {
		g.open = g.l.chunks.get(true)
	}
	c := g.open
	// The worst case is the shortest line: six bytes become rowBytes.
	need := c.bytes() + bytes*(1+rowBytes/6)
	if len(c.grants) == 0 {
		grant, err := g.l.o.Sink.Admit(ctx, g.tenant, admitStep)
		if err != nil {
			return false
		}
		c.grants, c.granted = append(c.grants, grant), admitStep
	}
	for c.granted < need {
		if c.grants[0].Grow(admitStep) != nil {
			return false
		}
		c.granted += admitStep
	}
	return true
}

// fill feeds chunks until f is empty or the queue is full, and reports whether f has more rows.
// REQUIRES: g.mu is held.
func (g *queue) fill(f feeder) (more bool) {
	for more = true; more; {
		if g.open == nil {
			g.open = g.l.chunks.get(true)
		}
		more = f.feed(g.open)
		if g.open.full() {
			if len(g.full) >= g.maxFull {
				break
			}
			g.full = append(g.full, g.open)
			g.open = nil
		}
	}
	g.dropEmpty()
	return more
}

// dropEmpty recycles an open chunk without rows. REQUIRES: g.mu is held.
func (g *queue) dropEmpty() {
	if g.open != nil && g.open.rows() == 0 {
		g.l.chunks.put(g.open)
		g.open = nil
	}
}

// close means that no more rows will come. The pusher stops once it has pushed all rows.
func (g *queue) close() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	signal(g.wake)
}

func (g *queue) next() (c *chunk, ended bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case len(g.full) > 0:
		c = g.full[0]
		g.full = append(g.full[:0], g.full[1:]...)
	case g.open != nil:
		c, g.open = g.open, nil
	}
	g.pushing = c != nil
	return c, g.ended
}

// run pushes chunks until end has been called and all are pushed.
func (g *queue) run(ctx context.Context) {
	for {
		c, ended := g.next()
		if c == nil {
			if ended {
				return
			}
			<-g.wake
			g.wait()
			continue
		}
		signal(g.taken)
		g.l.push(ctx, g.tenant, g.t, c)
		g.l.chunks.put(c)
		g.pushed()
	}
}

func (g *queue) pushed() {
	g.mu.Lock()
	g.pushing = false
	g.mu.Unlock()
	signal(g.taken)
}

// wait gives the open chunk time to collect more rows.
func (g *queue) wait() {
	if g.linger == 0 {
		return
	}
	timer := time.NewTimer(g.linger)
	defer timer.Stop()
	for {
		g.mu.Lock()
		enough := g.ended || len(g.full) > 0 || g.open == nil || g.open.isHalfFull()
		g.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-timer.C:
			return
		case <-g.wake:
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
