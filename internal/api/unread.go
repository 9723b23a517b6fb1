package api

import (
	"context"
	"sync"
	"time"
)

// unreadAfter is how long a client may not read before its request gives back its turn.
const unreadAfter = time.Second

// pausesPerTurn is how many requests for each turn may be without one. Each holds compressorBytes that no
// quota counts, as each with a turn does.
const (
	pausesPerTurn   = 2
	compressorBytes = 800 << 10
)

// unread gives back the turn of a request while the client does not read the response: the query computes
// nothing then, and a few slow clients would keep all others waiting. The request keeps its memory, so only a
// bounded number may be without a turn; others keep theirs.
type unread struct {
	gate   *Gate
	client context.Context // that of the turn
	timer  *time.Timer

	mu      sync.Mutex
	writing bool
	gone    bool // the turn was given back
}

// write runs a write to the client. If the turn was given back meanwhile, it then waits for another one, at
// most until the client must have read the response; last says that the request needs none. Without a turn,
// the error is that of a context.
func (u *unread) write(last bool, until time.Time, write func() error) error {
	if u == nil {
		return write()
	}
	u.mu.Lock()
	u.writing = true
	if u.timer == nil {
		u.timer = time.AfterFunc(unreadAfter, u.giveBack)
	} else {
		u.timer.Reset(unreadAfter)
	}
	u.mu.Unlock()
	err := write()
	u.timer.Stop()
	if gone := u.set(false); err != nil || last || !gone {
		return err
	}
	ctx, cancel := context.WithDeadline(u.client, until)
	defer cancel()
	if err := u.gate.EnterAgain(ctx); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.foundLocked()
	return nil
}

// set notes whether a write runs, and reports whether the turn was given back.
func (u *unread) set(writing bool) (gone bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.writing = writing
	return u.gone
}

func (u *unread) giveBack() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.writing || u.gone {
		return
	}
	if u.gone = u.gate.pause(u.client); !u.gone {
		u.timer.Reset(unreadAfter)
	}
}

func (u *unread) foundLocked() {
	u.gone = false
	u.gate.resume(u.client)
}

// leave gives back the turn at the end of the request, if that was not done before.
func (u *unread) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.writing = false; u.gone {
		u.foundLocked()
		return
	}
	u.gate.Leave(u.client)
}
