package neighbours

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// The load of one tenant that behaves.
const (
	seriesOfTenant = 100
	writeEvery     = time.Second
	queryEvery     = 2 * time.Second
	queryOfTenant  = "sum(rate(good[1m]))"
)

// took are the times of requests in seconds, from the moment at which they were due to their response.
type took struct {
	writes, queries []float64
	// refused counts responses other than 2xx, and requests without any.
	refused int
	example string
}

// crowd are tenants that write and query at a steady rate.
type crowd struct {
	c       *client
	tenants []string

	mu    sync.Mutex
	took  took
	acked map[string]int // samples by tenant
}

func newCrowd(url string, n int) *crowd {
	w := &crowd{c: newClient(url, 2*n), acked: make(map[string]int)}
	for i := range n {
		w.tenants = append(w.tenants, fmt.Sprintf("good-%d", i))
	}
	return w
}

// take returns what was measured since the last call.
func (w *crowd) take() took {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.took
	w.took = took{}
	return t
}

// run sends until the context ends. The last requests end before it returns.
func (w *crowd) run(ctx context.Context) {
	var done sync.WaitGroup
	for _, tenant := range w.tenants {
		done.Go(func() { w.each(ctx, writeEvery, func(due time.Time) { w.write(tenant, due) }) })
		done.Go(func() { w.each(ctx, queryEvery, func(due time.Time) { w.query(tenant, due) }) })
	}
	done.Wait()
}

// each calls do at each tick. It does not leave out ticks while do takes long.
func (w *crowd) each(ctx context.Context, every time.Duration, do func(due time.Time)) {
	due := time.Now().Add(time.Duration(rand.Float64() * float64(every)))
	for ; ; due = due.Add(every) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		do(due)
	}
}

// write sends a scrape. A request that is refused is sent again, as Prometheus would, and counted.
func (w *crowd) write(tenant string, due time.Time) {
	// A tenant that is late sends again at once: within one millisecond, both would be one sample.
	sent := body("good", seriesOfTenant, due, numbered)
	for try := 0; ; try++ {
		status, text, err := w.c.write(context.Background(), tenant, sent)
		if status == http.StatusNoContent {
			break
		}
		w.refuse("write", status, text, err)
		if try == 20 {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked[tenant] += seriesOfTenant
	w.took.writes = append(w.took.writes, time.Since(due).Seconds())
}

func (w *crowd) query(tenant string, due time.Time) {
	status, text, err := w.c.query(context.Background(), tenant, queryOfTenant, 10*time.Minute, "15")
	if status != http.StatusOK || err != nil {
		w.refuse("query", status, text, err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took.queries = append(w.took.queries, time.Since(due).Seconds())
}

func (w *crowd) refuse(what string, status int, text []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took.refused++
	if w.took.example == "" {
		w.took.example = fmt.Sprintf("%s: %d %.200s %v", what, status, text, err)
	}
}

// lost compares what the server has of each tenant with what was acknowledged.
func (w *crowd) lost() (acked, missing int, err error) {
	for _, tenant := range w.tenants {
		status, text, err := w.c.do(context.Background(), tenant, http.MethodGet, "/api/v1/query?query=sum(count_over_time(good[12h]))", nil)
		var answer struct {
			Data struct {
				Result []struct{ Value [2]any }
			}
		}
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %.200s", status, text)
		}
		if err == nil {
			err = json.Unmarshal(text, &answer)
		}
		n := 0
		if err == nil && len(answer.Data.Result) == 1 {
			_, err = fmt.Sscan(fmt.Sprint(answer.Data.Result[0].Value[1]), &n)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", tenant, err)
		}
		acked += w.acked[tenant]
		missing += w.acked[tenant] - n
	}
	return acked, missing, nil
}
