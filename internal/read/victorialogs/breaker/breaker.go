package victorialogs

import (
	"sync"
	"time"
)

const (
	// breakerFailures in a row open the breaker for breakerPause.
	breakerFailures = 5
	breakerPause    = 5 * time.Second
)

// breaker keeps requests from a server that fails. Closed, it lets all through; after breakerFailures
// failures in a row it is open and lets none through. After breakerPause it lets one through at a time, and
// the first that succeeds closes it.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time // if it is open: when the next request is let through
	probing  bool
}

// allow reports whether a request may be sent. Then the caller says how it ended.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakerFailures {
		return true
	}
	if b.probing || now.Before(b.until) {
		return false
	}
	b.probing = true
	return true
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.probing = 0, false
}

// failed says that a request failed, and the server may be the cause.
func (b *breaker) failed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	if b.failures = min(b.failures+1, breakerFailures); b.failures == breakerFailures {
		b.until = now.Add(breakerPause)
	}
}

// unknown says that the end of a request tells nothing of the server. If it was the one that is let through,
// another one is.
func (b *breaker) unknown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
}

// open reports whether requests are refused.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= breakerFailures
}

// retryBudget bounds repetitions to one for ten requests that succeed, and ten at once.
type retryBudget struct {
	mu    sync.Mutex
	spent int // tenths of repetitions that were not earned yet, less those that may be spent at once
}

const (
	retryCost = 10
	mostSpent = 10 * retryCost
)

func (b *retryBudget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(b.spent-1, 0)
}

func (b *retryBudget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent+retryCost > mostSpent {
		return false
	}
	b.spent += retryCost
	return true
}
