package breaker

import (
	"testing"
	"time"
)

// TestBreakerStates: closed, open, one request at a time, closed.
func TestBreakerStates(t *testing.T) {
	var b Breaker
	now := time.Unix(1000, 0)
	for range Failures {
		if !b.Allow(now) {
			t.Fatal("closed, and refuses")
		}
		b.Failed(now)
	}
	if b.Allow(now.Add(Pause - 1)) {
		t.Error("open, and lets through")
	}
	now = now.Add(Pause)
	if !b.Allow(now) || b.Allow(now) {
		t.Error("half open, and does not let one through")
	}
	b.Unknown() // its sender gave up
	if !b.Allow(now) {
		t.Error("half open, and no further one is let through")
	}
	b.Failed(now)
	if b.Allow(now.Add(Pause - 1)) {
		t.Error("open again, and lets through")
	}
	now = now.Add(Pause)
	if !b.Allow(now) {
		t.Error("half open, and refuses")
	}
	b.Succeeded()
	if b.Open() || !b.Allow(now) || !b.Allow(now) {
		t.Error("closed, and refuses")
	}
}

// TestRetryBudget: repetitions at once are bounded, and successes earn further ones.
func TestRetryBudget(t *testing.T) {
	var b Budget
	n := 0
	for b.Spend() {
		n++
	}
	for range retryCost {
		b.Earn()
	}
	if !b.Spend() || b.Spend() || n != mostSpent/retryCost {
		t.Errorf("%d repetitions at once", n)
	}
}
