//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// lokiConfig is a Loki in one process with its cache of chunks at a memcached. Its chunks are small and many.
const lokiConfig = `auth_enabled: false
analytics: {reporting_enabled: false}
server: {http_listen_address: 127.0.0.1, http_listen_port: %[2]s, grpc_listen_address: 127.0.0.1, grpc_listen_port: %[3]s, log_level: warn}
common:
  instance_addr: 127.0.0.1
  path_prefix: %[1]s
  storage: {filesystem: {chunks_directory: %[1]s/chunks, rules_directory: %[1]s/rules}}
  replication_factor: 1
  ring: {kvstore: {store: inmemory}, instance_addr: 127.0.0.1}
ingester: {chunk_retain_period: 0s, chunk_target_size: 65536, chunk_block_size: 32768}
query_range: {cache_results: false}
chunk_store_config:
  chunk_cache_config:
    memcached: {batch_size: 16, parallelism: 4, expiration: 24h}
    memcached_client: {addresses: "%[4]s", timeout: 20s, circuit_breaker_consecutive_failures: 0}
limits_config: {ingestion_rate_mb: 100, ingestion_burst_size_mb: 200, per_stream_rate_limit: 100MB, per_stream_rate_limit_burst: 200MB}
schema_config:
  configs: [{from: 2020-10-24, store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}]
`

// lokiAndCache is a Loki whose chunks are cached by `shale memcached serve`.
type lokiAndCache struct {
	t                *testing.T
	dir, shale       string
	addr, metrics    string // of the cache
	loki             string // address
	cache            *process
	queries, results []string
}

func newLokiAndCache(t *testing.T) *lokiAndCache {
	cmd := exec.Command("go", "tool", "-n", "loki")
	cmd.Dir = logcliModule
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("building Loki: %v", err)
	}
	l := &lokiAndCache{t: t, dir: t.TempDir(), shale: shaleBinary(t), addr: freeAddr(t), metrics: freeAddr(t), loki: freeAddr(t)}
	l.startCache()
	_, port, _ := strings.Cut(l.loki, ":")
	_, grpc, _ := strings.Cut(freeAddr(t), ":")
	config := writeFile(t, filepath.Join(l.dir, "loki.yaml"), fmt.Sprintf(lokiConfig, filepath.Join(l.dir, "loki"), port, grpc, l.addr))
	p := start(t, l.dir, "loki", strings.TrimSpace(string(out)), "-config.file", config)
	l.waitFor("Loki", p, func() bool { return strings.HasPrefix(l.get(l.loki, "/ready"), "ready") })
	return l
}

func (l *lokiAndCache) startCache() {
	_, port, _ := strings.Cut(l.addr, ":")
	l.cache = start(l.t, l.dir, "cache", l.shale, "memcached", "serve", "-p", port, "--metrics", l.metrics, "-m", "16", "--ssd", filepath.Join(l.dir, "cache")+":256MiB", "--same-read", "1s")
	l.cache.waitFor(l.t, "http://"+l.metrics+"/metrics")
}

func (l *lokiAndCache) waitFor(what string, p *process, ready func() bool) {
	l.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ready(); time.Sleep(100 * time.Millisecond) {
		if p != nil && p.ended() || time.Now().After(end) {
			l.t.Fatalf("%s: not in time", what)
		}
	}
}

// get returns the body of a response, or what went wrong.
func (l *lokiAndCache) get(addr, path string) string {
	resp, err := http.Get("http://" + addr + path)
	if err != nil {
		return err.Error()
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err.Error()
	}
	return string(body)
}

// count returns the value of a metric.
func (l *lokiAndCache) count(addr, metric string) int {
	l.t.Helper()
	for line := range strings.Lines(l.get(addr, "/metrics")) {
		if rest, ok := strings.CutPrefix(line, metric+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				l.t.Fatal(err)
			}
			return int(n)
		}
	}
	l.t.Fatalf("no metric %s", metric)
	return 0
}

