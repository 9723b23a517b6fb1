package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A request whose client does not read gives back its turn, and has one again before it goes on. Beyond a
// bound, requests keep their turns.
func TestUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		g := NewGate(NewSlots(1), time.Second, gateMetrics())
		g.slots.SetMostPaused(1)
		slow := func(last bool) (u *unread, reads, done chan error) {
			if err := g.Enter(ctx); err != nil {
				t.Fatal(err)
			}
			u, reads, done = &unread{gate: g, client: ctx}, make(chan error), make(chan error, 1)
			go func() { done <- u.write(last, time.Now().Add(time.Hour), func() error { return <-reads }) }()
			time.Sleep(unreadAfter - 1)
			synctest.Wait()
			if g.slots.Running() != 1 {
				t.Error("the turn is given back too early")
			}
			time.Sleep(2 * time.Nanosecond)
			synctest.Wait()
			return u, reads, done
		}
		first, reads, done := slow(false)
		if g.slots.Running() != 0 {
			t.Fatal("the turn is not given back")
		}
		second, reads2, done2 := slow(true)
		if g.slots.Running() != 1 {
			t.Error("the second request gives back its turn, too")
		}
		reads <- nil
		synctest.Wait()
		if len(done) > 0 {
			t.Error("the first request goes on without a turn")
		}
		reads2 <- nil
		if err := <-done2; err != nil {
			t.Error(err)
		}
		second.leave()
		if err := <-done; err != nil || g.slots.Running() != 1 || g.slots.Paused() != 0 {
			t.Errorf("%v, %d turns, %d without", err, g.slots.Running(), g.slots.Paused())
		}
		gone := errors.New("gone")
		if err := first.write(false, time.Now().Add(time.Hour), func() error { time.Sleep(2 * unreadAfter); return gone }); !errors.Is(err, gone) {
			t.Error(err)
		}
		if first.leave(); g.slots.Running() != 0 || g.slots.Paused() != 0 {
			t.Errorf("%d turns are left, %d requests without", g.slots.Running(), g.slots.Paused())
		}
	})
}

// A request that finds no other turn until its context ends has its error.
func TestUnreadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(NewSlots(1), time.Second, gateMetrics())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := g.Enter(ctx); err != nil {
			t.Fatal(err)
		}
		u := &unread{gate: g, client: t.Context()}
		err := u.write(false, time.Now().Add(time.Minute), func() error {
			time.Sleep(2 * unreadAfter)
			return g.Enter(t.Context())
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		u.leave()
		g.Leave(t.Context())
		if g.slots.Running() != 0 || g.slots.Paused() != 0 {
			t.Errorf("%d turns are left, %d requests without", g.slots.Running(), g.slots.Paused())
		}
	})
}
