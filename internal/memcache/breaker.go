package memcache

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"
)

// State is what a breaker lets through.
type State int32

const (
	// Closed: all requests.
	Closed State = iota
	// HalfOpen: one request at a time, until enough of them have succeeded.
	HalfOpen
	// Open: none.
	Open
)

func (s State) String() string { return [...]string{"closed", "half-open", "open"}[s] }

const (
	// A breaker opens when at least half of the last outcomes, up to 64, are failures, and there are
	// leastOutcomes.
	leastOutcomes = 8
	// trials is how many trials in a row must succeed before it closes.
	trials = 3
	// It stays open for leastOpen, and twice as long after each failed trial, up to mostOpen.
	leastOpen, mostOpen = time.Second, 30 * time.Second
)

// breaker keeps requests from a server that fails. Its outcomes are those of batches.
type breaker struct {
	now func() time.Time
	// changed is told of each new state, under the lock.
	changed func(State)

	mu       sync.Mutex
	state    State
	outcomes uint64 // the newest in the lowest bit; 1: failed
	known    int    // number of outcomes
	trying   bool   // a trial is under way
	passed   int    // trials in a row that succeeded
	pause    time.Duration
	until    time.Time // when it is half-open
}

// outcome is what became of a batch.
type outcome int

const (
	succeeded outcome = iota
	failed
	// unknown: the caller gave up for a reason of its own.
	unknown
)

// allow reports whether a batch may be sent, whose outcome is to be given to end, and whether it is a trial.
func (b *breaker) allow() (ok, trial bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Open && !b.now().Before(b.until) {
		b.passed, b.trying = 0, false
		b.set(HalfOpen)
	}
	switch {
	case b.state == Closed:
		return true, false
	case b.state == Open || b.trying:
		return false, false
	}
	b.trying = true
	return true, true
}

// end notes the outcome of a batch that was allowed.
func (b *breaker) end(o outcome, trial bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if trial {
		b.endTrial(o)
		return
	}
	if b.state != Closed || o == unknown {
		return
	}
	b.outcomes, b.known = b.outcomes<<1|uint64(o), min(b.known+1, 64)
	if failures := bits.OnesCount64(b.outcomes); b.known >= leastOutcomes && 2*failures >= b.known {
		b.pause = leastOpen
		b.open()
	}
}

func (b *breaker) endTrial(o outcome) {
	b.trying = false
	switch o {
	case failed:
		b.pause = min(2*b.pause, mostOpen)
		b.open()
	case succeeded:
		if b.passed++; b.passed == trials {
			b.outcomes, b.known = 0, 0
			b.set(Closed)
		}
	}
}

// open opens the breaker for the pause, or a little longer, so that several clients do not try at once.
func (b *breaker) open() {
	b.trying = false
	b.until = b.now().Add(b.pause + rand.N(b.pause/4))
	b.set(Open)
}

func (b *breaker) set(s State) {
	b.state = s
	b.changed(s)
}

// current returns the state.
func (b *breaker) current() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}
