//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The budgets of TestVictoriaLogsLoad. A request reads 100 lines of 200 bytes, and makes a response of them.
const (
	loadRequests     = 10_000
	loadClients      = 50
	loadedBytes      = 128 << 10 // allocated for a request
	loadedHeapGrowth = 4 << 20   // what is live after all requests, above what was after the first ones
)

// lineServer answers as VictoriaLogs does for 100 lines of four streams.
type lineServer struct {
	at    time.Time // of the first line
	asked atomic.Int64
}

var stepOf = regexp.MustCompile(`_time:(\d+)ns(?: offset (-?\d+)ns)?`)

func (l *lineServer) stream(i int) string { return fmt.Sprintf(`{app="web",pod="%d"}`, i) }

// ServeHTTP counts lines, lists streams, or sends lines.
func (l *lineServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.asked.Add(1)
	var b bytes.Buffer
	stamp := func(i int) string {
		return l.at.Add(time.Duration(i) * time.Millisecond).Format("2006-01-02T15:04:05.000Z")
	}
	q := r.FormValue("query")
	switch step := stepOf.FindStringSubmatch(q); {
	case strings.Contains(q, "stats by (_time:5m)"):
		http.Error(w, "nothing is to be kept", http.StatusBadRequest)
		return
	case strings.Contains(q, "| stats by (_stream"):
		for i := range 4 {
			fmt.Fprintf(&b, `{"_stream":%q,"n":"25","times":"25","bytes":"5000","lo":%q,"hi":%q`, l.stream(i), stamp(i), stamp(96+i))
			if step != nil {
				width, _ := strconv.ParseInt(step[1], 10, 64)  // digits only
				offset, _ := strconv.ParseInt(step[2], 10, 64) // the same, or nothing
				bucket := (l.at.UnixNano()+offset)/width*width - offset
				fmt.Fprintf(&b, `,"_time":%q`, time.Unix(0, bucket).UTC().Format(time.RFC3339Nano))
			}
			b.WriteString("}\n")
		}
	case strings.Contains(q, "| uniq by (_stream)"):
		for i := range 4 {
			fmt.Fprintf(&b, `{"_stream":%q}`+"\n", l.stream(i))
		}
	default:
		for i := range 100 {
			fmt.Fprintf(&b, `{"_time":%q,"_stream":%q,"_msg":"%-200d","app":"web","pod":"%d"}`+"\n", stamp(i), l.stream(i%4), i, i%4)
		}
	}
	_, _ = w.Write(b.Bytes()) // whoever asked sees a cut body
}

// TestVictoriaLogsLoad sends 10,000 requests over VictoriaLogs of which nothing is kept, by 50 clients at a
// time. Each gets the right response, and requests stay inside their budgets of memory.
func TestVictoriaLogsLoad(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("a bound of Shale")
	}
	lines := &lineServer{at: time.Now().Add(-time.Hour).UTC().Truncate(time.Hour).Add(time.Second)}
	backend := httptest.NewServer(lines)
	defer backend.Close()
	s := newServer(t, t.TempDir())
	s.args = append(s.args, "--retention", "0", "--source", "victorialogs="+backend.URL, "--cache.answers", "off", "--cache.result-memory", "0", "--http-pprof", "on", "--query.max-concurrent", "64")
	s.start()

	form := url.Values{"start": {strconv.FormatInt(lines.at.Add(-time.Minute).UnixNano(), 10)}, "end": {strconv.FormatInt(lines.at.Add(time.Minute).UnixNano(), 10)}, "limit": {"100"}, "step": {"10"}}
	var targets []string
	for _, q := range []string{`{app="web"}`, `{app="web"} |= "9"`, `sum by (pod) (count_over_time({app="web"}[10s]))`} {
		form.Set("query", q)
		targets = append(targets, "/loki/api/v1/query_range?"+form.Encode())
	}
	form.Set("query", `{app="web"}`)
	targets = append(targets, "/loki/api/v1/labels?"+form.Encode())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loadClients}}
	defer client.CloseIdleConnections()
	ask := func(target string) string {
		resp, err := client.Get(s.url() + target)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Sprintf("status %d, %v: %s", resp.StatusCode, err, body)
		}
		if i := bytes.Index(body, []byte(`"stats"`)); i > 0 { // which has times
			body = body[:i]
		}
		return string(body)
	}
	var want []string
	for i, target := range targets {
		want = append(want, ask(target))
		if text := [...]string{`"99   `, `"99   `, `"25"`, `"pod"`}[i]; !strings.Contains(want[i], text) {
			t.Fatalf("%s: %.500s", target, want[i])
		}
	}
	send := func(n int) (failed int64) {
		var next, wrong atomic.Int64
		var clients sync.WaitGroup
		for range loadClients {
			clients.Go(func() {
				for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
					if got := ask(targets[i%len(targets)]); got != want[i%len(want)] && wrong.Add(1) == 1 {
						t.Errorf("%s: %.500s", targets[i%len(targets)], got)
					}
				}
			})
		}
		clients.Wait()
		return wrong.Load()
	}
	allocated := func() float64 { return metric(t, s, "go_memstats_alloc_bytes_total") }
	live := func() float64 {
		ask("/debug/pprof/heap?gc=1") // which collects garbage
		return metric(t, s, "go_memstats_heap_alloc_bytes")
	}
	send(500) // connections and buffers
	heap, before, asked := live(), allocated(), lines.asked.Load()
	began := time.Now()
	if wrong := send(loadRequests); wrong > 0 {
		t.Errorf("%d of %d responses are errors or others than the first one", wrong, loadRequests)
	}
	took := time.Since(began)
	each := (allocated() - before) / loadRequests
	growth := live() - heap
	t.Logf("%d requests in %s on %d cores, %d requests to VictoriaLogs; %.0f kB allocated for each, live heap %.1f MB, and %.1f MB more after them",
		loadRequests, took, runtime.NumCPU(), lines.asked.Load()-asked, each/1e3, heap/1e6, growth/1e6)
	if asked := lines.asked.Load() - asked; asked < loadRequests {
		t.Errorf("%d requests to VictoriaLogs: responses were kept", asked)
	}
	if each > loadedBytes {
		t.Errorf("%.0f bytes are allocated for a request, more than %d", each, loadedBytes)
	}
	if growth > loadedHeapGrowth {
		t.Errorf("%.0f bytes more are live after all requests, more than %d", growth, loadedHeapGrowth)
	}
}
