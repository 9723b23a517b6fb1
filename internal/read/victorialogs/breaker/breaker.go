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
// row it is open and lets none through. After Pause it lets one through at a time, and the first that gets
// a response closes it.
type Breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time // if it is open: when the next request is let through
	probing  bool
	// era changes when it opens, and with each request that is let through then. How requests of an earlier
	// era end tells nothing.
	era int
}

// Pass is the leave to send a request. Only its first end counts.
type Pass struct {
	of  *Breaker
	era int
}

// Allow reports whether a request may be sent. Then the caller says how it ended.
func (b *Breaker) Allow(now time.Time) (Pass, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < Failures {
		return Pass{b, b.era}, true
	}
	if b.probing || now.Before(b.until) {
		return Pass{}, false
	}
	b.probing = true
	b.era++
	return Pass{b, b.era}, true
}

// Answers says that a response has begun. If the breaker was open, it is closed from now on: the rest of the
// response may take long. The next failure, such as that of the rest, opens it again.
func (p *Pass) Answers() {
	b := p.of
	if b == nil { // it has ended
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.era == b.era && b.failures == Failures {
		b.failures, b.probing = Failures-1, false
	}
}

// Succeeded says that the server has answered.
func (p *Pass) Succeeded() {
	p.end(func(b *Breaker) { b.failures = 0 })
}

// Failed says that a request failed, and the server may be the cause.
func (p *Pass) Failed(now time.Time) {
	p.end(func(b *Breaker) {
		if b.failures = min(b.failures+1, Failures); b.failures == Failures {
			b.until = now.Add(Pause)
			b.era++
		}
	})
}

// Unknown says that the end of a request tells nothing of the server. If it was the one that is let through,
// another one is.
func (p *Pass) Unknown() {
	p.end(func(*Breaker) {})
}

func (p *Pass) end(note func(*Breaker)) {
	b := p.of
	if b == nil { // it has ended
		return
	}
	p.of = nil
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.era == b.era {
		b.probing = false
		note(b)
	}
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
