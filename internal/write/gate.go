package write

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// gate counts who is inside, so that the store behind it is closed when nobody is. It is a read-write lock with a flag
// before it: without the flag, those who come while close waits would wait too, instead of being told.
type gate struct {
	closed atomic.Bool
	inside sync.RWMutex
}

// enter lets the caller in, until leave. Its error is a *Refused of class closed.
func (g *gate) enter() error {
	if !g.closed.Load() {
		g.inside.RLock()
		if !g.closed.Load() {
			return nil
		}
		g.inside.RUnlock()
	}
	return errStopping()
}

func (g *gate) leave() { g.inside.RUnlock() }

// close lets nobody in any more and waits until all have left. It may be called more than once.
func (g *gate) close() {
	g.closed.Store(true)
	g.inside.Lock()
	defer g.inside.Unlock()
}

func errStopping() error {
	return &Refused{
		Status: http.StatusServiceUnavailable, Text: "the server is stopping; send it again", RetryAfter: 5 * time.Second, Closed: true,
	}
}
