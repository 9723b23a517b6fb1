//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache/memcached"
	"github.com/shaledb/shale/internal/memcache"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/victorialogs"
	"github.com/shaledb/shale/test/faultproxy"
)

// victoriaFaults is a Shale before a VictoriaLogs with faults.
type victoriaFaults struct {
	*victoria
	proxy   *faultproxy.Proxy
	queries []url.Values
	want    []string
}

const (
	faultyRequests = 4 // victorialogs.max-requests
	faultyQueries  = 8 // query.max-concurrent
	// floodClients are more than may run or wait: three quarters of 16 places for each query that may run.
	floodClients = faultyQueries + 16*faultyQueries
)

func newVictoriaFaults(t *testing.T) *victoriaFaults {
	f := &victoriaFaults{victoria: newVictoriaAlone(t)}
	var err error
	if f.proxy, err = faultproxy.Start("http://" + f.addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.proxy.Close() })
	f.startShale(f.proxy.URL, "anonymous=0,flood=0,b=1", "--victorialogs.max-requests", fmt.Sprint(faultyRequests), "--query.max-concurrent", fmt.Sprint(faultyQueries),
		"--memory", fmt.Sprint(memoryBudget))
	f.pushFaulty()
	f.pushLong()
	f.queries = []url.Values{
		{"query": {`sum by (app) (count_over_time({env="prod"}[1m]))`}, "step": {"60"}},
		{"query": {`{env="prod"} |= "of 3"`}, "limit": {"1000"}},
		{"query": {`{env="long"} |= "x"`}, "limit": {"5000"}},
	}
	f.want = make([]string, len(f.queries))
	for _, q := range f.queries {
		q.Set("start", f.stamp(0))
		q.Set("end", f.stamp(600))
	}
	f.becomes("all lines", "400 57", func() string {
		n := f.instant("", `sum(count_over_time({env="prod"}[10m]))`, 500)
		for i := range longQuery {
			f.want[i], _ = f.fetch("", i, true)
		}
		return fmt.Sprintf("%s %d", n[strings.LastIndex(n, " ")+1:], strings.Count(f.want[1], "line "))
	})
	return f
}

// pushFaulty stores 400 lines of four applications, and one of another account.
func (v *victoria) pushFaulty() {
	streams := make([]victoriaStream, 4)
	for i := range 400 {
		s := &streams[i%4]
		s.labels = map[string]string{"app": fmt.Sprint("app", i%4), "env": "prod"}
		s.lines = append(s.lines, victoriaLine{at: i, text: fmt.Sprintf("line %d of %d", i, i%7)})
	}
	v.push("0", streams)
	v.push("1", []victoriaStream{{labels: map[string]string{"app": "other", "env": "prod"}, lines: []victoriaLine{{at: 1, text: "a line of another tenant"}}}})
}

// longQuery is the query of long lines, which only the flood sends.
const longQuery = 2

// pushLong stores 5 MB of lines for the flood.
func (v *victoria) pushLong() {
	for part := range 5 {
		s := victoriaStream{labels: map[string]string{"app": "long", "env": "long"}}
		for i := range 1000 {
			s.lines = append(s.lines, victoriaLine{at: part * 100, text: fmt.Sprintf("%d %d %s", part, i, strings.Repeat("x ", 500))})
		}
		v.push("0", []victoriaStream{s})
	}
}

