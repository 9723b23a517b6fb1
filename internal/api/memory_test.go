package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/turns"
)

// memoryWorld serves /hold?bytes=N, which charges N bytes in steps, holds them for a second and responds.
type memoryWorld struct {
	http.Handler
	pool  *model.QueryPool
	waits *WaitMetrics
	runs  atomic.Int64
}

func newMemoryWorld(poolBytes int64, slots int, l Limits) *memoryWorld {
	w := &memoryWorld{pool: &model.QueryPool{MaxBytes: poolBytes}, waits: NewWaitMetrics(prometheus.NewRegistry(), nil)}
	w.Handler = serving(&Options{Pool: w.pool, Waits: w.waits, Slots: NewSlots(slots), Limits: l}, Dialect{Classify: func(err error, _ bool) *Error {
		status := http.StatusServiceUnavailable
		if errors.Is(err, model.ErrLimit) {
			status = http.StatusUnprocessableEntity
		}
		return &Error{Status: status, Err: err}
	}}, Endpoint{Pattern: "/hold", Name: "hold", Needs: Form | Turn | Deadline, Serve: w.hold}, Endpoint{Pattern: "/stream", Name: "stream", Needs: Form | Turn, Serve: w.stream})
	return w
}

func (w *memoryWorld) hold(r *Request) (*Response, error) {
	w.runs.Add(1)
	var bytes int64
	_, _ = fmt.Sscan(r.Form.Get("bytes"), &bytes)
	if r.Form.Get("fails") != "" { // after it has coped with less memory
		if err := r.Quota.TakeBytes(bytes); !errors.Is(err, model.ErrTransient) {
			return nil, fmt.Errorf("the pool has room: %v", err)
		}
		return nil, fmt.Errorf("%w: the bucket is away", model.ErrTransient)
	}
	const steps = 10
	for range steps {
		if err := r.Quota.TakeBytes(bytes / steps); err != nil {
			return nil, fmt.Errorf("while it reads: %w", err)
		}
		r.Cost.Series.Add(1)
		time.Sleep(time.Second / steps)
	}
	return &Response{Write: func(b *Body) error { b.Raw("done"); return nil }}, nil
}

// stream sends its response while it charges 20,000 bytes.
func (w *memoryWorld) stream(r *Request) (*Response, error) {
	return &Response{Write: func(b *Body) error {
		for range 20 {
			if err := r.Quota.TakeBytes(1000); err != nil {
				return err
			}
			b.Raw("piece")
			b.Flush(http.StatusOK, false)
			time.Sleep(time.Second)
		}
		return nil
	}}, nil
}

func (w *memoryWorld) get(ctx context.Context, bytes int64) *httptest.ResponseRecorder {
	out := httptest.NewRecorder()
	w.ServeHTTP(out, httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("/hold?bytes=%d", bytes), nil))
	return out
}

// TestHeavyQueriesWait: 20 queries of which four fit the memory all have their result, and light ones pass
// them although there are fewer turns than queries.
func TestHeavyQueriesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(80_000, 16, Limits{MaxBytes: 60_000, MaxWait: 10 * time.Second})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if r := w.get(t.Context(), 17_000); r.Code != http.StatusOK || r.Header().Get("Shale-Cost") != "series=10" {
					t.Errorf("%d %s %q", r.Code, r.Header(), r.Body)
				}
			})
		}
		time.Sleep(5 * time.Second)
		for range 10 {
			began := time.Now()
			if r := w.get(t.Context(), 1000); r.Code != http.StatusOK || time.Since(began) > time.Second {
				t.Errorf("a light query: %d %q after %s", r.Code, r.Body, time.Since(began))
			}
		}
		all.Wait()
		if used := w.pool.Used(); used != 0 {
			t.Errorf("%d bytes are still charged", used)
		}
		granted := testutil.ToFloat64(w.waits.waits.WithLabelValues(waitGranted))
		if runs := w.runs.Load(); granted == 0 || float64(runs) != 30+granted || runs > 120 || testutil.ToFloat64(w.waits.waiting) != 0 {
			t.Errorf("%d attempts after %v waits", runs, granted)
		}
	})
}

