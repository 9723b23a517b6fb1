package breaker

import (
	"sync"
	"time"
)

const (
	// Failures in a row open a Breaker for Pause.
	Failures = 5
	Pause    = 5 * time.Second
)

// Breaker keeps requests from a server that fails. Closed, it lets all through; after Failures failures in a
// row it is open and lets none through. After Pause it lets one through at a time, and the first that
// succeeds closes it.
type Breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time // if it is open: when the next request is let through
	probing  bool
}

// Allow reports whether a request may be sent. Then the caller says how it ended.
func (b *Breaker) Allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < Failures {
		return true
	}
	if b.probing || now.Before(b.until) {
		return false
	}
	b.probing = true
	return true
}

func (b *Breaker) Succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.probing = 0, false
}

// Failed says that a request failed, and the server may be the cause.
func (b *Breaker) Failed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	if b.failures = min(b.failures+1, Failures); b.failures == Failures {
		b.until = now.Add(Pause)
	}
}

// Unknown says that the end of a request tells nothing of the server. If it was the one that is let through,
// another one is.
func (b *Breaker) Unknown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
}

// Open reports whether requests are refused.
func (b *Breaker) Open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= Failures
}

// Budget bounds repetitions to one for ten requests that succeed, and ten at once.
type Budget struct {
	mu    sync.Mutex
	spent int // tenths of repetitions that were not earned yet, less those that may be spent at once
}

const (
	// AtOnce is how many repetitions may be sent while none was earned.
	AtOnce    = 10
	retryCost = 10
	mostSpent = AtOnce * retryCost
)

// Earn says that a request has succeeded.
func (b *Budget) Earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(b.spent-1, 0)
}

// Spend takes a repetition, and reports whether there was one.
func (b *Budget) Spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent+retryCost > mostSpent {
		return false
	}
	b.spent += retryCost
	return true
}
