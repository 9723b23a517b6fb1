//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shaledb/shale/internal/client"
)

// promModule is the module that pins the current Prometheus and builds it.
const promModule = "../prometheus"

// promTool builds a program of the current Prometheus, unless it is built, and returns its path. Service
// discovery is left out, since it is most of the program; go tool would not leave it out.
func promTool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/test/" + name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-tags", "remove_all_sd", "-o", path, "github.com/prometheus/prometheus/cmd/"+name)
	cmd.Dir = promModule
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v: %s", name, err, out)
	}
	return path
}

// exporter is a scrape target with the metrics of current clients: native histograms, classic ones, counters
// with exemplars and start timestamps, gauges, UTF-8 names.
func exporter(t *testing.T) string {
	t.Helper()
	reg := prometheus.NewRegistry()
	native := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "e2e_latency_seconds", Help: "A native histogram.", NativeHistogramBucketFactor: 1.1,
		NativeHistogramMaxBucketNumber: 40, NativeHistogramMinResetDuration: 20 * time.Second,
	}, []string{"path"})
	classic := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "e2e_size_bytes", Help: "A classic histogram.", Buckets: []float64{1, 10, 100}})
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "e2e_requests_total", Help: "A counter with exemplars.\nOn two lines."}, []string{"path"})
	temperature := prometheus.NewGauge(prometheus.GaugeOpts{Name: "e2e.température", Help: "A name that needs quotes."})
	reg.MustRegister(native, classic, requests, temperature)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		r := rand.New(rand.NewPCG(1, 2))
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
			}
			for _, path := range []string{"/a", "/b"} {
				trace := prometheus.Labels{"trace_id": strconv.FormatUint(r.Uint64(), 16)}
				native.WithLabelValues(path).(prometheus.ExemplarObserver).ObserveWithExemplar(r.ExpFloat64()-0.1, trace)
				requests.WithLabelValues(path).(prometheus.ExemplarAdder).AddWithExemplar(1, trace)
			}
			classic.Observe(r.ExpFloat64() * 50)
			temperature.Set(r.NormFloat64())
		}
	}()
	srv := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	t.Cleanup(func() {
		srv.Close()
		close(done)
		<-stopped
	})
	return strings.TrimPrefix(srv.URL, "http://")
}

// startCurrent runs the current Prometheus. It scrapes itself, the server, and the exporter twice: once with
// native histograms and once with classic ones as custom buckets. Its rules make float histograms. It writes
// everything to the server by remote write 2.0.
func startCurrent(t *testing.T, dir string, s *server) (*process, string) {
	t.Helper()
	addr, target := freeAddr(t), exporter(t)
	rules := writeFile(t, filepath.Join(dir, "rules.yml"), `
groups:
- name: e2e
  interval: 1s
  rules:
  - record: path:e2e_latency_seconds:rate10s
    expr: rate(e2e_latency_seconds[10s])
`)
	conf := writeFile(t, filepath.Join(dir, "current.yml"), fmt.Sprintf(`
global:
  scrape_interval: 1s
  evaluation_interval: 1s
  scrape_native_histograms: true
  scrape_protocols: [PrometheusProto, OpenMetricsText1.0.0, PrometheusText0.0.4]
rule_files: ['%s']
storage:
  exemplars: {max_exemplars: 1000000}
scrape_configs:
- job_name: prometheus
  static_configs: [{targets: ['%s']}]
- job_name: server
  static_configs: [{targets: ['%s']}]
- job_name: exporter
  static_configs: [{targets: ['%s']}]
- job_name: custom-buckets
  convert_classic_histograms_to_nhcb: true
  always_scrape_classic_histograms: false
  scrape_native_histograms: false
  static_configs: [{targets: ['%s']}]
- job_name: gone
  static_configs: [{targets: ['%s']}]
  metric_relabel_configs:
  - {source_labels: [__name__], regex: e2e_requests_total, action: keep}
remote_write:
- url: http://%s/api/v1/write
  protobuf_message: io.prometheus.write.v2.Request
  send_exemplars: true
  send_native_histograms: true
  queue_config:
    batch_send_deadline: 1s
# By version 2.0 this release of Prometheus sends no metadata, whatever its flags say. By version 1.0 it does, beside the
# samples, of which none are sent here.
- url: http://%s/api/v1/write
  metadata_config: {send: true, send_interval: 2s}
  write_relabel_configs:
  - {source_labels: [__name__], regex: '.*', action: drop}
`, rules, addr, s.httpAddr, target, target, target, s.httpAddr, s.httpAddr))
	p := start(t, dir, "current-prometheus", promTool(t, "prometheus"), "--config.file="+conf, "--storage.tsdb.path="+filepath.Join(dir, "current-tsdb"),
		"--web.listen-address="+addr, "--log.level=warn", "--storage.remote.flush-deadline=5s", "--enable-feature=exemplar-storage,metadata-wal-records",
		"--web.enable-admin-api")
	p.waitFor(t, "http://"+addr+"/-/ready")
	return p, "http://" + addr
}

