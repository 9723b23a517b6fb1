package write

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// gate counts the callers that use the store, so that the store is closed only after the last of them
// has left. The flag is checked before the read-write lock: without it, callers that arrive while close
// waits would block instead of being refused.
type gate struct {
	closed atomic.Bool
	inside sync.RWMutex
}

// enter admits the caller until it calls leave. Its error is a *Refused of class closed.
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

// close refuses all further callers and waits until the admitted ones have left. It may be called more
// than once.
func (g *gate) close() {
	g.closed.Store(true)
	g.inside.Lock()
	defer g.inside.Unlock()
}

func errStopping() error {
	return &Refused{
		Status: http.StatusServiceUnavailable, Text: "the server is shutting down; retry later", RetryAfter: 5 * time.Second, Closed: true,
	}
}
