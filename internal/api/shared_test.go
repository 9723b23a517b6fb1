package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/answer"
	"github.com/shaledb/shale/internal/model"
)

// changing is the state of a store.
type changing struct{ clock atomic.Uint64 }

func (c *changing) Clock() uint64 { return c.clock.Load() }

func (c *changing) Look(context.Context, []string, *model.Reach) string { return "" }

func (c *changing) Changed(at uint64, _ []string, _ *model.Reach) string {
	if c.clock.Load() > at {
		return "rows"
	}
	return ""
}

// sharedWorld serves /slow, which takes a second, and whose response is the number of its run, size times.
type sharedWorld struct {
	http.Handler
	changing
	pool         *model.QueryPool
	answers      *answer.Tier
	runs, cancel atomic.Int64
	body         func(run int64, b *Body) error
	writeError   func(b *Body, e *Error) // nil: as usual
}

func newSharedWorld(tierBytes int64) *sharedWorld {
	w := &sharedWorld{pool: &model.QueryPool{MaxBytes: 64 << 20}}
	w.body = func(run int64, b *Body) error {
		b.Buf = append(b.Buf, byte('0'+run))
		return nil
	}
	w.answers = answer.New(answer.Options{MaxBytes: tierBytes, State: w, Causes: []string{"rows"}, Registerer: prometheus.NewRegistry()})
	w.Handler = serving(&Options{Pool: w.pool, Slots: NewSlots(4), Answers: w.answers}, Dialect{
		Classify: func(err error, _ bool) *Error { return &Error{Status: http.StatusServiceUnavailable, Err: err} },
		WriteError: func(b *Body, e *Error) {
			if w.writeError != nil {
				w.writeError(b, e)
			}
			b.SendText(e.Status, e.Error())
		},
	}, Endpoint{Pattern: "/slow", Name: "slow", Needs: Form | Turn | Deadline, Serve: w.slow, Kept: &Kept{Times: []string{"time"}, Headers: []string{"Accept"}}})
	return w
}

func (w *sharedWorld) slow(r *Request) (*Response, error) {
	run := w.runs.Add(1)
	select {
	case <-time.After(time.Second):
	case <-r.Context().Done():
		w.cancel.Add(1)
		return nil, r.Context().Err()
	}
	if r.Form.Get("fail") != "" {
		return nil, errors.New("it failed")
	}
	return &Response{ContentType: "text/plain", Write: func(b *Body) error { return w.body(run, b) }}, nil
}

// get sends a request, and returns its response without its encoding.
func (w *sharedWorld) get(ctx context.Context, url string, header ...string) (rec *httptest.ResponseRecorder) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec = httptest.NewRecorder()
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			rec.Code = 0 // the connection was cut
		} else if p != nil {
			panic(p)
		}
	}()
	w.ServeHTTP(rec, r)
	return rec
}

// TestOneFlight: requests that come while an equal one runs get its response, whoever leaves.
func TestOneFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSharedWorld(1 << 20)
		var clients sync.WaitGroup
		var served atomic.Int64
		for i := range 20 {
			ctx, leave := context.WithCancel(t.Context())
			clients.Go(func() {
				rec := w.get(ctx, "/slow?time=1&i="+string(rune('a'+i%2)))
				switch {
				case i < 10 && rec.Code != http.StatusServiceUnavailable:
					t.Errorf("client %d left and got %d", i, rec.Code)
				case i >= 10 && (rec.Code != http.StatusOK || len(rec.Body.String()) != 1):
					t.Errorf("client %d stayed and got %d %s", i, rec.Code, rec.Body)
				case i >= 10:
					served.Add(1)
				}
			})
			if synctest.Wait(); i < 10 { // among them those that came first
				time.AfterFunc(100*time.Millisecond, leave)
			} else {
				defer leave()
			}
		}
		clients.Wait()
		synctest.Wait() // the run gives its memory back after it has served its last client
		if w.runs.Load() != 2 || w.cancel.Load() != 0 || served.Load() != 10 {
			t.Errorf("%d runs, %d of them cancelled, %d clients served; want 2, 0, 10", w.runs.Load(), w.cancel.Load(), served.Load())
		}
		if held := w.pool.Used(); held != 0 {
			t.Errorf("%d bytes are held", held)
		}
	})
}