// load sends lines and waits until Loki has put all chunks away, so that queries read them from its store.
func (l *lokiAndCache) load(megabytes int) {
	l.t.Helper()
	now := time.Now()
	load := exec.Command(l.shale, "load", "logs", "--quiet", "--mb", strconv.Itoa(megabytes), "--span", "30m", "--url", "http://"+l.loki+"/loki/api/v1/push", "--seed", "19")
	if out, err := load.CombinedOutput(); err != nil {
		l.t.Fatalf("load: %v\n%s", err, out)
	}
	resp, err := http.Post("http://"+l.loki+"/flush", "", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	resp.Body.Close()
	for _, q := range []string{`sum by (level) (count_over_time({app=~".+"}[2h]))`, `sum by (app) (bytes_over_time({app=~".+"} |~ "(?i)e" [2h]))`, `{app="checkout"} |= "error"`} {
		l.queries = append(l.queries, "/loki/api/v1/query_range?"+url.Values{
			"query": {q}, "start": {strconv.FormatInt(now.Add(-time.Hour).UnixNano(), 10)}, "end": {strconv.FormatInt(now.UnixNano(), 10)}, "step": {"3600"}, "limit": {"5000"},
		}.Encode())
	}
	l.waitFor("Loki's chunks", nil, func() bool {
		text := l.get(l.loki, "/metrics")
		return strings.Contains(text, `loki_ingester_chunks_flushed_total{reason="forced"} `) && strings.Contains(text, "\nloki_ingester_flush_queue_length 0\n")
	})
}

// reads is what a run of the queries asked the cache for.
type reads struct {
	asked, found, disk int // of the cache itself, since it began
	fetched, hits      int // of Loki, in this run
}

// run sends the queries, whose results never change.
func (l *lokiAndCache) run(what string) (r reads) {
	l.t.Helper()
	const fetched, hits = `loki_cache_fetched_keys{name="chunksmemcache"}`, `loki_cache_hits{name="chunksmemcache"}`
	r.fetched, r.hits = -l.count(l.loki, fetched), -l.count(l.loki, hits)
	for i, q := range l.queries {
		result, _, found := strings.Cut(l.get(l.loki, q), `,"stats"`)
		if !found || !strings.Contains(result, `"values"`) {
			l.t.Fatalf("%s: %s: %.500s", what, q, result)
		}
		if i == len(l.results) {
			l.results = append(l.results, result)
		} else if result != l.results[i] {
			l.t.Errorf("%s: %s: the result has changed from\n%.500s\nto\n%.500s", what, q, l.results[i], result)
		}
	}
	r.fetched += l.count(l.loki, fetched)
	r.hits += l.count(l.loki, hits)
	r.asked, r.found, r.disk = l.count(l.metrics, "memcached_server_gets_total"), l.count(l.metrics, "memcached_server_hits_total"), l.count(l.metrics, "memcached_server_disk_hits_total")
	l.t.Logf("%s: Loki looked for %d chunks and found %d in its cache; the cache was asked for %d since it began, and found %d, %d of them on disk", what, r.fetched, r.hits, r.asked, r.found, r.disk)
	return r
}

// TestLokiChunkCache runs Loki, unchanged, with `shale memcached serve` as its cache of chunks. The cache is
// restarted and killed, and has all chunks after that.
func TestLokiChunkCache(t *testing.T) {
	t.Parallel()
	l := newLokiAndCache(t)
	l.load(30)
	l.run("first run")
	time.Sleep(1100 * time.Millisecond) // reads within --same-read count as one
	l.run("second run")
	time.Sleep(1100 * time.Millisecond)
	if r := l.run("warm"); r.hits < r.fetched*95/100 || r.disk == 0 {
		t.Errorf("%+v", r)
	}
	for _, end := range []string{"restart", "kill -9"} {
		if end == "restart" {
			l.cache.stop(t)
		} else {
			if err := l.cache.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-l.cache.done
		}
		l.startCache()
		if n := l.count(l.metrics, "memcached_server_items"); n != 0 {
			t.Errorf("%s: %d items in memory", end, n)
		}
		// Loki finds its connections closed, one after the other, and takes what it asked by them as missing.
		if r := l.run("after " + end); r.asked == 0 || r.found < r.asked*98/100 || r.hits < r.fetched/2 || r.disk == 0 {
			t.Errorf("after %s: %+v", end, r)
		}
	}
	log, err := os.ReadFile(filepath.Join(l.dir, "cache.log"))
	if err != nil || bytes.Contains(log, []byte("level=ERROR")) {
		t.Errorf("%v\n%s", err, log)
	}
}
