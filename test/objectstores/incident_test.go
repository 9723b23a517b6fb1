//go:build e2e

package objectstores

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/test/faultproxy"
)

// The incident: a tenant reads all its streams over all days, while others look at panels.
const (
	panelTenants, panelStreams = 5, 40
	greedyDays, greedyStreams  = 15, 60
	greedyClients              = 24 // more than run at one time
	// storeRate is the number of requests per second that the store takes.
	storeRate = 100
)

// panels asks for a stream of the last days every 400 ms for each tenant, each only once so that no cache has
// it, and returns how long each query took.
func (w *faultWorld) panels(tenants []string) []time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	for k, tenant := range tenants {
		all.Go(func() {
			time.Sleep(time.Duration(k) * 400 * time.Millisecond / time.Duration(len(tenants)))
			tick := time.NewTicker(400 * time.Millisecond)
			defer tick.Stop()
			for i := range panelStreams {
				app, asked := fmt.Sprint("a", i), time.Now()
				last := len(w.days) - 1
				want := w.want[tenant+"/"+app]
				want = want[len(want)-2*len(want)/len(w.days):]
				got, err := w.rows(tenant, fmt.Sprintf("{app=%q}", app), w.days[last-1], w.days[last].Add(time.Hour))
				if err != nil || !slices.Equal(got, want) {
					w.t.Errorf("a panel of %s: %d of %d rows: %v", tenant, len(got), len(want), err)
				}
				mu.Lock()
				took = append(took, time.Since(asked))
				mu.Unlock()
				<-tick.C
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	return took
}

// TestGreedyTenant replays an incident of another store: a tenant asks for everything, over and over, and the
// store limits the rate of requests. The panels of the others stay fast, the tenant is slowed down, no storm
// follows the first refusals, and a budget refuses its query with the bill.
func TestGreedyTenant(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	var tenants []string
	for i := range panelTenants {
		tenants = append(tenants, fmt.Sprint("panels-", i))
	}
	w.fill(append([]string{"greedy"}, tenants...), greedyDays, greedyStreams, 10, 1000)
	limits := faultproxy.Faults{Delay: 20 * time.Millisecond, PerSecond: storeRate}
	measure := func(greedy bool) (took []time.Duration, counts faultproxy.Counts, done int64) {
		w.restart()
		w.proxy.Reset()
		w.proxy.Inject(limits)
		defer w.proxy.Inject(faultproxy.Faults{})
		stop, next, finished := make(chan struct{}), atomic.Int64{}, atomic.Int64{}
		var all sync.WaitGroup
		if greedy {
			for range greedyClients {
				all.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						i := next.Add(1) - 1
						got, err := w.rows("greedy", fmt.Sprintf("{app=%q}", fmt.Sprint("a", i%greedyStreams)), w.days[0], time.Now())
						switch {
						case err == nil && len(got) == len(w.want["greedy/a0"]):
							finished.Add(1)
						case err == nil || !strings.Contains(err.Error(), "query.max-concurrent"):
							t.Errorf("the greedy tenant: %d rows, %v", len(got), err)
						}
					}
				})
			}
		}
		took = w.panels(tenants)
		counts = w.proxy.Counts()
		close(stop)
		all.Wait()
		return took, counts, finished.Load()
	}
	t.Log("| panels | p50 ms | p99 ms | requests | refused | busiest second | queries of the greedy tenant |")
	var p99 [2]time.Duration
	for i, name := range []string{"alone", "with a tenant that asks for everything"} {
		took, counts, done := measure(i > 0)
		p99[i] = took[len(took)*99/100]
		t.Logf("| %s | %d | %d | %d | %d | %d | %d |", name, took[len(took)/2].Milliseconds(), p99[i].Milliseconds(),
			counts.Requests, counts.Faulty, counts.BusiestSecond, done)
		if counts.Faulty*10 > counts.Requests || counts.BusiestSecond > 2*storeRate {
			t.Errorf("%s: a storm: %d of %d requests were refused, %d in one second", name, counts.Faulty, counts.Requests, counts.BusiestSecond)
		}
	}
	if p99[1] > 2*p99[0] {
		t.Errorf("p99 of the panels is %s, and %s without the greedy tenant", p99[1], p99[0])
	}
	w.billOfAll()
}

// billOfAll asks for the bill of a query for everything, and then has a budget refuse it.
func (w *faultWorld) billOfAll() {
	w.t.Helper()
	form := url.Values{"query": {`sum(count_over_time({app=~"a.+"} |= "x" [1h]))`}, "start": {fmt.Sprint(w.days[0].UnixNano())},
		"end": {fmt.Sprint(time.Now().UnixNano())}, "step": {"1h"}}
	path := "/loki/api/v1/query_range?" + form.Encode()
	status, text, _ := w.request(http.MethodGet, path+"&explain=true", "greedy", nil)
	_, bill, _ := strings.Cut(string(text), `"bill":`)
	w.t.Logf("%d: %s", status, bill)
	if status != http.StatusOK || !strings.Contains(bill, `"least"`) {
		w.t.Errorf("%d: no bill: %s", status, text)
	}
	w.stop()
	w.args = append(w.args, "--query.max-bucket-requests", "5")
	w.start()
	status, text, _ = w.request(http.MethodGet, path, "greedy", nil)
	w.t.Logf("%d: %s", status, text)
	if status != http.StatusBadRequest || !strings.Contains(string(text), "query.max-bucket-requests is 5") {
		w.t.Errorf("%d: %s", status, text)
	}
}