// TestAllLeave: a request ends when its last client leaves, and the next one runs again.
func TestAllLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSharedWorld(1 << 20)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var clients sync.WaitGroup
		for range 3 {
			clients.Go(func() { w.get(ctx, "/slow?time=1") })
		}
		clients.Wait()
		if w.cancel.Load() != 1 {
			t.Errorf("%d requests were cancelled", w.cancel.Load())
		}
		if rec := w.get(t.Context(), "/slow?time=1"); rec.Code != http.StatusOK || rec.Body.String() != "2" {
			t.Errorf("got %d %s", rec.Code, rec.Body)
		}
	})
}

// TestKept: what is kept, and for whom.
func TestKept(t *testing.T) {
	for _, test := range []struct {
		name          string
		first, second string
		header        []string
		change        bool
		kept          bool
	}{
		{"the same", "/slow?time=1&a=2", "/slow?time=1&a=2", nil, false, true},
		{"another order", "/slow?time=1&a=2", "/slow?a=2&time=1", nil, false, true},
		{"another value", "/slow?time=1&a=2", "/slow?time=1&a=3", nil, false, false},
		{"two values", "/slow?time=1&a=2&a=3", "/slow?time=1&a=2", nil, false, false},
		{"values that look alike", "/slow?time=1&a=2%01b", "/slow?time=1&a=2&b=", nil, false, false},
		{"another tenant", "/slow?time=1", "/slow?time=1", []string{"X-Scope-OrgID", "b"}, false, false},
		{"a header that counts", "/slow?time=1", "/slow?time=1", []string{"Accept", "text/csv"}, false, false},
		{"a header that does not", "/slow?time=1", "/slow?time=1", []string{"User-Agent", "x"}, false, true},
		{"without a time", "/slow?a=2", "/slow?a=2", nil, false, false},
		{"after a change", "/slow?time=1", "/slow?time=1", nil, true, false},
		{"fresh", "/slow?time=1", "/slow?time=1", []string{"Cache-Control", "max-age=0, no-cache"}, false, false},
		{"an error", "/slow?time=1&fail=1", "/slow?time=1&fail=1", nil, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newSharedWorld(1 << 20)
			first := w.get(t.Context(), test.first)
			if test.change {
				w.clock.Add(1)
			}
			second := w.get(t.Context(), test.second, test.header...)
			if got := w.runs.Load() == 1; got != test.kept || test.kept && first.Body.String() != second.Body.String() {
				t.Errorf("%s: kept %v, %q and %q", test.name, got, first.Body, second.Body)
			}
			if got := strings.HasPrefix(second.Header().Get("Shale-Cost"), "tier=answer, age="); got != test.kept {
				t.Errorf("%s: Shale-Cost is %q", test.name, second.Header().Get("Shale-Cost"))
			}
		})
	}
}

// TestNeverOlder: a client that comes after a change never gets a response from before it.
func TestNeverOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSharedWorld(1 << 20)
		var clients sync.WaitGroup
		for i := range 6 {
			clients.Go(func() {
				want := []string{"1", "2"}[min(i, 1)] // the clients after the change share the second run
				if rec := w.get(t.Context(), "/slow?time=1"); rec.Body.String() != want {
					t.Errorf("client %d got %s, want %s", i, rec.Body, want)
				}
			})
			if synctest.Wait(); i == 0 {
				w.clock.Add(1)
			}
		}
		clients.Wait()
		if w.runs.Load() != 2 {
			t.Errorf("%d runs", w.runs.Load())
		}
	})
}

