//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The budget of TestMemoryBound, and what docs/operations.md lets a server take with it.
const (
	memoryBudget = 256 << 20
	memoryBound  = memoryBudget*115/100 + 64<<20
)

// TestMemoryBound drives all that holds memory to its limit at the same time: storms of new series by two
// protocols, lines, bodies that stall, tails, and 50 clients with heavy queries of all kinds. The process
// stays inside its bound, and responds with nothing worse than 503 with Retry-After.
func TestMemoryBound(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("a bound of Shale")
	}
	s := newServer(t, t.TempDir())
	s.args = append(s.args, "--memory", strconv.Itoa(memoryBudget), "--cache.answers", "off")
	s.start()
	m := &memoryTest{t: t, s: s, codes: make(map[string]int), peaks: make(map[string]float64)}
	write := s.url() + "/api/v1/write"
	m.load(t.Context(), "remote-write", "--url", write, "--name", "floats", "--value", "counter", "--targets", "50", "--metrics", "1", "--series", "100", "--rate", "0", "--rounds", "100")
	m.load(t.Context(), "remote-write", "--url", write, "--name", "histograms", "--value", "histogram", "--protocol", "v2", "--targets", "10", "--metrics", "1", "--series", "50", "--rate", "0", "--rounds", "60")
	m.load(t.Context(), "logs", "--url", s.url()+"/loki/api/v1/push", "--mb", "50", "--span", "30m")

	duration := 40 * time.Second
	if testing.Short() {
		duration = 15 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	repeat := func(args ...string) {
		for seed := 100; ctx.Err() == nil; seed++ {
			m.load(ctx, append(args, "--seed", strconv.Itoa(seed))...)
		}
	}
	m.do(func() {
		repeat("remote-write", "--url", write, "--name", "storm", "--targets", "100", "--metrics", "10", "--series", "100", "--rate", "0", "--rounds", "1")
	})
	m.do(func() {
		repeat("graphite", "--target", s.graphiteAddr, "--agents", "100", "--metrics", "1000", "--connections", "4", "--rate", "0", "--rounds", "1", "--metrics-url", "")
	})
	m.do(func() { repeat("logs", "--url", s.url()+"/loki/api/v1/push", "--mb", "100") })
	for range 2 { // more would keep the storms out
		m.do(func() { m.stallBody(ctx) })
	}
	for range 4 {
		m.do(func() { _ = m.command(ctx, "tail", "--url", s.url(), `{cluster=~".+"}`).Run() })
	}
	for range 50 {
		m.do(func() { m.query(ctx) })
	}
	m.do(func() { m.watch(ctx) })
	m.running.Wait()
	if s.ended() {
		t.Fatalf("the server ended: %v", s.err)
	}
	peak := highWater(t, s.cmd.Process.Pid)
	t.Logf("peak of %d MiB, bound %d MiB; responses %v; greatest shares %v", peak>>20, memoryBound>>20, m.codes, m.peaks)
	if peak > memoryBound {
		t.Errorf("the server took %d MiB, more than %d", peak>>20, memoryBound>>20)
	}
	if m.codes["200"] == 0 {
		t.Error("no query had a result")
	}
}

type memoryTest struct {
	t       *testing.T
	s       *server
	running sync.WaitGroup

	mu    sync.Mutex
	codes map[string]int
	peaks map[string]float64 // of what holds memory, in shares of its limit
}

func (m *memoryTest) do(f func()) { m.running.Go(f) }

func (m *memoryTest) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, m.s.program, args...)
	cmd.WaitDelay = time.Second
	return cmd
}

// load runs the load generator. Its pushes may be refused.
func (m *memoryTest) load(ctx context.Context, args ...string) {
	out, err := m.command(ctx, append(append([]string{"load"}, args...), "--quiet", "--json")...).CombinedOutput()
	if err != nil && ctx.Err() == nil {
		m.t.Errorf("load %s: %v: %.500s", args[0], err, out)
	}
}

