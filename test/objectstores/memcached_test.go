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

	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/test/faultproxy"
)

// nodes are three memcached servers with extstore, each behind a proxy.
type nodes struct {
	servers []*memcachetest.Server
	proxies []*memcachetest.Proxy
	addrs   []string // of the proxies
}

func startNodes(t *testing.T) *nodes {
	n := &nodes{}
	for range 3 {
		s := memcachetest.Start(t, memcachetest.Extstore(t.TempDir(), 64)...)
		p := memcachetest.NewProxy(t, s.Addr)
		n.servers, n.proxies, n.addrs = append(n.servers, s), append(n.proxies, p), append(n.addrs, p.Addr)
	}
	return n
}

// inject injects faults into the first nodes.
func (n *nodes) inject(count int, f memcachetest.Faults) {
	for _, p := range n.proxies[:count] {
		p.Inject(f)
	}
}

// memcachedFault is what happens to memcached.
type memcachedFault struct {
	name       string
	begin, end func()
	// during happens while queries run.
	during func()
}

// TestMemcachedFaults reads all rows with a tier of three real memcached servers, of which some are killed,
// stopped, full, late or lying. Results stay complete, and the bucket gets no more requests than without
// the tier. A store in front of which each response takes 20 ms is slow enough for memcached to be worth a
// wait.
func TestMemcachedFaults(t *testing.T) {
	n := startNodes(t)
	w := newFaultWorld(t, "--memory", "128MiB", "--cache.result-memory", "0")
	w.fill([]string{"a"}, faultDays, faultStreams, faultLines, 2000)
	args := w.args
	tier := append(slices.Clone(args), "--cache.memcached", strings.Join(n.addrs, ","))
	slow := faultproxy.Faults{Delay: 20 * time.Millisecond}
	begin := func(args []string) {
		w.args = args
		w.restart()
		w.proxy.Inject(slow)
	}
	defer w.proxy.Inject(faultproxy.Faults{})
	pass := func(name string) (requests int64) {
		w.proxy.Reset()
		p := w.ask("a", faultStreams)
		requests = w.proxy.Counts().Requests
		if len(p.wrong) > 0 || p.failed > 0 {
			t.Errorf("%s: %v %v", name, p.wrong, p.errors)
		}
		rss := w.peak()
		if rss > 250 {
			t.Errorf("%s: %d MiB of memory", name, rss)
		}
		t.Logf("| %s | %d | %d | %.2f | %.1f | %d | %.0f | %.0f | %.0f | %.0f | %d |", name, p.right, p.failed+len(p.wrong), p.slowest.Seconds(), p.took.Seconds(),
			requests, w.metric("shale_cache_hits_total", `tier="memcached"`), w.metric("shale_cache_bad_records_total", `tier="memcached"`),
			w.metric("shale_memcached_stray_responses_total"), w.metric("shale_memcached_server_out"), rss)
		return requests
	}
	t.Log("| fault | right | failed | slowest s | all s | bucket requests | hits | damaged | stray | servers out | MiB |")
	begin(args)
	without := pass("without memcached")
	begin(tier)
	pass("with memcached, empty")
	w.stored()
	begin(tier)
	warm := pass("with memcached, filled")
	if warm > without/2 {
		t.Errorf("%d requests without memcached, %d with it", without, warm)
	}
	full := memcachetest.Start(t, "-m", "2", "-M")
	for _, f := range []memcachedFault{
		{name: "a server is killed", begin: n.servers[0].Kill, end: n.servers[0].Restart},
		{name: "a server is restarted, empty", begin: func() { n.servers[0].Kill(); n.servers[0].Restart() }},
		{name: "a server is killed while queries run", during: n.servers[0].Kill, end: n.servers[0].Restart},
		{name: "a server is stopped (SIGSTOP)", begin: n.servers[0].Stop, end: n.servers[0].Continue},
		{name: "a server is stopped while queries run", during: n.servers[0].Stop, end: n.servers[0].Continue},
		{name: "a server is full, and refuses values", begin: func() { n.proxies[0].Redirect(full.Addr) }, end: func() { n.proxies[0].Redirect(n.servers[0].Addr) }},
		{name: "all servers lie: one bit in 10,000 bytes is flipped", begin: func() { n.inject(3, memcachetest.Faults{Flip: 1e-4}) }},
		{name: "one server is 100 ms late", begin: func() { n.inject(1, memcachetest.Faults{Delay: 100 * time.Millisecond}) }},
		{name: "all servers are 100 ms late", begin: func() { n.inject(3, memcachetest.Faults{Delay: 100 * time.Millisecond}) }},
		{name: "all servers answer twice", begin: func() { n.inject(3, memcachetest.Faults{Echo: true}) }},
		{name: "all servers are killed while queries run", during: func() { n.each((*memcachetest.Server).Kill) }, end: func() { n.each((*memcachetest.Server).Restart) }},
	} {
		begin(tier)
		if f.begin != nil {
			f.begin()
		}
		var during sync.WaitGroup
		if f.during != nil {
			during.Go(func() {
				time.Sleep(200 * time.Millisecond)
				f.during()
			})
		}
		requests := pass(f.name)
		during.Wait()
		// Hedges and pages that are read apart because others come from memcached add a few.
		if most := without + without/5 + 20; requests > most {
			t.Errorf("%s: %d requests, %d without memcached", f.name, requests, without)
		}
		n.inject(3, memcachetest.Faults{})
		if f.end != nil {
			f.end()
		}
		pass("after that")
		w.stored()
	}
	w.stampede(n, func() { begin(tier) })
}

