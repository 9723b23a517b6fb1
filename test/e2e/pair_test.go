//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// pairSkew is how far the clock of the second server of a pair is ahead: 30 s if there is time.
func pairSkew() time.Duration {
	if *duration > time.Minute {
		return 30 * time.Second
	}
	return 8 * time.Second
}

// shifted is a proxy for remote write that moves all times, as if the clock of the sender were wrong. It
// also checks the responses. Since Go programs read the clock by themselves, a clock cannot be faked for one
// of two servers in another way.
type shifted struct {
	to    string
	mu    sync.Mutex
	wrong []string
	// sent counts the samples of version 2, and written those that the responses say are written.
	sent, written int
}

func (p *shifted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	samples := 0
	if err == nil {
		body, samples, err = shiftTimes(body, strings.Contains(r.Header.Get("Content-Type"), "v2.Request"))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.to+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	out.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if resp.StatusCode >= 300 {
		p.wrong = append(p.wrong, fmt.Sprintf("%s %.200s", resp.Status, text))
		return
	}
	written, _ := strconv.Atoi(resp.Header.Get("X-Prometheus-Remote-Write-Samples-Written"))
	p.sent, p.written = p.sent+samples, p.written+written
}

// shiftTimes moves the times of a body of remote write.
func shiftTimes(body []byte, v2 bool) (_ []byte, samples int, err error) {
	if body, err = snappy.Decode(nil, body); err != nil {
		return nil, 0, err
	}
	if v2 {
		var req writev2.Request
		if err = req.Unmarshal(body); err != nil {
			return nil, 0, err
		}
		for i := range req.Timeseries {
			for k := range req.Timeseries[i].Samples {
				req.Timeseries[i].Samples[k].Timestamp += pairSkew().Milliseconds()
				samples++
			}
		}
		body, err = req.Marshal()
	} else {
		var req prompb.WriteRequest
		if err = req.Unmarshal(body); err != nil {
			return nil, 0, err
		}
		for i := range req.Timeseries {
			for k := range req.Timeseries[i].Samples {
				req.Timeseries[i].Samples[k].Timestamp += pairSkew().Milliseconds()
			}
		}
		body, err = req.Marshal()
	}
	return snappy.Encode(nil, body), samples, err
}

// replica is a Prometheus of a pair, which may be stopped and started again.
type replica struct {
	*process
	addr  string
	begin func() *process
}

func (r *replica) start(t *testing.T) {
	t.Helper()
	r.process = r.begin()
	r.waitFor(t, "http://"+r.addr+"/-/ready")
}

// newReplica prepares a server of the pair. Message is empty for version 1 of remote write.
func newReplica(t *testing.T, dir, name, program, target, url, message string) *replica {
	t.Helper()
	r := &replica{addr: freeAddr(t)}
	if message != "" {
		message = "  protobuf_message: " + message + "\n"
	}
	conf := writeFile(t, filepath.Join(dir, name+".yml"), fmt.Sprintf(`
global: {scrape_interval: 1s, external_labels: {cluster: eu, __replica__: %s}}
scrape_configs:
- job_name: target
  static_configs: [{targets: ['%s']}]
remote_write:
- url: %s/api/v1/write
%s  queue_config: {batch_send_deadline: 500ms}
`, name, target, url, message))
	r.begin = func() *process {
		return start(t, dir, name, program, "--config.file="+conf, "--storage.tsdb.path="+filepath.Join(dir, name+"-tsdb"), "--web.listen-address="+r.addr, "--storage.remote.flush-deadline=2s")
	}
	return r
}

// plainTarget serves metrics that old and current servers name alike.
func plainTarget(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 50 {
			fmt.Fprintf(w, "plain_%d{part=\"%d\"} %d\n", i%10, i, time.Now().UnixMilli())
		}
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

// TestPair runs two real Prometheus servers of an HA pair, an old one with remote write 1.0 and a current one
// with 2.0 whose clock is ahead. Each is stopped once, and started again. All samples are stored once,
// without a gap, and neither server takes any response for a failure.
func TestPair(t *testing.T) {
	t.Parallel()
	if *serverKind != "shale" {
		t.Skip("it is about pairs")
	}
	const failover = 4 * time.Second
	const scrape = 55 // samples
	dir := t.TempDir()
	s := newServer(t, dir)
	s.args = append(s.args, "--ha.deduplicate", "on", "--ha.failover-after", failover.String())
	s.start()
	proxy := &shifted{to: s.url()}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	target := plainTarget(t)
	a := newReplica(t, dir, "a", "prometheus", target, s.url(), "")
	b := newReplica(t, dir, "b", promTool(t, "prometheus"), target, front.URL, "io.prometheus.write.v2.Request")
	from := time.Now()
	count := func(series string, most float64, what string) {
		t.Helper()
		for began := time.Now(); metric(t, s, series) < most; time.Sleep(100 * time.Millisecond) {
			if time.Since(began) > settle {
				t.Fatalf("%s: %s is %v, want %v", what, series, metric(t, s, series), most)
			}
		}
	}
	more := func(series string, n float64, what string) { t.Helper(); count(series, metric(t, s, series)+n, what) }
	const elections, dropped, stored = "shale_ha_elections_total", "shale_ha_deduplicated_samples_total", "shale_promwrite_received_samples_total"
	a.start(t)
	b.start(t)
	count(elections, 1, "the first server")
	more(dropped, scrape, "while the second one writes, too")
	aLeads := strings.Contains(string(s.logText(t)), "cluster=eu replica=a ")
	if !aLeads {
		a, b = b, a
	}
	stop := func(r *replica) {
		t.Helper()
		_, text := fetch(t, "GET", "http://"+r.addr+"/metrics")
		failed := regexp.MustCompile(`(?m)^prometheus_remote_storage_(samples|exemplars)_(failed|dropped)_total.* [1-9].*$`).FindString(text)
		if failed != "" || !strings.Contains(text, "prometheus_remote_storage_samples_failed_total{") {
			t.Errorf("%s takes samples for lost: %s", r.name, failed)
		}
		r.stop(t)
	}
	restarts := func(leader *replica, n float64) {
		t.Helper()
		if (leader == a) == aLeads {
			time.Sleep(pairSkew()) // until the fast clock shows a time at which the slow one was there, too
		}
		stop(leader)
		count(elections, n, "when the leader has stopped")
		more(stored, 2*scrape, "of the new leader")
		leader.start(t)
		more(dropped, 2*scrape, "of the leader from before")
	}
	restarts(a, 2)
	restarts(b, 3)
	stop(a)
	stop(b)

	if n := metric(t, s, elections); n != 3 {
		t.Errorf("%v elections", n)
	}
	for _, name := range []string{"shale_ha_spare_evicted_requests_total", "shale_ha_repeated_samples_total"} {
		t.Logf("%s %v", name, metric(t, s, name))
	}
	if n := metric(t, s, "shale_ha_spare_stored_requests_total"); n == 0 {
		t.Error("no kept request was stored")
	}
	if len(proxy.wrong) > 0 || proxy.sent != proxy.written || proxy.sent == 0 {
		t.Errorf("of %d samples, the responses say that %d are written; %d refusals: %v", proxy.sent, proxy.written, len(proxy.wrong), proxy.wrong)
	}
	complaint := regexp.MustCompile(`(?i)non-recoverable|indicate 0 samples|failed to send|level=error.*remote`)
	for _, r := range []*replica{a, b} {
		if text := complaint.Find(r.logText(t)); text != nil {
			t.Errorf("%s complains: %s\n%s", r.name, text, r.logTail(4<<10))
		}
	}
	checkPair(t, s, 2)
	t.Logf("took %s", time.Since(from))
}

// checkPair checks that each series has a sample of every scrape, and one only. At each of so many changes of
// the leader, a scrape of the one may follow shortly after that of the other.
func checkPair(t *testing.T, s *server, changes int) {
	t.Helper()
	all, err := rawSamples(s.url(), `{job="target"}`, time.Now().Add(-10*time.Minute), time.Now().Add(10*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("%d series", len(all))
	}
	samples, widest := 0, int64(0)
	for labels, list := range all {
		if strings.Contains(labels, "__replica__") || !strings.Contains(labels, `eu`) {
			t.Errorf("the labels %s are stored", labels)
		}
		close := 0
		for i := 1; i < len(list); i++ {
			gap := list[i].ms - list[i-1].ms
			if widest = max(widest, gap); gap > 2200 {
				t.Errorf("%s: sample %d of %d is %d ms after the one before", labels, i, len(list), gap)
			}
			if gap < 700 {
				close++
			}
		}
		if close > changes {
			t.Errorf("%s: %d samples follow within 0.7 s, as if both servers were stored", labels, close)
		}
		samples += len(list)
	}
	t.Logf("%d series with %d samples; at most %d ms between two", len(all), samples, widest)
}
