package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/breaker"
	"github.com/shaledb/shale/internal/turns"
)

func callerOf(tenant string) context.Context {
	return model.WithCaller(context.Background(), model.Caller{Tenant: tenant})
}

// TestTurnsOfTenants: a tenant that floods the server does not keep another one from it, and is refused by
// its name once too many of its requests wait.
func TestTurnsOfTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(8)
		type done struct {
			tenant string
			leave  func()
		}
		order := make(chan done, 1000)
		enter := func(tenant string) {
			go func() {
				if leave, err := p.enter(callerOf(tenant), true); err == nil {
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
		_, err := p.enter(callerOf("flood"), true)
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
		if _, err := p.enter(ctx, true); !errors.Is(err, context.DeadlineExceeded) {
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
	p, at := newPace(16), time.Unix(1000, 0)
	check := func(want int) {
		t.Helper()
		if got := p.limit(); got != want {
			t.Errorf("%d may run, want %d", got, want)
		}
	}
	for range 16 {
		p.ended(at, at.Add(time.Second), false)
	}
	check(8)
	at = at.Add(time.Second)
	p.ended(at, at.Add(p.slow), true) // right, and slow
	check(4)
	at = at.Add(p.slow)
	for range 5 {
		p.ended(at, at.Add(time.Millisecond), false)
		at = at.Add(time.Second)
	}
	check(leastRequests)
	for n := leastRequests; n < 16; n++ {
		check(n)
		for range n {
			p.ended(at, at.Add(time.Second), true)
		}
	}
	check(16)
	p.ended(at, at.Add(time.Second), true)
	check(16)
	if one := newPace(1); !one.Allows(0) || one.Allows(1) {
		t.Error("a single turn is not one")
	}
}

// TestPaceAtOnce: the queue hands out as many turns as may run, in whatever order requests end.
func TestPaceAtOnce(t *testing.T) {
	for i := range 10_000 {
		p, now := newPace(64), time.Unix(1000, 0)
		p.ended(now, now, false)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 50 {
					p.ended(now, now, true)
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
		if n != p.limit() {
			t.Fatalf("round %d: there are %d turns, and %d may run", i, n, p.limit())
		}
	}
}

// TestOpenWithoutTurns: while the breaker is open, a request is refused at once, although those that have the
// turns hang.
func TestOpenWithoutTurns(t *testing.T) {
	w := newWorld(t, answering(statRow, rowOne+rowTwo))
	w.client.pace = newPace(2)
	var held []func()
	for range 2 {
		leave, err := w.client.pace.enter(context.Background(), true)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, leave)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, at := range []time.Time{time.Now(), time.Now().Add(-breaker.Pause)} { // the next one may be sent then
		for range breaker.Failures {
			w.client.breaker.Failed(at)
		}
		if _, err := w.lines(ctx, request()); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), fmt.Sprint(breaker.Failures)) {
			t.Errorf("%v, want a refusal", err)
		}
	}
	if n := w.client.pace.queue.Waiting(model.CallerOf(ctx).Tenant); n != 0 {
		t.Errorf("%d requests wait", n)
	}
	held[0]()
	if _, err := w.lines(ctx, request()); err != nil || w.client.breaker.Open() {
		t.Errorf("%v, and the breaker is open: %v", err, w.client.breaker.Open())
	}
	held[1]()
}

// TestOverload: a server that refuses what is more than it can do at one time is asked less, and all queries
// get their lines in the end.
func TestOverload(t *testing.T) {
	var running, most, refused atomic.Int32
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		defer running.Add(-1)
		n := running.Add(1)
		if n > 3 {
			refused.Add(1)
			http.Error(rw, "too many", http.StatusTooManyRequests)
			return
		}
		most.Store(max(most.Load(), n))
		time.Sleep(time.Millisecond)
		answering(statRow, rowOne+rowTwo)(rw, r)
	})
	w.client.pace = newPace(16)
	w.client.http = connect(w.client.url, 16)
	defer w.client.http.CloseIdleConnections()
	var all sync.WaitGroup
	var right, wrong, failed atomic.Int32
	for range 16 {
		all.Go(func() {
			for range 20 {
				got, err := w.lines(context.Background(), request())
				switch {
				case errors.Is(err, model.ErrTransient):
					failed.Add(1)
				case err != nil || got != `{app="web"}a{} {app="web"}b{x="y"} `:
					wrong.Add(1)
				default:
					right.Add(1)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d right, %d errors, %d responses were refusals, %d may run now", right.Load(), failed.Load(), refused.Load(), w.client.pace.limit())
	if wrong.Load() > 0 || right.Load() == 0 || w.client.pace.limit() == 16 {
		t.Errorf("%d wrong, %d right, %d may run", wrong.Load(), right.Load(), w.client.pace.limit())
	}
	if w.client.pace.queue.Running() != 0 {
		t.Error("turns were not given back")
	}
}

// TestHung: a server that takes requests and never answers opens the breaker, and a client that gives up does
// not.
func TestHung(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the client is seen
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	w.client.pace.slow = time.Millisecond
	for range 2 * breaker.Failures {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(5*time.Millisecond, cancel)
		if _, err := w.lines(ctx, request()); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if w.client.breaker.Open() || w.client.pace.limit() != 4 {
		t.Error("clients that gave up count as failures of the server")
	}
	for range breaker.Failures {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		if _, err := w.lines(ctx, request()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if !w.client.breaker.Open() || w.client.pace.limit() != leastRequests {
		t.Errorf("the breaker is open: %v, %d may run", w.client.breaker.Open(), w.client.pace.limit())
	}
	if _, err := w.lines(context.Background(), request()); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), fmt.Sprint(breaker.Failures)) {
		t.Errorf("%v, want a refusal", err)
	}
}

var _ turns.Share = (*pace)(nil)
