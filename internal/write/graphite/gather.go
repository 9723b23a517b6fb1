package graphite

import (
	"context"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/write"
)

// gather is the place between a reader, which parses into its open chunk, and a pusher, which takes chunks in their
// order and makes them durable. While a push waits for the disk, further rows join the open chunk, so that the busier
// a sender or the slower the disk, the larger are the pushes.
type gather struct {
	l *Listener
	t *transport
	// queued bounds the full chunks that wait beside the open one.
	queued int
	// linger is how long a chunk may wait for more rows before it is pushed.
	linger time.Duration

	wake  chan struct{} // of size 1: there are rows, or no more will come
	taken chan struct{} // of size 1: the pusher took a chunk, or has pushed it

	mu      sync.Mutex
	full    []*chunk
	open    *chunk // nil: no rows
	pushing bool
	ended   bool
}

func newGather(l *Listener, t *transport, queued int, linger time.Duration) *gather {
	return &gather{l: l, t: t, queued: queued, linger: linger, wake: make(chan struct{}, 1), taken: make(chan struct{}, 1)}
}

// feeder is where rows come from.
type feeder interface {
	// feed adds rows to c until c is full, and reports whether there are more.
	feed(c *chunk) (more bool)
}

// add feeds the open chunk and waits while there is no room. The grant, which may be nil, is held until the last of the
// rows is durable. It returns false if ctx ended while there was more.
func (g *gather) add(ctx context.Context, f feeder, grant *write.Grant) bool {
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

// drain waits until all rows are durable, or lost, or ctx ends.
func (g *gather) drain(ctx context.Context) {
	for {
		g.mu.Lock()
		empty := g.open == nil && len(g.full) == 0 && !g.pushing
		g.mu.Unlock()
		if empty {
			return
		}
		select {
		case <-g.taken:
		case <-ctx.Done():
			return
		}
	}
}

// offer feeds chunks that have a grant of their own with what was made of so many bytes, as far as there is room.
func (g *gather) offer(ctx context.Context, f feeder, bytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.admit(ctx, int64(bytes)) {
		g.fill(f)
	}
	g.dropEmpty()
	signal(g.wake)
}

// admitStep is how many bytes the open chunk of a gather that does not wait asks for at a time.
const admitStep = 256 << 10

// admit sees to it that the open chunk holds a grant for bytes of further lines. REQUIRES: g.mu is held.
func (g *gather) admit(ctx context.Context, bytes int64) bool {
	if g.open == nil {
		g.open = g.l.chunks.take(true)
	}
	c := g.open
	// The shortest line, of six bytes, becomes rowBytes.
	need := c.bytes() + bytes*(1+rowBytes/6)
	if len(c.grants) == 0 {
		grant, err := g.l.o.Sink.Admit(ctx, g.l.tenant, admitStep)
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

// fill feeds chunks until there is no room, and reports whether there are more rows. REQUIRES: g.mu is held.
func (g *gather) fill(f feeder) (more bool) {
	for more = true; more; {
		if g.open == nil {
			g.open = g.l.chunks.take(true)
		}
		more = f.feed(g.open)
		if g.open.full() {
			if len(g.full) >= g.queued {
				break
			}
			g.full = append(g.full, g.open)
			g.open = nil
		}
	}
	g.dropEmpty()
	return more
}

// dropEmpty gives an open chunk without rows back. REQUIRES: g.mu is held.
func (g *gather) dropEmpty() {
	if g.open != nil && g.open.rows() == 0 {
		g.l.chunks.give(g.open)
		g.open = nil
	}
}

// end says that no more rows will come; the pusher ends when all are pushed.
func (g *gather) end() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	signal(g.wake)
}

func (g *gather) take() (c *chunk, ended bool) {
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
func (g *gather) run(ctx context.Context) {
	for {
		c, ended := g.take()
		if c == nil {
			if ended {
				return
			}
			<-g.wake
			g.wait()
			continue
		}
		signal(g.taken)
		g.l.push(ctx, g.t, c)
		g.l.chunks.give(c)
		g.pushed()
	}
}

func (g *gather) pushed() {
	g.mu.Lock()
	g.pushing = false
	g.mu.Unlock()
	signal(g.taken)
}

// wait lets a chunk that has been begun gather more rows.
func (g *gather) wait() {
	if g.linger == 0 {
		return
	}
	timer := time.NewTimer(g.linger)
	defer timer.Stop()
	for {
		g.mu.Lock()
		enough := g.ended || len(g.full) > 0 || g.open == nil || g.open.half()
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