// fetch sends a query, for which nothing is to be kept if it is fresh.
func (f *victoriaFaults) fetch(tenant string, i int, fresh bool) (string, int) {
	f.t.Helper()
	req, err := http.NewRequest("GET", f.shale.url()+"/loki/api/v1/query_range?"+f.queries[i].Encode(), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if tenant != "" {
		req.Header.Set("X-Scope-OrgID", tenant)
	}
	if fresh {
		req.Header.Set("Cache-Control", "no-cache")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		body, _, _ = bytes.Cut(body, []byte(`"stats"`)) // which has times
	}
	return string(body), resp.StatusCode
}

// right demands that all queries have their results, with what is kept and without.
func (f *victoriaFaults) right(what string) {
	f.t.Helper()
	for i := range longQuery {
		for _, fresh := range []bool{false, true} {
			if got, status := f.fetch("", i, fresh); status != http.StatusOK || got != f.want[i] {
				f.t.Errorf("%s: status %d: %.500s\nwant %.500s", what, status, got, f.want[i])
			}
		}
	}
}

// failing sends each query some times. It demands that each response is right, or an error that gives the
// reason, and returns how many errors there were.
func (f *victoriaFaults) failing(what, reason string, times int) (failed int) {
	f.t.Helper()
	for range times {
		for i := range longQuery {
			got, status := f.fetch("", i, true)
			switch {
			case status == http.StatusOK && got == f.want[i]:
			case status >= 500 && strings.Contains(got, reason):
				failed++
			default:
				f.t.Errorf("%s: status %d: %.500s", what, status, got)
			}
		}
	}
	return failed
}

// TestVictoriaLogsFaults: while VictoriaLogs is slow, fails, cuts its responses short or restarts, and while
// one tenant sends too much, a response is right or a clear error.
func TestVictoriaLogsFaults(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("a source of Shale")
	}
	t.Parallel()
	f := newVictoriaFaults(t)
	f.right("at first")

	f.proxy.Inject(faultproxy.Faults{Delay: 100 * time.Millisecond})
	f.right("slow")

	f.proxy.Inject(faultproxy.Faults{Delay: 20 * time.Millisecond})
	if f.flood(func() {
		for range 4 {
			f.right("beside a tenant that floods")
		}
	}) == 0 {
		t.Error("no request of the tenant that floods was refused")
	}
	if got, _ := f.fetch("b", 1, false); strings.Contains(got, "line ") {
		t.Errorf("another tenant gets %s", got)
	}

	f.proxy.Inject(faultproxy.Faults{Truncated: 1, PostsRead: true})
	f.flood(func() {
		if f.failing("truncated", "VictoriaLogs", 1) == 0 {
			t.Error("no response was cut short")
		}
	})
	f.proxy.Inject(faultproxy.Faults{Errors: 1, Status: http.StatusBadGateway})
	if n := f.failing("failing", "VictoriaLogs", 3); n != 6 {
		t.Errorf("%d of 6 requests failed", n)
	}
	if f.metric("shale_victorialogs_breaker_open") != 1 {
		t.Error("the breaker is closed although all requests fail")
	}
	// One is let through each 5 s.
	before := f.proxy.Counts().Requests
	if n := f.failing("refused", "VictoriaLogs", 10); n != 20 || f.proxy.Counts().Requests > before+10 {
		t.Errorf("%d of 20 requests were refused, and %d sent", n, f.proxy.Counts().Requests-before)
	}
	f.flood(func() {
		if n := f.failing("refused beside a tenant that floods", "VictoriaLogs", 3); n != 6 {
			t.Errorf("%d of 6 requests were refused", n)
		}
	})

	// VictoriaLogs restarts while the breaker is open. It then closes by itself.
	f.proxy.Inject(faultproxy.Faults{})
	f.backend.stop(t)
	if n := f.failing("stopped", "VictoriaLogs", 1); n != 2 {
		t.Errorf("%d of 2 requests failed without a server", n)
	}
	f.startBackend()
	f.becomes("closed again", "200", func() string {
		_, status := f.fetch("", 0, true)
		return fmt.Sprint(status)
	})
	f.becomes("closed again", "0", func() string { return fmt.Sprint(f.metric("shale_victorialogs_breaker_open")) })
	f.right("after a restart")
	peak := highWater(t, f.shale.cmd.Process.Pid)
	t.Logf("peak of %d MiB, bound %d MiB", peak>>20, memoryBound>>20)
	if peak > memoryBound {
		t.Errorf("the process took %d MiB, more than %d", peak>>20, memoryBound>>20)
	}
}

