package pace

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/turns"
)

func callerOf(tenant string) context.Context {
	return model.WithCaller(context.Background(), model.Caller{Tenant: tenant})
}

// TestTurnsOfTenants: a tenant that floods the server does not keep another one from it, and is refused by
// its name once too many of its requests wait.
func TestTurnsOfTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(8)
		type done struct {
			tenant string
			leave  func()
		}
		order := make(chan done, 1000)
		enter := func(tenant string) {
			go func() {
				if leave, err := p.Enter(callerOf(tenant), true); err == nil {
					order <- done{tenant, leave}
				}
			}()
			synctest.Wait()
		}
		enter("quiet")
		(<-order).leave()
		for range 50 {
			enter("flood")
		}
		if n := len(order); n != 6 {
			t.Errorf("%d requests of a tenant run while another one sends some, want 6", n)
		}
		enter("quiet")
		enter("quiet")
		var last []string
		for len(order) > 0 {
			last = append(last, (<-order).tenant)
		}
		if want := "flood flood flood flood flood flood quiet quiet"; strings.Join(last, " ") != want {
			t.Errorf("%v run, want %s", last, want)
		}
		for range 200 {
			enter("flood")
		}
		_, err := p.Enter(callerOf("flood"), true)
		var limit *model.LimitError
		if !errors.As(err, &limit) || !errors.Is(err, model.ErrTransient) || limit.Limit != "victorialogs.max-requests" {
			t.Fatalf("%v, want a limit", err)
		}
		for _, want := range []string{"96 of them of tenant flood", "of 8 (victorialogs.max-requests)"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
		ctx, cancel := context.WithTimeout(callerOf("quiet"), time.Second)
		defer cancel()
		if _, err := p.Enter(ctx, true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want a place in the queue until the time is over", err)
		}
		if n := p.queue.Waiting("quiet"); n != 0 {
			t.Errorf("%d requests that gave up wait", n)
		}
		for p.queue.Waiting("flood") > 0 || len(order) > 0 { // let all end
			p.queue.Leave("flood")
			synctest.Wait()
			<-order
		}
	})
}

// TestPace: requests that fail or are slow halve how many may run, once for all that began together, and good
// ones raise it one by one.
func TestPace(t *testing.T) {
	p, at := New(16), time.Unix(1000, 0)
	check := func(want int) {
		t.Helper()
		if got := p.Limit(); got != want {
			t.Errorf("%d may run, want %d", got, want)
		}
	}
	for range 16 {
		p.Ended(at, at.Add(time.Second), false)
	}
	check(8)
	at = at.Add(time.Second)
	p.Ended(at, at.Add(p.Slow), true) // right, and slow
	check(4)
	at = at.Add(p.Slow)
	for range 5 {
		p.Ended(at, at.Add(time.Millisecond), false)
		at = at.Add(time.Second)
	}
	check(LeastRequests)
	for n := LeastRequests; n < 16; n++ {
		check(n)
		for range n {
			p.Ended(at, at.Add(time.Second), true)
		}
	}
	check(16)
	p.Ended(at, at.Add(time.Second), true)
	check(16)
	if one := New(1); !one.Allows(0) || one.Allows(1) {
		t.Error("a single turn is not one")
	}
}

// TestPaceAtOnce: the queue hands out as many turns as may run, in whatever order requests end.
func TestPaceAtOnce(t *testing.T) {
	for i := range 10_000 {
		p, now := New(64), time.Unix(1000, 0)
		p.Ended(now, now, false)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 50 {
					p.Ended(now, now, true)
					p.queue.Running() // so that others wait for the queue
				}
			})
		}
		all.Wait()
		n := 0
		for w, err := p.queue.Enter("a", 0, false); w == nil; w, err = p.queue.Enter("a", 0, false) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != p.Limit() {
			t.Fatalf("round %d: there are %d turns, and %d may run", i, n, p.Limit())
		}
	}
}

var _ turns.Share = (*Pace)(nil)
