package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/answer"
	"github.com/shaledb/shale/internal/model"
)

// errClientLeft is that of a write to a client that has left.
var errClientLeft = errors.New("the client has left")

// slowClient reads as read says, which gets the number of the write.
type slowClient struct {
	*httptest.ResponseRecorder
	writes int
	read   func(n int) error
}

func (c *slowClient) Write(b []byte) (int, error) {
	c.writes++
	if err := c.read(c.writes); err != nil {
		return 0, err
	}
	return c.ResponseRecorder.Write(b)
}

// slowWorld serves endpoints to slow clients.
type slowWorld struct {
	http.Handler
	slots *Slots
	gate  *Gate // of other requests
}

func newSlowWorld(slots int, l Limits, pool *model.QueryPool, answers *answer.Tier, endpoints ...Endpoint) *slowWorld {
	o := &Options{Pool: pool, Slots: NewSlots(slots), Limits: l, Answers: answers, Waits: NewWaitMetrics(prometheus.NewRegistry(), nil)}
	h := serving(o, Dialect{Classify: func(err error, _ bool) *Error {
		var e *Error
		if errors.As(err, &e) {
			return e
		}
		return &Error{Status: http.StatusServiceUnavailable, Err: err}
	}}, endpoints...)
	return &slowWorld{h, o.Slots, NewGate(o.Slots, time.Hour, gateMetrics())}
}

// get sends a request of a tenant, and reports whether its response was cut.
func (w *slowWorld) get(ctx context.Context, tenant, url string, read func(int) error) (got *httptest.ResponseRecorder, cut bool) {
	got = httptest.NewRecorder()
	defer func() {
		if p := recover(); p != nil {
			if cut = p == http.ErrAbortHandler; !cut {
				panic(p)
			}
		}
	}()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	r.Header.Set(model.TenantHeader, tenant)
	w.ServeHTTP(&slowClient{got, 0, read}, r)
	return got, false
}

// check expects that no request has left anything.
func (w *slowWorld) check(t *testing.T) {
	t.Helper()
	if w.slots.Running() != 0 || w.slots.Paused() != 0 {
		t.Errorf("%d requests have a turn, and %d pause", w.slots.Running(), w.slots.Paused())
	}
}

// inPieces is an endpoint whose response has some pieces, after a time.
func inPieces(pieces int, after time.Duration) Endpoint {
	return Endpoint{Pattern: "/pieces", Name: "pieces", Needs: Form | Turn | Deadline, Serve: func(*Request) (*Response, error) {
		time.Sleep(after)
		return &Response{Write: func(b *Body) error {
			for range pieces {
				b.Buf = append(b.Buf, make([]byte, FlushBytes)...)
				b.Spill()
			}
			return nil
		}}, nil
	}}
}

// sleeping reads a piece in a time.
func sleeping(d time.Duration) func(int) error {
	return func(int) error {
		time.Sleep(d)
		return nil
	}
}

// pausing reads nothing for a time, and then all.
func pausing(d time.Duration) func(int) error {
	return func(n int) error {
		if n == 1 {
			time.Sleep(d)
		}
		return nil
	}
}

// An error that is read slowly gives back no turn if the request has none.
func TestUnreadError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := &model.QueryPool{MaxBytes: 1 << 20}
		w := newSlowWorld(1, Limits{Timeout: 10 * time.Second}, pool, nil, Endpoint{Pattern: "/large", Name: "large", Needs: Form | Turn | Deadline, Serve: func(r *Request) (*Response, error) {
			return nil, r.Quota.TakeBytes(700 << 10)
		}})
		other := &model.Quota{Pool: pool}
		if err := other.TakeBytes(800 << 10); err != nil {
			t.Fatal(err)
		}
		defer other.Release()
		if got, _ := w.get(t.Context(), "a", "/large", sleeping(2*unreadAfter)); got.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d", got.Code)
		}
		w.check(t)
	})
}

// A client that reads on has as much time as it has without giving back the turn: from the header on.
func TestUnreadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(1, Limits{Timeout: 10 * time.Second}, nil, nil, inPieces(3, 9*time.Second))
		go func() {
			time.Sleep(9500 * time.Millisecond)
			_ = w.gate.Enter(context.Background())
			time.Sleep(3 * time.Second)
			w.gate.Leave(context.Background())
		}()
		got, cut := w.get(t.Context(), "a", "/pieces", pausing(unreadAfter+time.Second/5))
		if cut || got.Body.Len() != 3*FlushBytes {
			t.Errorf("%d bytes, cut: %t", got.Body.Len(), cut)
		}
		w.check(t)
	})
}

// A client that reads all the time, and slowly, is not kept waiting by those that come later.
func TestUnreadSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 20
		w := newSlowWorld(1, Limits{Timeout: 2 * time.Minute}, nil, nil, inPieces(pieces, 0))
		ctx, stop := context.WithCancel(context.Background())
		var all sync.WaitGroup
		all.Go(func() {
			for time.Sleep(time.Millisecond); ctx.Err() == nil; time.Sleep(900 * time.Millisecond) {
				all.Go(func() {
					if w.gate.Enter(ctx) == nil {
						time.Sleep(time.Second)
						w.gate.Leave(ctx)
					}
				})
			}
		})
		got, cut := w.get(t.Context(), "a", "/pieces", sleeping(3*unreadAfter/2))
		if cut || got.Body.Len() != pieces*FlushBytes {
			t.Errorf("%d bytes, cut: %t", got.Body.Len(), cut)
		}
		stop()
		all.Wait()
		w.check(t)
	})
}

