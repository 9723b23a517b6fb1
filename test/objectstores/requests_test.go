//go:build e2e

package objectstores

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/test/faultproxy"
)

// fillMetrics ships blocks of samples, one for each day of the lines.
func (w *faultWorld) fillMetrics(tenant string, series int) {
	w.t.Helper()
	e, err := app.OpenEngine(w.t.Context(), app.EngineOptions{
		FS: vfs.NewMem(), DataDir: "/data", Bucket: open(w.t, w.store.At("faults")), Node: "metrics-" + tenant, MemoryBytes: 64 << 20, Idle: true,
		Now: func() int64 { return time.Now().UnixNano() },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, day := range w.days {
		for i := range series {
			name := fmt.Sprint("m", i)
			key := model.LabelsOf("app", name).Key(e.Path().Seed(), model.Metrics)
			b := e.Path().Batch(tenant, model.Metrics)
			b.Source = source(name)
			for k := range 1440 {
				b.AddSample(key, day.UnixNano()+int64(k)*int64(time.Minute), rand.Uint64()>>2)
			}
			if _, err := e.Path().Push(w.t.Context(), b); err != nil {
				w.t.Fatal(err)
			}
			e.Path().Recycle(b)
		}
		if err := e.Ship(); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// read is what queries have read.
type read struct {
	requests, bytes int64
	took            []time.Duration // of each query, in order
}

// measure sends queries to a server without caches, several at one time.
func (w *faultWorld) measure(f faultproxy.Faults, atOnce int, paths ...string) *read {
	w.t.Helper()
	w.restart()
	w.proxy.Reset()
	w.proxy.Inject(f)
	defer w.proxy.Inject(faultproxy.Faults{})
	r := &read{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for k := range atOnce {
		all.Go(func() {
			for i := k; i < len(paths); i += atOnce {
				asked := time.Now()
				if status, text, _ := w.request(http.MethodGet, paths[i], "a", nil); status != http.StatusOK {
					w.t.Errorf("%d: %s", status, text)
				}
				mu.Lock()
				r.took = append(r.took, time.Since(asked))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	counts := w.proxy.Counts()
	r.requests, r.bytes = counts.Requests, counts.Bytes
	slices.Sort(r.took)
	return r
}

// TestRequests counts the requests of cold queries with a delay before each response, with reads apart and
// coalesced, and of twenty queries at one time.
func TestRequests(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t, "--memory", "512MiB")
	w.fill([]string{"a"}, faultDays, faultStreams, faultLines, 2000)
	w.fillMetrics("a", 300)
	w.start()
	args := w.args
	from, to := w.days[0], w.days[len(w.days)-1].Add(24*time.Hour)
	path := func(api, query, step string) string {
		return api + "query_range?" + url.Values{"query": {query}, "step": {step}, "limit": {"5000"},
			"start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(to.Unix())}}.Encode()
	}
	const logs, metrics = "/loki/api/v1/", "/api/v1/"
	apart := []string{"--bucket-requests.coalesce-gap", "0", "--bucket-requests.hedge", "off"}
	delays := []time.Duration{20 * time.Millisecond}
	if *outage > 10*time.Second {
		delays = append(delays, 100*time.Millisecond) // the counts are the same
	}
	t.Log("| query | delay | requests apart | bytes | s | coalesced | bytes | s | 20 at once | bytes | s |")
	for _, q := range [][2]string{
		{"count of lines that match", path(logs, `sum(count_over_time({app=~"a.+"} |~ "[0-9a-f]" [1h]))`, "1h")},
		{"a needle in all lines", path(logs, `{app=~"a.+"} |= "a 17 3 "`, "1h")},
		{"lines of one stream", path(logs, `{app="a7"}`, "1h")},
		{"sum of all series", path(metrics, `sum(avg_over_time({app=~"m.+"}[1h]))`, "1h")},
		{"one series of 300", path(metrics, `avg_over_time({app="m7"}[1h])`, "1h")},
	} {
		for _, delay := range delays {
			f := faultproxy.Faults{Delay: delay}
			w.args = append(slices.Clone(args), apart...)
			a := w.measure(f, 1, q[1])
			w.args = args
			c, all := w.measure(f, 1, q[1]), w.measure(f, 20, slices.Repeat([]string{q[1]}, 20)...)
			row := fmt.Sprintf("| %s | %s |", q[0], delay)
			for _, r := range []*read{a, c, all} {
				row += fmt.Sprintf(" %d | %.1f MB | %.2f |", r.requests, float64(r.bytes)/1e6, r.took[len(r.took)-1].Seconds())
			}
			t.Log(row)
			// Hedging adds a few requests, and only to the reads that are coalesced. A slow machine hedges more,
			// and drops pages before the last of twenty queries has read them.
			if c.requests > a.requests+a.requests/2+5 || all.requests > 40*c.requests {
				t.Errorf("%s: %d requests apart, %d coalesced, %d for twenty at once", q[0], a.requests, c.requests, all.requests)
			}
		}
	}
}