func (n *nodes) each(do func(*memcachetest.Server)) {
	for _, s := range n.servers {
		do(s)
	}
}

// stored waits until the tier has stored what it was offered.
func (w *faultWorld) stored() {
	w.t.Helper()
	before := -1.0
	w.until("stored", func() bool {
		now := w.metric("shale_cache_stored_total")
		same := now == before
		before = now
		return same
	})
}

// stampede asks a query of all lines with 20 clients, and kills all servers of the tier meanwhile. It
// compares their requests to the bucket with those that they make when no server is there from the
// beginning.
func (w *faultWorld) stampede(n *nodes, begin func()) {
	w.t.Helper()
	path := "/loki/api/v1/query_range?" + url.Values{"query": {`sum(count_over_time({app=~"a.+"} |~ "[0-9a-f]" [1h]))`}, "step": {"1h"},
		"start": {fmt.Sprint(w.days[0].Unix())}, "end": {fmt.Sprint(w.days[len(w.days)-1].Add(24 * time.Hour).Unix())}}.Encode()
	ask := func(clients int, name string, during func()) (requests int64) {
		begin()
		w.proxy.Reset()
		var all sync.WaitGroup
		var right atomic.Int64
		for range clients {
			all.Go(func() {
				if status, text, _ := w.request(http.MethodGet, path, "a", nil); status == http.StatusOK {
					right.Add(1)
				} else {
					w.t.Errorf("%d: %s", status, text)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		during()
		all.Wait()
		counts := w.proxy.Counts()
		w.t.Logf("| %d clients, %s | %d | %d | %.1f MB |", clients, name, right.Load(), counts.Requests, float64(counts.Bytes)/1e6)
		return counts.Requests
	}
	n.each((*memcachetest.Server).Kill)
	w.t.Log("| load | right | bucket requests | bytes |")
	without := ask(20, "all servers down", func() {})
	n.each((*memcachetest.Server).Restart)
	ask(1, "all servers empty", func() {})
	w.stored()
	ask(20, "all servers up", func() {})
	// How much the clients share depends on how fast the machine is: 0.9 to 1.3 times as many were seen. A
	// stampede would make four times as many.
	if killed := ask(20, "all servers killed meanwhile", func() { n.each((*memcachetest.Server).Kill) }); killed > 2*without+50 {
		w.t.Errorf("when all servers are killed, 20 clients make %d requests to the bucket, and %d without servers", killed, without)
	}
}
