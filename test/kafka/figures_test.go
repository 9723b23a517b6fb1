//go:build e2e

package kafka

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/test/objectstores"
)

// TestFigures measures what docs/scale-out.md says of roles next to one process: with FIGURES=1, as it takes
// minutes and asserts no time.
func TestFigures(t *testing.T) {
	if os.Getenv("FIGURES") == "" {
		t.Skip("FIGURES is not set")
	}
	broker := start(t)
	store, cache := objectstores.Start(t, objectstores.Versity), memcachetest.Start(t, "-m", "256")
	at := store.At("roles")
	c := newClusterAt(t, broker, "figures", 16, at.String())
	same := []string{"--max-age", "0", "--retention", "0", "--memory", "512MiB"}
	c.flags = append(c.flags, same...)
	gateway := c.process(t, "gateway")
	ingesters := []*process{c.process(t, "ingest", "--ship-every", "1h"), c.process(t, "ingest", "--ship-every", "1h")}
	peers := ingesters[0].addr + "," + ingesters[1].addr
	cold, warm := c.process(t, "query", "--ingesters", peers), c.process(t, "query", "--ingesters", peers, "--cache.memcached", cache.Addr)
	for _, p := range slices.Concat([]*process{gateway, cold, warm}, ingesters) {
		p.start()
	}
	there := store.At("all")
	all := newProcess(t, append([]string{"--bucket", there.String(), "--ship-at-stop", "on", "--cache.answers", "off", "--cache.result-memory", "0"}, same...)...)
	all.start()
	waitFor(t, "partitions", func() bool {
		return readyOf(ingesters[0], "figures", "ready")+readyOf(ingesters[1], "figures", "ready") == 16
	})
	f := &figures{t: t, begin: time.Now().Add(-50 * time.Hour).Truncate(time.Hour)}
	f.lag(gateway, cold)
	// The second part makes each partition ship twice.
	fill := func(part int) {
		for _, p := range []*process{gateway, all} {
			for _, args := range [][]string{
				{"remote-write", "--targets", "5", "--metrics", "100", "--series", "10", "--rounds", "60", "--rate", "0", "--step", "2m", "--value", "counter", "--batch", "2000",
					"--start", f.begin.Add(time.Duration(part) * 2 * time.Hour).Format(time.RFC3339)},
				{"logs", "--mb", "15", "--span", "2h", "--start", f.begin.Add(time.Duration(part) * 2 * time.Hour).Format(time.RFC3339)},
			} {
				if out, err := exec.Command(buildShale(t), append([]string{"load", args[0], "--quiet", "--url", "http://" + p.addr}, args[1:]...)...).CombinedOutput(); err != nil {
					t.Fatalf("load %v: %v\n%s", args, err, out)
				}
			}
		}
	}
	ship := func() {
		for _, p := range ingesters {
			p.stop()
		}
		for _, p := range ingesters {
			p.start()
		}
		all.stop()
		all.start()
	}
	fill(0)
	f.ask("not shipped", []string{"all", "roles"}, []*process{all, cold}, [][]*process{{all}, append([]*process{cold}, ingesters...)})
	ship()
	fill(1)
	ship()
	for _, p := range []*process{cold, warm} {
		p.stop()
		p.start()
	}
	groups := [][]*process{{all}, {cold}, {warm}}
	names := []string{"all", "roles", "roles, memcached"}
	f.ask("in the bucket, the first time", names, []*process{all, cold, warm}, groups)
	for _, p := range []*process{all, cold, warm} {
		p.stop()
		p.start()
	}
	f.ask("after a restart", names, []*process{all, cold, warm}, groups)
}

type figures struct {
	t     *testing.T
	begin time.Time
}

// quantile returns one of many.
func quantile(of []time.Duration, q float64) time.Duration {
	of = slices.Sorted(slices.Values(of))
	return of[int(q*float64(len(of)-1))]
}

