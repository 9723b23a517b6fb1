package breaker

import (
	"testing"
	"time"
)

func allowed(t *testing.T, b *Breaker, now time.Time, when string) *Pass {
	t.Helper()
	p, ok := b.Allow(now)
	if !ok {
		t.Fatal(when + ", and refuses")
	}
	return &p
}

func refused(t *testing.T, b *Breaker, now time.Time, when string) {
	t.Helper()
	if _, ok := b.Allow(now); ok {
		t.Error(when + ", and lets through")
	}
}

// TestBreakerStates: closed, open, one request at a time, closed.
func TestBreakerStates(t *testing.T) {
	var b Breaker
	now := time.Unix(1000, 0)
	for range Failures {
		allowed(t, &b, now, "closed").Failed(now)
	}
	refused(t, &b, now.Add(Pause-1), "open")
	now = now.Add(Pause)
	probe := allowed(t, &b, now, "half open")
	refused(t, &b, now, "half open with a request on its way")
	probe.Unknown() // its sender gave up
	allowed(t, &b, now, "half open").Failed(now)
	refused(t, &b, now.Add(Pause-1), "open again")
	now = now.Add(Pause)
	allowed(t, &b, now, "half open").Succeeded()
	if b.Open() {
		t.Error("open after a success")
	}
	allowed(t, &b, now, "closed")
	allowed(t, &b, now, "closed")
}

// TestBreakerForgetsEarlierRequests: those that began before it opened neither close it nor let a second one
// through.
func TestBreakerForgetsEarlierRequests(t *testing.T) {
	var b Breaker
	now := time.Unix(1000, 0)
	var early []*Pass
	for range 4 {
		early = append(early, allowed(t, &b, now, "closed"))
	}
	for range Failures {
		allowed(t, &b, now, "closed").Failed(now)
	}
	early[0].Succeeded()
	if !b.Open() {
		t.Fatal("closed by a request from before it opened")
	}
	now = now.Add(Pause)
	probe := allowed(t, &b, now, "half open")
	early[1].Unknown()
	early[2].Failed(now)
	early[3].Succeeded()
	refused(t, &b, now, "half open with a request on its way")
	probe.Unknown()
	second := allowed(t, &b, now, "half open")
	probe.Unknown() // again
	refused(t, &b, now, "half open with a second request on its way")
	second.Succeeded()
	if b.Open() {
		t.Error("open after a success")
	}
}

// TestBreakerLongResponse: others are let through while a long response comes, and not after it broke off.
func TestBreakerLongResponse(t *testing.T) {
	var b Breaker
	now := time.Unix(1000, 0)
	open := func() (probe *Pass) {
		for range Failures {
			allowed(t, &b, now, "closed").Failed(now)
		}
		now = now.Add(Pause)
		return allowed(t, &b, now, "half open")
	}
	probe := open()
	probe.Answers()
	allowed(t, &b, now, "while a response comes").Unknown()
	probe.Failed(now)
	refused(t, &b, now, "after it broke off")

	now = now.Add(Pause)
	probe = allowed(t, &b, now, "half open")
	probe.Answers()
	allowed(t, &b, now, "while a response comes").Failed(now)
	probe.Answers()
	probe.Succeeded()
	refused(t, &b, now, "after a failure in the meantime")

	now = now.Add(Pause)
	probe = allowed(t, &b, now, "half open")
	probe.Answers()
	probe.Unknown() // its query ran out of time
	allowed(t, &b, now, "after a query that ended early").Succeeded()
	for range Failures - 1 {
		allowed(t, &b, now, "closed").Failed(now)
	}
	allowed(t, &b, now, "closed")
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