// flood has one tenant send queries for long lines all the time while another one does something. It returns
// how many of the flood were refused. All others have lines, or an error that gives the reason.
func (f *victoriaFaults) flood(meanwhile func()) (refused int64) {
	f.t.Helper()
	var crowded, flooded atomic.Int64
	stop := make(chan struct{})
	var flood sync.WaitGroup
	for range floodClients {
		flood.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, status := f.fetch("flood", longQuery, true)
				switch {
				case status == http.StatusOK:
				case strings.Contains(got, "max-concurrent") || strings.Contains(got, "max-requests"):
					if crowded.Add(1) == 1 {
						f.t.Logf("the flood is refused with status %d: %.300s", status, got)
					}
					time.Sleep(10 * time.Millisecond) // or it would take the CPU of the others
				case status >= 500:
					time.Sleep(10 * time.Millisecond)
				default:
					f.t.Errorf("the flood: status %d: %.300s", status, got)
				}
				flooded.Add(1)
			}
		})
	}
	f.becomes("the flood", "true", func() string { return fmt.Sprint(flooded.Load() > floodClients) })
	meanwhile()
	close(stop)
	flood.Wait()
	f.t.Logf("%d of %d requests of the tenant that floods were refused", crowded.Load(), flooded.Load())
	return crowded.Load()
}

// TestVictoriaLogsSharedFaults: while the memcached that shares counts lies or is gone, results are those of
// VictoriaLogs. The clock is the test's, since counts are shared after minutes.
func TestVictoriaLogsSharedFaults(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("a source of Shale")
	}
	t.Parallel()
	v := newVictoriaAlone(t)
	v.pushFaulty()
	server := memcachetest.Start(t)
	between := memcachetest.NewProxy(t, server.Addr)
	tier, err := memcached.Open(memcached.Options{
		Client: memcache.Options{Servers: []string{between.Addr}, MaxWait: 5 * time.Second}, Prefix: "test", QueueBytes: 8 << 20, Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tier.Close()
	var clock atomic.Int64
	clock.Store(time.Now().UnixNano())
	settings := victorialogs.Settings{Source: victorialogs.At("http://" + v.addr), Authorization: v.authorization(), Requests: 8, CheckEvery: 10 * time.Second}
	if err := settings.Accounts.UnmarshalText([]byte(logqltest.Tenant + "=0,other=1")); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	source := victorialogs.New(victorialogs.Options{Settings: settings, Seed: 1, ClosedAfter: 2 * time.Minute, Shared: tier, Now: clock.Load, Registerer: registry})
	defer source.Close()
	engine := logqltest.Over(source)
	const hour = int64(time.Hour)
	end := v.base.UnixNano()/hour*hour + hour
	ask := func(tenant string) *logqltest.Result {
		return logqltest.Run(context.Background(), engine, tenant, &logqltest.Query{
			Text: `sum by (app) (count_over_time({env="prod"}[1m]))`, Start: end - 4*hour, End: end, Step: int64(time.Minute),
		})
	}
	outcome := func(name string) float64 { return counter(t, registry, "shale_victorialogs_shared_total", name) }
	var want, wantOther *logqltest.Result
	v.becomes("all lines", "true", func() string {
		n := logqltest.Run(context.Background(), engine, logqltest.Tenant, &logqltest.Query{
			Text: `sum(count_over_time({env="prod"}[2h]))`, Start: v.base.UnixNano() + hour/2, End: v.base.UnixNano() + hour/2,
		})
		want, wantOther = ask(logqltest.Tenant), ask("other")
		return fmt.Sprint(strings.Contains(n.String(), " 400\n") && len(wantOther.Series) == 1)
	})
	right := func(what string) {
		t.Helper()
		clock.Add(int64(70 * time.Second))
		if diff := logqltest.Diff(want, ask(logqltest.Tenant), false); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if diff := logqltest.Diff(wantOther, ask("other"), false); diff != "" {
			t.Errorf("%s: another tenant: %s", what, diff)
		}
	}
	v.becomes("counts that are shared", "true", func() string {
		right("while nothing is wrong")
		return fmt.Sprint(outcome("hit") > 0)
	})
	between.Inject(memcachetest.Faults{Flip: 0.01})
	for range 5 {
		right("memcached lies")
	}
	between.Inject(memcachetest.Faults{Cut: 100})
	right("memcached ends connections")
	between.Inject(memcachetest.Faults{Refuse: true})
	right("memcached is gone")
	server.Kill()
	right("memcached has ended")
}

// counter returns the value of a counter with an outcome.
func counter(t *testing.T, from *prometheus.Registry, name, outcome string) float64 {
	t.Helper()
	all, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "outcome" && l.GetValue() == outcome {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}
