//go:build e2e

package objectstores

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/test/faultproxy"
)

var (
	greedyFor   = flag.Duration("greedy", 5*time.Second, "how long TestGreedyTenant measures panels, without and with the greedy tenant")
	greedyLines = flag.Int("greedy-lines", 50, "lines of each of 40 streams and six days of the greedy tenant in TestGreedyTenant")
)

// The panels of TestGreedyTenant: each tenant refreshes its dashboard, one panel after the other, and pauses.
var panelTenants = []string{"b", "c", "d", "e"}

const (
	greedyClients = 24
	panelPause    = 100 * time.Millisecond
)

// panels returns the queries of a dashboard over a day.
func panels(from time.Time) (paths []string) {
	path := func(api, query string) {
		paths = append(paths, api+"query_range?"+url.Values{"query": {query}, "step": {"600"},
			"start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(from.Add(24 * time.Hour).Unix())}}.Encode())
	}
	path("/api/v1/", `sum(avg_over_time({app=~"m.+"}[10m]))`)
	path("/api/v1/", `max by (app) (max_over_time({app=~"m1.*"}[30m]))`)
	path("/loki/api/v1/", `sum by (app) (count_over_time({app=~"a1?"}[10m]))`)
	path("/loki/api/v1/", `sum(count_over_time({app=~"a.*"} |= "7" [30m]))`)
	path("/loki/api/v1/", `{app="a3"}`)
	return paths
}

// watch refreshes the dashboards of all panel tenants for some time. It returns how long each panel took, in
// order, and fails if one has another result than before.
func (w *faultWorld) watch(d time.Duration, want *sync.Map) (took []time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var slowest time.Duration
	var costs string
	until := time.Now().Add(d)
	for _, tenant := range panelTenants {
		all.Go(func() {
			for i := 0; time.Now().Before(until); i++ {
				from := w.days[i%len(w.days)]
				for _, path := range panels(from) {
					asked := time.Now()
					status, text, h := w.request(http.MethodGet, path, tenant, nil)
					since := time.Since(asked)
					var parsed struct {
						Data struct{ Result json.RawMessage }
					}
					if err := json.Unmarshal(text, &parsed); status != http.StatusOK || err != nil {
						w.t.Errorf("a panel: %d: %s", status, text)
						return
					}
					if before, ok := want.LoadOrStore(tenant+path, string(parsed.Data.Result)); ok && before != string(parsed.Data.Result) {
						w.t.Errorf("%s has another result than before", path)
					}
					mu.Lock()
					if took = append(took, since); since > slowest {
						slowest, costs = since, path+": "+h.Get("Shale-Cost")
					}
					mu.Unlock()
				}
				time.Sleep(panelPause)
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	w.t.Logf("the slowest panel took %s: %s", slowest, costs)
	return took
}

// insist asks for all lines of a tenant over all days with many clients, never the same twice, until stop
// is called.
func (w *faultWorld) insist(tenant string) (stop func() (answers, refused int64)) {
	from, to := w.days[0], w.days[len(w.days)-1].Add(24*time.Hour)
	var answers, refused, number atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	for range greedyClients {
		all.Go(func() {
			for !over.Load() {
				n := number.Add(1)
				query := fmt.Sprintf(`sum by (app) (count_over_time({app=~"a.+"} |~ "[0-9a-f]{1,%d}" [1h]))`, 2+n%900)
				path := "/loki/api/v1/query_range?" + url.Values{"query": {query}, "step": {"1h"},
					"start": {fmt.Sprint(from.Unix() + n)}, "end": {fmt.Sprint(to.Unix())}}.Encode()
				switch status, text, _ := w.request(http.MethodGet, path, tenant, nil); {
				case over.Load(): // the request is cut
				case status == http.StatusOK:
					answers.Add(1)
				case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
					if refused.Add(1) == 1 {
						w.t.Logf("the greedy tenant is told %d: %s", status, text)
					}
					time.Sleep(time.Second)
				default:
					w.t.Errorf("the greedy tenant: %d: %s", status, text)
					return
				}
			}
		})
	}
	return func() (int64, int64) {
		over.Store(true)
		a, r := answers.Load(), refused.Load()
		w.kill()
		all.Wait()
		return a, r
	}
}

// TestGreedyTenant measures the panels of four tenants while a fifth one asks for everything with 24
// clients: with little memory, and a store that takes 250 requests a second; and with so much memory that
// processors are what lacks. No panel fails or has another result, and the greedy tenant has answers, too.
func TestGreedyTenant(t *testing.T) {
	w := newFaultWorld(t)
	w.fill([]string{"a"}, faultDays, faultStreams, *greedyLines, 2000)
	w.fill(panelTenants, faultDays, 10, 50, 500)
	for _, tenant := range panelTenants {
		w.fillMetrics(tenant, 50)
	}
	args := w.args
	quantile := func(took []time.Duration, q float64) string {
		return fmt.Sprint(took[int(float64(len(took)-1)*q)].Milliseconds(), " ms")
	}
	t.Log("| memory | panels alone | p50 | p99 | with the greedy tenant | p50 | p99 | its answers | refused | waits for memory |")
	for _, world := range []struct {
		memory string
		faults faultproxy.Faults
	}{
		{"256MiB", faultproxy.Faults{Delay: 20 * time.Millisecond, PerSecond: 250}},
		{"1GiB", faultproxy.Faults{Delay: 20 * time.Millisecond}},
	} {
		w.args = append(slices.Clone(args), "--memory", world.memory, "--cache.result-memory", "0")
		var want sync.Map
		w.restart()
		w.proxy.Inject(world.faults)
		w.watch(*greedyFor/4, &want) // the first requests of each page count for neither
		alone := w.watch(*greedyFor, &want)
		stop := w.insist("a")
		w.watch(*greedyFor/4, &want)
		with := w.watch(*greedyFor, &want)
		waits := w.metric("shale_api_memory_waits_total")
		answers, refused := stop()
		w.proxy.Inject(faultproxy.Faults{})
		t.Logf("| %s | %d | %s | %s | %d | %s | %s | %d | %d | %.0f |", world.memory, len(alone), quantile(alone, 0.5), quantile(alone, 0.99),
			len(with), quantile(with, 0.5), quantile(with, 0.99), answers, refused, waits)
		if answers == 0 && *greedyFor > 10*time.Second {
			t.Error("the greedy tenant has no answer")
		}
	}
}