// TestMemoryDoesNotCome: a query that waits in vain is told the setting and when to come back; one that needs
// more than there is need not come back; a client may leave.
func TestMemoryDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(80_000, 2, Limits{Timeout: time.Minute})
		other := &model.Quota{Pool: w.pool}
		if err := other.TakeBytes(60_000); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r := w.get(t.Context(), 20_000)
		if r.Code != http.StatusServiceUnavailable || r.Header().Get("Retry-After") != "5" || !strings.Contains(r.Body.String(), "--memory") {
			t.Errorf("%d %s %q", r.Code, r.Header(), r.Body)
		}
		if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("it waited %s, half of the timeout is 30s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		w.get(ctx, 20_000)
		var all sync.WaitGroup
		for range 2 * (turns.WaitersPerTurn + 1) {
			all.Go(func() { w.get(t.Context(), 20_000) })
		}
		time.Sleep(20 * time.Second)
		if r := w.get(t.Context(), 20_000); r.Code != http.StatusServiceUnavailable || !strings.Contains(r.Body.String(), "query.max-concurrent") {
			t.Errorf("one that waits too many: %d %q", r.Code, r.Body)
		}
		other.Release()
		all.Wait()
		if r := w.get(t.Context(), 75_000); r.Code != http.StatusUnprocessableEntity || !strings.Contains(r.Body.String(), "--memory") {
			t.Errorf("more than there is: %d %q", r.Code, r.Body)
		}
		if left := testutil.ToFloat64(w.waits.waits.WithLabelValues(waitLeft)); left != 1 || w.pool.Used() != 0 {
			t.Errorf("%v have left, %d bytes are charged", left, w.pool.Used())
		}
	})
}

// TestCopedWithLessMemory: a query that could do without memory that the pool refused, and fails later for
// another reason, does not wait for memory. Nor is it told that it needs more than there is.
func TestCopedWithLessMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, bytes := range []int64{20_000, 75_000} { // the latter is more than heavy queries may have
			w := newMemoryWorld(80_000, 2, Limits{Timeout: time.Minute})
			other := &model.Quota{Pool: w.pool}
			if err := other.TakeBytes(60_000); err != nil {
				t.Fatal(err)
			}
			began, out := time.Now(), httptest.NewRecorder()
			w.ServeHTTP(out, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/hold?fails=1&bytes=%d", bytes), nil))
			if out.Code != http.StatusServiceUnavailable || !strings.Contains(out.Body.String(), "the bucket is away") || w.runs.Load() != 1 || time.Since(began) > 0 {
				t.Errorf("%d bytes: %d %q after %d attempts and %v", bytes, out.Code, out.Body, w.runs.Load(), time.Since(began))
			}
		}
	})
}

// TestStreamsGoOn: a response that has begun is not cut because an older query waits.
func TestStreamsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(80_000, 4, Limits{})
		other := &model.Quota{Pool: w.pool}
		if err := other.TakeBytes(40_000); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() { w.get(t.Context(), 32_000) }) // waits
		time.Sleep(10 * time.Millisecond)
		all.Go(func() {
			out := httptest.NewRecorder()
			w.ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/stream", nil))
			if got := strings.Count(out.Body.String(), "piece"); got != 20 {
				t.Errorf("%d pieces of 20", got)
			}
		})
		time.Sleep(25 * time.Second)
		other.Release()
		all.Wait()
	})
}

// TestHeavyQueryPassesLightOnes: with the shares that a server has by default, light clients that hold a part
// of the pool at all times do not keep a heavy query waiting.
func TestHeavyQueryPassesLightOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(300_000, 16, Limits{MaxBytes: 250_000, Timeout: 2 * time.Minute, MaxWait: 10 * time.Second})
		stop := make(chan struct{})
		var all sync.WaitGroup
		for i := range 9 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 110 * time.Millisecond)
				for {
					select {
					case <-stop:
						return
					default:
					}
					if r := w.get(t.Context(), 4600); r.Code != http.StatusOK {
						t.Errorf("a light query: %d %s", r.Code, r.Body)
					}
				}
			})
		}
		other := &model.Quota{Pool: w.pool}
		if err := other.TakeBytes(124_000); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Second, other.Release)
		time.Sleep(500 * time.Millisecond)
		began := time.Now()
		if r := w.get(t.Context(), 140_000); r.Code != http.StatusOK || time.Since(began) > 10*time.Second {
			t.Errorf("the heavy query: %d after %s: %s", r.Code, time.Since(began), r.Body)
		}
		if granted := testutil.ToFloat64(w.waits.waits.WithLabelValues(waitGranted)); granted == 0 {
			t.Error("the heavy query did not wait")
		}
		close(stop)
		all.Wait()
	})
}

// TestWaitersAreApart: as many queries as may wait for memory do not keep light ones from waiting for a turn.
func TestWaitersAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(80_000, 2, Limits{Timeout: time.Minute, MaxWait: 10 * time.Second})
		other := &model.Quota{Pool: w.pool}
		if err := other.TakeBytes(60_000); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 16 * turns.WaitersPerTurn { // more than may wait
			all.Go(func() { w.get(t.Context(), 20_000) })
			time.Sleep(100 * time.Millisecond)
		}
		if waiting := testutil.ToFloat64(w.waits.waiting); waiting != 2*turns.WaitersPerTurn {
			t.Errorf("%v queries wait for memory", waiting)
		}
		for range 8 {
			all.Go(func() {
				if r := w.get(t.Context(), 1000); r.Code != http.StatusOK {
					t.Errorf("a light query: %d %s", r.Code, r.Body)
				}
			})
		}
		time.Sleep(5 * time.Second)
		other.Release()
		all.Wait()
	})
}
