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
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/breaker"
	"github.com/shaledb/shale/internal/read/victorialogs/pace"
)

func callerOf(tenant string) context.Context {
	return model.WithCaller(context.Background(), model.Caller{Tenant: tenant})
}

// TestOpenWithoutTurns: while the breaker is open, a request is refused at once, although those that have the
// turns hang.
func TestOpenWithoutTurns(t *testing.T) {
	w := newWorld(t, answering(statRow, rowOne+rowTwo))
	w.client.pace = pace.New(2)
	var held []func()
	for range 2 {
		leave, err := w.client.pace.Enter(context.Background(), true)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, leave)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, at := range []time.Time{time.Now(), time.Now().Add(-breaker.Pause)} { // the next one may be sent then
		w.client.breaker = breaker.Breaker{}
		for range breaker.Failures {
			pass, _ := w.client.breaker.Allow(at)
			pass.Failed(at)
		}
		if _, err := w.lines(ctx, request()); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), fmt.Sprint(breaker.Failures)) {
			t.Errorf("%v, want a refusal", err)
		}
	}
	if n := w.client.pace.Waiting(model.CallerOf(ctx).Tenant); n != 0 {
		t.Errorf("%d requests wait", n)
	}
	held[0]()
	if _, err := w.lines(ctx, request()); err != nil || w.client.breaker.Open() {
		t.Errorf("%v, and the breaker is open: %v", err, w.client.breaker.Open())
	}
	held[1]()
}

// TestLongResponseWhileOpen: the request that is let through may have a response that takes long. Other
// requests do not wait for its end.
func TestLongResponseWhileOpen(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		answering(statRow, rowOne+rowTwo)(rw, r)
		if asked.Add(1) == 1 {
			_ = http.NewResponseController(rw).Flush()
			close(began)
			<-release
		}
	})
	past := time.Now().Add(-breaker.Pause)
	for range breaker.Failures {
		pass, _ := w.client.breaker.Allow(past)
		pass.Failed(past)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := w.lines(context.Background(), request())
		ended <- err
	}()
	<-began
	for start := time.Now(); w.client.breaker.Open() && time.Since(start) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	if _, err := w.lines(context.Background(), request()); err != nil {
		t.Errorf("while a response comes: %v", err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
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
	w.client.pace = pace.New(16)
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
	t.Logf("%d right, %d errors, %d responses were refusals, %d may run now", right.Load(), failed.Load(), refused.Load(), w.client.pace.Limit())
	if wrong.Load() > 0 || right.Load() == 0 || w.client.pace.Limit() == 16 {
		t.Errorf("%d wrong, %d right, %d may run", wrong.Load(), right.Load(), w.client.pace.Limit())
	}
	if w.client.pace.Running() != 0 {
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
	w.client.pace.Slow = time.Millisecond
	for range 2 * breaker.Failures {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(5*time.Millisecond, cancel)
		if _, err := w.lines(ctx, request()); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if w.client.breaker.Open() || w.client.pace.Limit() != 4 {
		t.Error("clients that gave up count as failures of the server")
	}
	for range breaker.Failures {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		if _, err := w.lines(ctx, request()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if !w.client.breaker.Open() || w.client.pace.Limit() != pace.LeastRequests {
		t.Errorf("the breaker is open: %v, %d may run", w.client.breaker.Open(), w.client.pace.Limit())
	}
	if _, err := w.lines(context.Background(), request()); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), fmt.Sprint(breaker.Failures)) {
		t.Errorf("%v, want a refusal", err)
	}
}
