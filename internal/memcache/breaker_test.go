package memcache

import (
	"testing"
	"time"
)

// TestBreaker follows a breaker through all of its states.
func TestBreaker(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var states []State
	b := breaker{now: func() time.Time { return now }, changed: func(s State) { states = append(states, s) }}
	run := func(o outcome) bool {
		ok, trial := b.allow()
		if ok {
			b.end(o, trial)
		}
		return ok
	}
	for range 100 {
		run(succeeded)
		run(succeeded)
		run(failed)
		run(unknown)
	}
	if b.current() != Closed {
		t.Fatal("a third of failures opens the breaker")
	}
	for i := range 64 {
		if !run(failed) {
			if i < 8 || i > 30 {
				t.Errorf("the breaker opened after %d failures", i)
			}
			break
		}
	}
	if b.current() != Open || run(succeeded) {
		t.Fatal("the breaker is not open")
	}
	now = now.Add(2 * leastOpen)
	ok, trial := b.allow()
	if !ok || !trial || b.current() != HalfOpen {
		t.Fatal("no trial is let through after the pause")
	}
	if run(succeeded) {
		t.Error("a second request is let through during a trial")
	}
	if b.end(failed, true); b.current() != Open {
		t.Error("a trial that fails does not open the breaker")
	}
	if now = now.Add(leastOpen * 3 / 2); run(succeeded) {
		t.Error("the second pause is not longer than the first")
	}
	now = now.Add(leastOpen * 3 / 2)
	if ok, _ := b.allow(); !ok {
		t.Fatal("no trial after the second pause")
	}
	if b.end(unknown, true); b.current() != HalfOpen {
		t.Error("a trial without an outcome counts")
	}
	for range trials {
		if b.current() != HalfOpen || !run(succeeded) {
			t.Fatal("the breaker closes too early, or refuses a trial")
		}
	}
	if b.current() != Closed {
		t.Error("the breaker does not close")
	}
	b.end(failed, false)
	if b.known != 1 {
		t.Errorf("%d outcomes are known from before it closed", b.known-1)
	}
	for range 20 {
		run(failed)
		now = now.Add(100 * mostOpen)
	}
	if b.pause > mostOpen {
		t.Errorf("a pause of %v", b.pause)
	}
	if want := []State{Open, HalfOpen, Open, HalfOpen, Closed}; len(states) < len(want) {
		t.Errorf("states %v", states)
	} else {
		for i, s := range want {
			if states[i] != s {
				t.Errorf("states %v, expected them to begin with %v", states, want)
			}
		}
	}
}
