//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"
)

// startPrometheus runs a Prometheus that scrapes itself and the server every second and writes all to the
// server.
func startPrometheus(t *testing.T, dir string, s *server) (*process, string) {
	t.Helper()
	addr := freeAddr(t)
	conf := writeFile(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`
global:
  scrape_interval: 1s
scrape_configs:
- job_name: prometheus
  static_configs: [{targets: ['%s']}]
- job_name: server
  static_configs: [{targets: ['%s']}]
remote_write:
- url: http://%s/api/v1/write
  queue_config:
    batch_send_deadline: 1s
`, addr, s.httpAddr, s.httpAddr))
	p := start(t, dir, "prometheus", "prometheus", "--config.file="+conf, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"),
		"--web.listen-address="+addr, "--log.level=warn", "--storage.remote.flush-deadline=5s")
	p.waitFor(t, "http://"+addr+"/-/ready")
	return p, "http://" + addr
}

// comparePrometheus compares every series that Prometheus has itself with the server's.
func comparePrometheus(server, prometheus string, from, to time.Time) (series, samples int, err error) {
	names, err := metricNames(prometheus)
	if err != nil {
		return 0, 0, err
	}
	var diffs []string
	for _, name := range names {
		want, err := rawSamples(prometheus, selector(name), from, to)
		if err != nil {
			return 0, 0, err
		}
		got, err := rawSamples(server, selector(name), from, to)
		if err != nil {
			return 0, 0, err
		}
		series += len(want)
		samples += want.samples()
		diffs = append(diffs, diffSets(want, got)...)
	}
	return series, samples, summary(diffs)
}

// diffSets describes the differences of two sets of series.
func diffSets(want, got seriesSet) []string {
	var diffs []string
	for labels, w := range want {
		if d := diffSamples(w, got[labels]); d != "" {
			diffs = append(diffs, labels+": "+d)
		}
	}
	for labels := range got {
		if _, ok := want[labels]; !ok {
			diffs = append(diffs, labels+": is not in the client")
		}
	}
	sort.Strings(diffs)
	return diffs
}

func diffSamples(want, got []sample) string {
	for i := range want {
		if i >= len(got) {
			return fmt.Sprintf("has %d samples instead of %d; the first that is missing is %v", len(got), len(want), want[i])
		}
		if !want[i].same(got[i]) {
			return fmt.Sprintf("sample %d of %d is %v instead of %v", i, len(want), got[i], want[i])
		}
	}
	if len(got) > len(want) {
		return fmt.Sprintf("has %d samples instead of %d; the first too many is %v", len(got), len(want), got[len(want)])
	}
	return ""
}

// summary makes an error of the first few of many differences.
func summary(diffs []string) error {
	if len(diffs) == 0 {
		return nil
	}
	shown := diffs[:min(len(diffs), 20)]
	return fmt.Errorf("%d series differ:\n%s", len(diffs), strings.Join(shown, "\n"))
}