// TestLarge: one client gets a response that is too large to be gathered from the run that it waited for, and
// the others run for themselves.
func TestLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSharedWorld(64 << 10) // answers have 8 KiB
		const size = 300_000
		w.body = func(run int64, b *Body) error {
			for i := range size {
				b.Buf = append(b.Buf, byte('a'+i%26))
				b.Spill()
			}
			return nil
		}
		var clients sync.WaitGroup
		for i := range 3 {
			clients.Go(func() {
				rec := w.get(t.Context(), "/slow?time=1")
				if rec.Code != http.StatusOK || rec.Body.Len() != size || strings.Trim(rec.Body.String()[size-26:], "abcdefghijklmnopqrstuvwxyz") != "" {
					t.Errorf("client %d got %d with %d bytes", i, rec.Code, rec.Body.Len())
				}
			})
			synctest.Wait()
		}
		clients.Wait()
		synctest.Wait() // as in TestOneFlight
		if w.runs.Load() != 3 || w.pool.Used() != 0 {
			t.Errorf("%d runs, %d bytes held", w.runs.Load(), w.pool.Used())
		}
	})
}

// TestBroken: a run that fails in the middle of its response cuts the connections of all clients, large or
// not.
func TestBroken(t *testing.T) {
	for _, size := range []int{FlushBytes, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			w := newSharedWorld(2 << 20)
			w.body = func(_ int64, b *Body) error {
				for range size + 1 {
					b.Buf = append(b.Buf, 'x')
					b.Spill()
				}
				return io.ErrUnexpectedEOF
			}
			var clients sync.WaitGroup
			for i := range 3 {
				clients.Go(func() {
					if rec := w.get(t.Context(), "/slow?time=1"); rec.Code != 0 {
						t.Errorf("size %d: client %d got %d", size, i, rec.Code)
					}
				})
				synctest.Wait()
			}
			clients.Wait()
		})
	}
}

// hits returns a handler that has an answer, and the request for it.
func hits(tb testing.TB, size int) (*sharedWorld, *http.Request) {
	w := newSharedWorld(16 << 20)
	w.body = func(_ int64, b *Body) error {
		b.Buf = append(b.Buf, strings.Repeat("x", size)...)
		return nil
	}
	const url = "/slow?time=1&query=sum(rate(x[5m]))&start=1700000000&end=1700003600&step=15"
	if rec := w.get(tb.Context(), url); rec.Code != http.StatusOK {
		tb.Fatal(rec.Code)
	}
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	return w, r
}

// discard is a client that reads nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// TestHitAllocations: most are those of a form, a context and header values.
func TestHitAllocations(t *testing.T) {
	w, r := hits(t, 100<<10)
	got := testing.AllocsPerRun(100, func() {
		r.Form = nil
		w.ServeHTTP(discard{make(http.Header, 16)}, r)
	})
	if got > 48 {
		t.Errorf("%v allocations a hit, want at most 48", got)
	}
}

func BenchmarkAnswerHit(b *testing.B) {
	w, r := hits(b, 100<<10)
	b.ReportAllocs()
	for b.Loop() {
		r.Form = nil
		w.ServeHTTP(discard{make(http.Header, 16)}, r)
	}
}

// TestFlightFails: where even the error of a shared request cannot be written, each client sends its own.
func TestFlightFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSharedWorld(1 << 20)
		w.writeError = func(b *Body, e *Error) {
			if e.Status == http.StatusInternalServerError { // which says that the other one could not be written
				w.writeError = nil
			}
			panic("a hostile error")
		}
		var clients sync.WaitGroup
		for range 3 {
			clients.Go(func() {
				if rec := w.get(t.Context(), "/slow?time=1&fail=1"); rec.Code != http.StatusServiceUnavailable || rec.Body.String() != "it failed" {
					t.Errorf("%d %s", rec.Code, rec.Body)
				}
			})
		}
		clients.Wait()
		if n := w.runs.Load(); n != 4 {
			t.Errorf("%d runs, want one for all, and one for each", n)
		}
		if held := w.pool.Used(); held != 0 {
			t.Errorf("%d bytes are held", held)
		}
	})
}
