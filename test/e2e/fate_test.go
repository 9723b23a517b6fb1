//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// refuser refuses all requests with the status that their path begins with, as Shale does, and counts how
// often each body comes.
type refuser struct {
	mu   sync.Mutex
	seen map[string]map[[sha256.Size]byte]int // by sender and status
}

func (f *refuser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 3)
	body, err := io.ReadAll(r.Body)
	if err != nil || len(parts) < 3 {
		return
	}
	f.mu.Lock()
	key := parts[0] + " " + parts[1]
	if f.seen[key] == nil {
		f.seen[key] = map[[sha256.Size]byte]int{}
	}
	f.seen[key][sha256.Sum256(body)]++
	f.mu.Unlock()
	status := 0
	_, _ = fmt.Sscan(parts[1], &status)
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, "refused", status)
}

// fate says what a sender does: it repeats a body, or sends others and none again.
func (f *refuser) fate(sender, status string, enough int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen[sender+" "+status]
	for _, n := range seen {
		if n > 1 {
			return "repeated"
		}
	}
	if len(seen) >= enough {
		return "dropped"
	}
	return fmt.Sprint(len(seen), " bodies so far")
}

// TestFates: what real senders do with each status that Shale refuses writes with. docs/limits.md has it as a
// table.
func TestFates(t *testing.T) {
	t.Parallel()
	if *serverKind != "shale" {
		t.Skip("it needs no server")
	}
	statuses := []string{"400", "401", "403", "413", "429", "503"}
	again := map[string]map[string]bool{ // besides, they drop
		"prometheus-2.42": {"503": true}, "prometheus-now": {"503": true}, "retry-on-429": {"429": true, "503": true}, "otel": {"429": true, "503": true},
		"promtail": {"429": true, "503": true},
	}
	refuses := &refuser{seen: map[string]map[[sha256.Size]byte]int{}}
	srv := httptest.NewServer(refuses)
	t.Cleanup(srv.Close)
	target, dir := plainTarget(t), t.TempDir()
	for _, p := range []struct{ name, program, queue string }{
		{"prometheus-2.42", "prometheus", ""}, {"prometheus-now", promTool(t, "prometheus"), ""}, {"retry-on-429", "prometheus", ", retry_on_http_429: true"},
	} {
		conf := "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: target, static_configs: [{targets: ['" + target + "']}]}]\nremote_write:\n"
		for _, status := range statuses {
			conf += fmt.Sprintf("- {url: %q, metadata_config: {send: false}, queue_config: {max_shards: 1, batch_send_deadline: 1s%s}}\n", srv.URL+"/"+p.name+"/"+status+"/write", p.queue)
		}
		file := writeFile(t, filepath.Join(dir, p.name+".yml"), conf)
		start(t, dir, p.name, p.program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, p.name), "--web.listen-address="+freeAddr(t), "--storage.remote.flush-deadline=1s")
	}
	program := goBuild(t, otelModule, ".")
	promtail := newPromtail(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var done sync.WaitGroup
	for _, status := range statuses {
		done.Go(func() { // it fails, which is what the test is about
			_ = exec.CommandContext(ctx, program, "-records", "1", "-logs", srv.URL+"/otel/"+status+"/v1/logs").Run()
		})
		done.Go(func() {
			_ = exec.CommandContext(ctx, promtail, "-url", srv.URL+"/promtail/"+status+"/push", "-retries", "3").Run()
		})
	}
	done.Wait() // a sender that has ended repeats nothing
	for sender, repeats := range again {
		enough := 3
		if sender == "otel" || sender == "promtail" {
			enough = 1
		}
		for _, status := range statuses {
			want := "dropped"
			if repeats[status] {
				want = "repeated"
			}
			eventually(t, sender+" after "+status, func() error {
				if got := refuses.fate(sender, status, enough); got != want {
					return fmt.Errorf("it %s, want %s", got, want)
				}
				return nil
			})
		}
	}
}