// A response that several clients may share ends with its only client, also while it waits for a turn.
func TestUnreadLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := answer.New(answer.Options{MaxBytes: 100 << 10, State: &changing{}, Causes: []string{"rows"}, Registerer: prometheus.NewRegistry()})
		e := inPieces(6, 0)
		e.Needs, e.Kept = Form|Turn, &Kept{Times: []string{"time"}}
		w := newSlowWorld(1, Limits{Timeout: 2 * time.Minute}, &model.QueryPool{MaxBytes: 64 << 20}, answers, e)
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Second / 2)
			_ = w.gate.Enter(context.Background())
			time.Sleep(10 * time.Second)
			leave()
			time.Sleep(time.Hour)
			w.gate.Leave(context.Background())
		}()
		began := time.Now()
		_, cut := w.get(ctx, "a", "/pieces?time=1", func(n int) error {
			if n == 2 {
				time.Sleep(5 * time.Second)
			}
			if ctx.Err() != nil {
				return errClientLeft
			}
			return nil
		})
		if took := time.Since(began); !cut || took > 11*time.Second {
			t.Errorf("cut: %t, after %s", cut, took)
		}
		time.Sleep(2 * time.Hour)
		w.check(t)
	})
}

// A request that may not give back its turn at once does it later.
func TestUnreadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(2, Limits{Timeout: 10 * time.Minute}, nil, nil, inPieces(1, 0))
		w.slots.SetMostPaused(1)
		var all sync.WaitGroup
		for _, took := range []time.Duration{10 * time.Second, time.Minute} {
			all.Go(func() { w.get(t.Context(), "a", "/pieces", pausing(took)) })
			time.Sleep(2 * unreadAfter)
		}
		if w.slots.Running() != 1 {
			t.Errorf("%d requests have a turn", w.slots.Running())
		}
		if time.Sleep(10 * time.Second); w.slots.Running() != 0 || w.slots.Paused() != 1 {
			t.Errorf("%d requests have a turn, and %d pause", w.slots.Running(), w.slots.Paused())
		}
		all.Wait()
		w.check(t)
	})
}

// Requests without a turn count as those of their tenant, and leave room for those of others.
func TestUnreadOfTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(4, Limits{Timeout: 10 * time.Minute, MaxWait: 10 * time.Second, MaxOfTenant: 7}, nil, nil, inPieces(1, 0))
		var mu sync.Mutex
		var all sync.WaitGroup
		codes := map[string]int{}
		for i := range 20 {
			all.Go(func() {
				tenant := []string{"a", "a", "a", "b"}[i%4]
				got, _ := w.get(t.Context(), tenant, "/pieces", pausing(3*time.Minute))
				mu.Lock()
				defer mu.Unlock()
				codes[fmt.Sprint(tenant, got.Code)]++
			})
			time.Sleep(2 * unreadAfter)
		}
		if n := w.slots.Paused(); n != 8 { // as many of "a" as may pause next to others, and the rest of "b"
			t.Errorf("%d requests pause", n)
		}
		all.Wait()
		if codes["a200"] != 7 || codes["a429"] != 8 || codes["b200"] != 5 {
			t.Error(codes)
		}
		w.check(t)
	})
}

// No random requests to slow clients leave a turn, a pause or memory taken.
func TestUnreadRandom(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			r := rand.New(rand.NewPCG(seed, 1))
			random := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return r.IntN(n)
			}
			answers := answer.New(answer.Options{MaxBytes: 100 << 10, State: &changing{}, Causes: []string{"rows"}, Registerer: prometheus.NewRegistry()})
			pool := &model.QueryPool{MaxBytes: 1 << 20}
			serve := func(r *Request) (*Response, error) {
				if err := r.Quota.TakeBytes(int64(1 + random(300<<10))); err != nil {
					return nil, err
				}
				time.Sleep(time.Duration(random(3000)) * time.Millisecond)
				fate, pieces := random(10), 1+random(5)
				return &Response{Write: func(b *Body) error {
					for i := range pieces {
						b.Buf = append(b.Buf, make([]byte, FlushBytes)...)
						b.Spill()
						switch {
						case fate == 0 && i == pieces/2:
							panic("a bug")
						case fate == 1 && i == pieces/2:
							return errors.New("an error")
						}
						time.Sleep(time.Duration(random(500)) * time.Millisecond)
					}
					return nil
				}}, nil
			}
			w := newSlowWorld(2, Limits{Timeout: 20 * time.Second, MaxWait: 5 * time.Second}, pool, answers,
				Endpoint{Pattern: "/kept", Name: "kept", Needs: Form | Turn | Deadline, Serve: serve, Kept: &Kept{Times: []string{"time"}}},
				Endpoint{Pattern: "/alone", Name: "alone", Needs: Form | Turn, Serve: serve})
			var all sync.WaitGroup
			for i := range 60 {
				all.Go(func() {
					time.Sleep(time.Duration(random(40_000)) * time.Millisecond)
					ctx, leave := context.WithTimeout(context.Background(), time.Duration(random(60_000))*time.Millisecond)
					defer leave()
					w.get(ctx, fmt.Sprint(i%2), fmt.Sprintf("/%s?time=%d", []string{"kept", "alone"}[random(2)], random(6)), func(int) error {
						if ctx.Err() != nil || random(30) == 0 {
							return errClientLeft
						}
						time.Sleep([]time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 6 * time.Second}[random(5)])
						return nil
					})
				})
			}
			all.Wait()
			time.Sleep(time.Hour)
			if w.check(t); pool.Used() != 0 {
				t.Errorf("seed %d: %d bytes are left", seed, pool.Used())
			}
		})
	}
}