// lag measures from the acknowledgement of a sample until a query shows it.
func (f *figures) lag(gateway, query *process) {
	begin := time.Now().Add(-30 * time.Minute).Truncate(time.Second)
	var seen, acked []time.Duration
	for k := range int64(500) {
		began := time.Now()
		if err := one(gateway, 0, k, begin.Add(time.Duration(k)*time.Second)); err != nil {
			f.t.Fatal(err)
		}
		done := time.Now()
		v := url.Values{"query": {"sent"}, "time": {fmt.Sprint(begin.Unix() + k)}}
		waitFor(f.t, "a sample", func() bool {
			status, text := query.get("/api/v1/query?" + v.Encode())
			return status == http.StatusOK && strings.Contains(text, fmt.Sprintf(`,"%d"]`, k))
		})
		acked, seen = append(acked, done.Sub(began)), append(seen, time.Since(done))
	}
	f.t.Logf("acknowledged (a sample and a line, one after the other): p50 %v, p99 %v; from then until a query shows it: p50 %v, p99 %v",
		quantile(acked, 0.5), quantile(acked, 0.99), quantile(seen, 0.5), quantile(seen, 0.99))
}

// ask asks the same queries at each process, one after the other, and says what they took: times, CPU-seconds
// of a group of processes, and requests to the bucket.
func (f *figures) ask(stage string, names []string, at []*process, groups [][]*process) {
	var paths []string
	from, to := f.begin, f.begin.Add(4*time.Hour)
	for _, q := range []string{`load_metric_1`, `sum(rate(load_metric_2[10m]))`, `topk(5, load_metric_3)`, `count({__name__=~"load_metric_1.*"})`, `sum by (instance) (rate({__name__=~"load_metric_2.*"}[10m]))`} {
		paths = append(paths, "/api/v1/query_range?"+url.Values{"query": {q}, "start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(to.Unix())}, "step": {"120"}}.Encode())
	}
	for _, q := range []string{`{cluster="load-1"} |= "error"`, `sum by (app) (count_over_time({cluster="load-1"}[10m]))`, `{cluster="load-1"} | json | status >= 500`} {
		paths = append(paths, "/loki/api/v1/query_range?"+url.Values{"query": {q}, "start": {fmt.Sprint(from.UnixNano())}, "end": {fmt.Sprint(to.UnixNano())}, "step": {"120"}, "limit": {"1000"}}.Encode())
	}
	const rounds = 20
	took, first := make([][]time.Duration, len(at)), make([]time.Duration, len(at))
	cpu, requests, firstRequests := make([]float64, len(at)), make([]float64, len(at)), make([]float64, len(at))
	sizes := make([]int, len(at))
	for i, p := range at {
		waitFor(f.t, "the latest", func() bool {
			s, _ := p.get("/api/v1/query?query=up", "X-Read-Consistency", "strong")
			return s == http.StatusOK
		})
		cpu[i], requests[i] = -counter("process_cpu_seconds_total", groups[i]...), -counter("shale_bucket_requests_total", p)
	}
	for n := range rounds {
		for i, p := range at {
			for _, path := range paths {
				began := time.Now()
				status, text := p.get(path)
				if status != http.StatusOK {
					f.t.Errorf("%s: %s: %s: status %d: %.300s", stage, names[i], path, status, text)
				}
				took[i] = append(took[i], time.Since(began))
				sizes[i] += len(text)
				if n == 0 {
					first[i] += time.Since(began)
				}
			}
			if n == 0 {
				firstRequests[i] = requests[i] + counter("shale_bucket_requests_total", p)
			}
		}
	}
	for i, p := range at {
		cpu[i] += counter("process_cpu_seconds_total", groups[i]...)
		requests[i] += counter("shale_bucket_requests_total", p)
		f.t.Logf("%s: %s: %d queries: p50 %v, p99 %v, the first %d together %v; CPU-s %.2f; requests to the bucket: %v for the first, %v in all; %d bytes of answers", stage, names[i], len(took[i]), quantile(took[i], 0.5), quantile(took[i], 0.99),
			len(paths), first[i], cpu[i], firstRequests[i], requests[i], sizes[i])
	}
}