// TestCurrentPrometheus compares, after some time of scraping, all data of a current Prometheus with the
// server's: floats, histograms of all kinds, exemplars, metadata.
func TestCurrentPrometheus(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about remote write 2.0")
	}
	dir := t.TempDir()
	s := newServer(t, dir)
	s.start()
	from := time.Now().Add(-time.Minute)
	prom, promURL := startCurrent(t, dir, s)
	for end := time.Now().Add(*duration); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		for _, p := range []*process{s.process, prom} {
			if p.ended() {
				t.Fatalf("%s ended on its own: %v", p.name, p.err)
			}
		}
	}
	to := time.Now().Add(-3 * time.Second)
	compare := func(t *testing.T) {
		for what, look := range map[string]func(base string) (map[string]string, error){
			"series":    func(base string) (map[string]string, error) { return allSeries(base, from, to) },
			"exemplars": func(base string) (map[string]string, error) { return allExemplars(base, from, to) },
			"metadata":  allMetadata,
		} {
			eventually(t, what, func() error {
				want, err := look(promURL)
				if err != nil {
					return err
				}
				got, err := look(s.url())
				if err != nil {
					return err
				}
				if len(want) < 4 {
					return fmt.Errorf("Prometheus has %d only", len(want))
				}
				if err := summary(diffTexts(want, got)); err != nil {
					return err
				}
				t.Logf("%d %s are the same on both sides (%s)", len(want), what, count(want))
				return nil
			})
		}
	}
	t.Run("while the server runs", compare)
	t.Run("promtool", func(t *testing.T) { askByPromtool(t, s) })
	t.Run("after a restart", func(t *testing.T) {
		s.stop(t)
		s.start()
		compare(t)
	})
	prom.stop(t)
	if text := string(prom.logText(t)); strings.Contains(text, "non-recoverable") || strings.Contains(text, "partially written") {
		t.Errorf("Prometheus lost samples:\n%s", prom.logTail(4<<10))
	}
}

// count counts the samples of each kind in the texts of allSeries.
func count(texts map[string]string) string {
	floats, histograms := 0, 0
	for _, text := range texts {
		f, h, ok := strings.Cut(text, "|")
		if !ok {
			continue
		}
		floats += strings.Count(f, ",")
		histograms += strings.Count(h, `"count"`)
	}
	return fmt.Sprintf("%d floats, %d histograms", floats, histograms)
}

// allSeries returns the samples of every series between two times, by labels, as the API writes them.
func allSeries(base string, from, to time.Time) (map[string]string, error) {
	names, err := metricNames(base)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, name := range names {
		var data struct {
			Result []struct {
				Metric             map[string]string
				Values, Histograms []json.RawMessage
			}
		}
		form := url.Values{"query": {rawSelector(selector(name), from, to)}, "time": {client.Seconds(to.UnixMilli())}}
		if err := api(base).API(context.Background(), http.MethodPost, "query", form, &data); err != nil {
			return nil, err
		}
		for _, r := range data.Result {
			all[labelText(r.Metric)] = joined(r.Values) + "|" + joined(r.Histograms)
		}
	}
	return all, nil
}

func joined(list []json.RawMessage) string {
	var b strings.Builder
	for _, m := range list {
		b.Write(m)
		b.WriteByte('\n')
	}
	return b.String()
}

// allExemplars returns the exemplars of every series, by labels.
func allExemplars(base string, from, to time.Time) (map[string]string, error) {
	var data []struct {
		SeriesLabels map[string]string
		Exemplars    []json.RawMessage
	}
	form := url.Values{"query": {`{__name__=~"e2e.*"}`}, "start": {client.Seconds(from.UnixMilli())}, "end": {client.Seconds(to.UnixMilli())}}
	if err := api(base).API(context.Background(), http.MethodPost, "query_exemplars", form, &data); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, d := range data {
		all[labelText(d.SeriesLabels)] = joined(d.Exemplars)
	}
	return all, nil
}

// allMetadata returns type, help and unit of the exporter's metrics.
func allMetadata(base string) (map[string]string, error) {
	var data map[string][]json.RawMessage
	if err := api(base).API(context.Background(), http.MethodGet, "metadata", nil, &data); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for name, list := range data {
		if strings.HasPrefix(name, "e2e") {
			all[name] = joined(list)
		}
	}
	return all, nil
}

// diffTexts describes the differences of two maps.
func diffTexts(want, got map[string]string) []string {
	var diffs []string
	for k, w := range want {
		if g, ok := got[k]; !ok {
			diffs = append(diffs, k+" is missing")
		} else if g != w {
			diffs = append(diffs, k+": "+firstDifference(w, g))
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			diffs = append(diffs, k+" is not in the client")
		}
	}
	sort.Strings(diffs)
	return diffs
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			return fmt.Sprintf("line %d of %d (%d): want %.400s, got %.400s", i, len(w), len(g), w[i], strings.Join(g[min(i, len(g)):min(i+1, len(g))], ""))
		}
	}
	return fmt.Sprintf("%d lines too many", len(g)-len(w))
}

// askByPromtool runs each query command of promtool, and its check of the server's own metrics.
func askByPromtool(t *testing.T, s *server) {
	promtool := promTool(t, "promtool")
	now := time.Now()
	stamp := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"query", "instant", s.url(), `up{job="exporter"}`}, "=> 1 @["},
		{[]string{"query", "instant", s.url(), `histogram_count(e2e_latency_seconds{job="exporter"})`}, `path="/a"`},
		{[]string{"query", "range", s.url(), `up`, "--start", stamp(-30 * time.Second), "--end", stamp(0), "--step", "10s"}, `job="exporter"`},
		{[]string{"query", "series", s.url(), "--match", `e2e_requests_total`, "--start", stamp(-time.Hour), "--end", stamp(0)}, `"/b"`},
		{[]string{"query", "labels", s.url(), "path"}, "/a"},
	} {
		out, err := exec.Command(promtool, c.args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("promtool %s: %v, want %q in:\n%.2000s", strings.Join(c.args, " "), err, c.want, out)
		}
	}
	lint := exec.Command(promtool, "check", "metrics")
	lint.Stdin = bytes.NewReader(metrics(t, s))
	// Upstream names the metrics of the PromQL engine.
	out, err := lint.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "prometheus_engine_") {
			t.Errorf("promtool check metrics: %v: %s", err, line)
		}
	}
}
