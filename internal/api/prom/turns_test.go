package prom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
)

// eventually waits until a condition holds. Its bound is only a guard against hanging.
func eventually(t *testing.T, otherwise string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}

// stalled is a store that gives no series before the query is given up.
type stalled struct{ storage.Querier }

func (stalled) Select(ctx context.Context, _ bool, _ *storage.SelectHints, _ ...*labels.Matcher) storage.SeriesSet {
	select {
	case <-ctx.Done():
		return storage.ErrSeriesSet(ctx.Err())
	case <-time.After(time.Minute): // a guard against hanging: callers give up long before
		return storage.ErrSeriesSet(errors.New("nobody gave the query up"))
	}
}

// TestTimeouts: the parameter ends a query that the engine would let run for an hour, in its work as in its
// wait for the store. Code that ignores it returns a result, or the error of the store.
func TestTimeouts(t *testing.T) {
	w := newWorld(t, func(o *prom.Options) {
		o.Engine = newEngine(t, 1e8, time.Hour)
		inner := o.Queryable
		o.Queryable = func(tenant string, q *model.Quota, c *model.Cost) storage.Queryable {
			if tenant == "stalled" {
				return storage.QueryableFunc(func(int64, int64) (storage.Querier, error) { return stalled{storage.NoopQuerier()}, nil })
			}
			return inner(tenant, q, c)
		}
	})
	for _, c := range []struct{ query, timeout string }{
		{"count_over_time((vector(time()) > 1e12)[9000s:1ms])", "1ms"},
		{"count_over_time((vector(time()) > 1e12)[9000s:1ms])", "20ms"},
		{"up", "1e-9"},
	} {
		expect(t, w.Get("/api/v1/query", "query="+c.query, "timeout="+c.timeout), 503, "timeout", "timed out")
	}
	expect(t, w.Do("GET", "/api/v1/query", []string{"query=up", "timeout=20ms"}, []string{"X-Scope-OrgID: stalled"}), 503, "timeout", "")
	// Without the parameter the engine's own limit holds.
	w = newWorld(t, func(o *prom.Options) {
		o.Engine = newEngine(t, 1e8, 10*time.Millisecond)
		o.Limits.Timeout = time.Nanosecond
	})
	expect(t, w.Get("/api/v1/query", "query=count_over_time((vector(time()) > 1e12)[9000s:1ms])"), 503, "timeout", "timed out")
	expect(t, w.Get("/api/v1/labels"), 503, "timeout", "deadline exceeded (query.timeout)")
	expect(t, w.Get("/api/v1/series?match[]=up"), 503, "timeout", "deadline exceeded (query.timeout)")
}

// occupied is an API whose two turns are both taken, until they are released.
func occupied(t *testing.T, maxWait time.Duration) (w *world, release func()) {
	t.Helper()
	entered, leave := make(chan struct{}), make(chan struct{})
	w = newWorld(t, func(o *prom.Options) {
		o.Slots, o.Limits.MaxWait = api.NewSlots(2), maxWait
		inner := o.Queryable
		o.Queryable = func(tenant string, q *model.Quota, c *model.Cost) storage.Queryable {
			if tenant == "slow" {
				entered <- struct{}{}
				<-leave
			}
			return inner(tenant, q, c)
		}
	})
	var slow sync.WaitGroup
	for range 2 {
		slow.Go(func() {
			if r := w.Do("GET", "/api/v1/query?query=1", nil, []string{"X-Scope-OrgID: slow"}); r.Code != 200 {
				t.Errorf("slow: %s", apitest.Show(r))
			}
		})
		<-entered
	}
	return w, func() {
		close(leave)
		slow.Wait()
	}
}

func TestGate(t *testing.T) {
	w, release := occupied(t, 50*time.Millisecond)
	for _, path := range everything {
		r := w.Get(path)
		expect(t, r, 503, "unavailable", "query.max-concurrent")
		if r.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	// An endpoint that needs no turn responds.
	if r := w.Get("/api/v1/status/buildinfo"); r.Code != 200 {
		t.Errorf("build information: %s", apitest.Show(r))
	}
	release()
	for range 5 {
		if r := w.Get("/api/v1/query?query=1"); r.Code != 200 {
			t.Errorf("afterwards: %s", apitest.Show(r))
		}
	}
	if got := testutil.ToFloat64(mustGauge(t, w, "shale_api_prom_running_requests")); got != 0 {
		t.Errorf("%v requests run", got)
	}
}

// TestGateBoundsWaiters: more than 16 for each turn are refused at once, with the reason.
func TestGateBoundsWaiters(t *testing.T) {
	w, release := occupied(t, time.Hour)
	// A guard against hanging: a request that is refused at once does not wait for it.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ask := func(tenant string) *httptest.ResponseRecorder {
		r, req := httptest.NewRecorder(), httptest.NewRequest("GET", "/api/v1/query?query=1", nil)
		req.Header.Set("X-Scope-OrgID", tenant)
		w.ServeHTTP(r, req.WithContext(ctx))
		return r
	}
	var waiters, refused sync.WaitGroup
	for i := range 32 {
		waiters.Go(func() {
			// One tenant may have 24 of the 32 places.
			if r := ask([]string{"a", "b"}[i%2]); r.Code != 200 {
				t.Errorf("a waiter: %s", apitest.Show(r))
			}
		})
	}
	eventually(t, "not all that may wait do", func() bool {
		return testutil.ToFloat64(mustGauge(t, w, "shale_api_prom_waiting_requests")) == 32
	})
	for range 32 {
		refused.Go(func() {
			expect(t, ask("a"), 503, "unavailable", "2 queries running and 32 waiting (query.max-concurrent)")
		})
	}
	refused.Wait()
	release()
	waiters.Wait()
}

// TestClientThatDoesNotRead must not keep its place for longer than a query may run.
func TestClientThatDoesNotRead(t *testing.T) {
	w := newWorld(t, func(o *prom.Options) {
		o.Engine = newEngine(t, 1e7, time.Minute)
		o.Limits.Timeout, o.Slots = 300*time.Millisecond, api.NewSlots(1)
		o.Limits.MaxWait = time.Minute // a guard against hanging
	})
	for i := range 100 {
		w.MustLoad(t, "anonymous", fmt.Sprintf(`up{i="%d"} 990:%d`, i, i))
	}
	s := httptest.NewServer(w)
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// 29 MB, which no socket takes unread.
	fmt.Fprint(conn, "GET /api/v1/query_range?query=up&start=990&end=1190&step=0.02 HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if r := w.Get("/api/v1/query?query=1"); r.Code != 200 { // waits for its turn
		t.Errorf("afterwards: %s", apitest.Show(r))
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // likewise
	if rest, err := io.ReadAll(conn); err == nil && bytes.HasSuffix(rest, []byte("0\r\n\r\n")) {
		t.Error("an answer that was cut short looks whole")
	}
}