// stallBody sends all of a large push but its end.
func (m *memoryTest) stallBody(ctx context.Context) {
	const size = 6 << 20
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", m.s.httpAddr)
		if err != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		fmt.Fprintf(conn, "POST /loki/api/v1/push HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
		_, _ = conn.Write(make([]byte, size-1)) // fails if the push is refused before
		_, _ = io.Copy(io.Discard, conn)
		stop()
		conn.Close()
		time.Sleep(100 * time.Millisecond)
	}
}

// query sends heavy queries one after the other.
func (m *memoryTest) query(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.s.url()+heavyPath(), nil)
		if err != nil {
			m.t.Error(err)
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			continue
		}
		var text strings.Builder
		_, err = io.Copy(&text, resp.Body)
		resp.Body.Close()
		if err != nil {
			continue
		}
		code := resp.StatusCode
		if code >= 500 && (code != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "") {
			m.t.Errorf("%s: %d %.300s", req.URL, code, text.String())
		}
		m.mu.Lock()
		m.codes[strconv.Itoa(code)]++
		m.mu.Unlock()
		if code != http.StatusOK {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func heavyPath() string {
	now := time.Now()
	in := func(path string, form url.Values) string {
		form.Set("start", strconv.FormatInt(now.Add(-30*time.Minute).Unix(), 10))
		form.Set("end", strconv.FormatInt(now.Unix(), 10))
		return path + "?" + form.Encode()
	}
	instant := []string{"sort(floats_mmmmm_0)", "sort_desc({__name__=~\"storm.*\"})", "topk(10, {__name__=~\".+\"})", "count({__name__=~\".+\"}) by (instance)", "{__name__=~\"storm.*1\"}"}
	ranges := []string{
		"sum by (instance) (rate(floats_mmmmm_0[5m]))", "floats_mmmmm_0", "floats_mmmmm_0 / on (instance, series_id) floats_mmmmm_0",
		"histogram_quantile(0.9, sum by (instance) (rate(histograms_mmmmm_0[10m])))", "max_over_time(sum by (instance) (rate(floats_mmmmm_0[5m]))[10m:1m])",
	}
	lines := []string{`{cluster=~".+"}`, `{cluster=~".+"} |= "nothing has this"`, `{cluster=~".+"} | json | status >= 500`}
	one := func(list []string) string { return list[rand.IntN(len(list))] }
	switch rand.IntN(4) {
	case 0:
		return "/api/v1/query?" + url.Values{"query": {one(instant)}}.Encode()
	case 1:
		return in("/api/v1/query_range", url.Values{"query": {one(ranges)}, "step": {"15"}})
	case 2:
		return in("/loki/api/v1/query_range", url.Values{"query": {one(lines)}, "limit": {"5000"}})
	}
	return in("/api/v1/series", url.Values{"match[]": {`{__name__=~".+"}`}})
}

// watch notes how full the shares of the budget were.
func (m *memoryTest) watch(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		resp, err := http.Get(m.s.url() + "/metrics")
		if err != nil {
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			continue
		}
		values := make(map[string]float64)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 2 && !strings.HasPrefix(line, "#") {
				values[f[0]], _ = strconv.ParseFloat(f[1], 64)
			}
		}
		m.mu.Lock()
		for name, limit := range memoryShares {
			if values[limit] > 0 {
				m.peaks[name] = max(m.peaks[name], values[name]/values[limit])
			}
		}
		m.mu.Unlock()
	}
}

// memoryShares are metrics of what holds memory, and of their limits.
var memoryShares = map[string]string{
	"shale_api_prom_query_bytes":    "shale_api_prom_query_limit_bytes",
	"shale_cache_bytes":             "shale_cache_limit_bytes",
	"shale_head_label_buffer_bytes": "shale_head_label_buffer_limit_bytes",
	"shale_head_row_buffer_bytes":   "shale_head_row_buffer_limit_bytes",
	"shale_head_active_series":      "shale_head_active_series_limit",
	"shale_write_inflight_bytes":    "shale_write_inflight_limit_bytes",
}

// highWater returns the greatest resident memory of a process.
func highWater(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("only Linux tells the peak of memory: ", err)
	}
	f := strings.Fields(string(text))
	i := slices.Index(f, "VmHWM:")
	kilo, err := strconv.ParseInt(f[i+1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilo << 10
}
