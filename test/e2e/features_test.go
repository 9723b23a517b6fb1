//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/client"
)

// stable are questions that need no feature, or one of those that are on in both runs.
var stable = []string{
	// promql-duration-expr
	"rate(prometheus_http_requests_total[2s * 3])", "go_goroutines offset (1s + 1s)", "sum_over_time(go_goroutines[step() * 2 + 1s:1s])",
	"avg_over_time(go_goroutines[max_of(2s, 5s)])", "go_goroutines[-(5s)]",
	// promql-experimental-functions
	"mad_over_time(go_goroutines[8s])", "ts_of_max_over_time(go_goroutines[8s])", "ts_of_min_over_time(go_goroutines[8s])",
	"ts_of_first_over_time(go_goroutines[8s])", "ts_of_last_over_time(go_goroutines[8s])", "first_over_time(go_goroutines[8s])",
	"double_exponential_smoothing(go_goroutines[8s], 0.5, 0.5)", `sort_by_label(up, "job")`, `sort_by_label_desc(up, "job")`,
	"count(limitk(3, prometheus_http_requests_total))", "limit_ratio(0.5, prometheus_http_requests_total)", "limit_ratio(-0.5, prometheus_http_requests_total)",
	"info(up)", "sum by (job) (mad_over_time(go_goroutines[8s]))", "start_timestamp(up)", "max_over_time(mad_over_time(go_goroutines[4s])[6s:2s])",
	`histogram_quantiles(prometheus_http_response_size_bytes_bucket, "q", 0.5, 0.9)`, "start() + end() + range() + step()",
	// promql-extended-range-selectors
	"rate(prometheus_http_requests_total[5s] anchored)", "increase(prometheus_http_requests_total[5s] smoothed)", "delta(go_goroutines[5s] smoothed)",
	"go_goroutines smoothed", "changes(go_goroutines[5s] anchored)", "resets(go_goroutines[5s] anchored)",
	"sum by (handler) (rate(prometheus_http_requests_total[5s] smoothed))", "sum(increase(prometheus_http_requests_total[4s] anchored))",
	// promql-binop-fill-modifiers
	`up{job="prometheus"} + ignoring(job, instance) fill(5) nothing`, `up + on (job) fill_left(2) go_goroutines{job="server"}`,
	`up + on (job) group_left fill_right(3) go_goroutines{job="server"}`, "sum by (code) (prometheus_http_requests_total) / fill(1) nothing",
}

// named are questions whose results have names, or lack them, by promql-delayed-name-removal.
var named = []string{
	`rate({__name__=~"prometheus_http_requests_total|go_memstats_alloc_bytes_total"}[5s])`, `count_over_time({__name__=~"go_g.*"}[5s])`, "-go_goroutines",
	`label_replace(rate(prometheus_http_requests_total[5s]), "n", "$1", "__name__", "(.*)")`, `sum by (__name__) (rate({__name__=~"prometheus_http_.*_total"}[5s]))`,
	"go_goroutines * 2", `sum(rate(prometheus_http_requests_total[5s]))`, "increase(process_cpu_seconds_total[6s])", "irate(process_cpu_seconds_total[6s])",
	"resets(process_cpu_seconds_total[6s])", "sum(last_over_time(go_goroutines[4s]))", "abs(go_goroutines)", `max by (__name__, job) (avg_over_time({__name__=~"go_g.*"}[5s]))`,
}

// TestFeatures compares the results of experimental features with those of a Prometheus that has them on.
func TestFeatures(t *testing.T) {
	both := "promql-experimental-functions,promql-duration-expr,promql-extended-range-selectors,promql-binop-fill-modifiers,promql-per-step-stats"
	for name, more := range map[string]string{"functions": "", "names and starts": ",promql-delayed-name-removal,use-start-timestamps"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newServer(t, dir)
			s.args = append(s.args, "--query.enable-feature", both+more)
			s.start()
			addr := freeAddr(t)
			conf := filepath.Join(dir, "features.yml")
			configure := func(jobs string) {
				writeFile(t, conf, fmt.Sprintf(`
global: {scrape_interval: 1s}
scrape_configs: %s
remote_write:
- url: http://%s/api/v1/write
  protobuf_message: io.prometheus.write.v2.Request
  queue_config: {batch_send_deadline: 500ms}
`, jobs, s.httpAddr))
			}
			configure(fmt.Sprintf("[{job_name: prometheus, static_configs: [{targets: ['%s']}]}, {job_name: server, static_configs: [{targets: ['%s']}]}]", addr, s.httpAddr))
			p := start(t, dir, "prometheus", promTool(t, "prometheus"), "--config.file="+conf, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"),
				"--web.listen-address="+addr, "--log.level=warn", "--enable-feature=st-storage,"+both+more)
			p.waitFor(t, "http://"+addr+"/-/ready")
			time.Sleep(22 * time.Second) // Prometheus sends after it has read its own journal
			at := time.Now().Add(-3 * time.Second)
			// Smoothed ranges count samples up to the lookback after their end, so no more may come.
			configure("[]")
			if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			compareFeatures(t, "http://"+addr, s.url(), append(slices.Clone(stable), named...), at)
			compareFeatureLists(t, "http://"+addr, s.url())
		})
	}
}

// compareFeatures puts questions to two servers, at one time and over a range.
func compareFeatures(t *testing.T, prometheus, shale string, questions []string, at time.Time) {
	answered := 0
	for _, q := range questions {
		for kind, form := range map[string]url.Values{
			"query": {"query": {q}, "time": {client.Seconds(at.UnixMilli())}, "stats": {"all"}},
			"query_range": {
				"query": {q}, "start": {client.Seconds(at.UnixMilli() - 6000)}, "end": {client.Seconds(at.UnixMilli())}, "step": {"2"}, "stats": {"all"},
			},
		} {
			for _, statistics := range []bool{true, false} {
				if !statistics {
					form.Del("stats")
				}
				var want, got string
				eventually(t, q, func() error {
					want, got = answer(t, prometheus, kind, form), answer(t, shale, kind, form)
					if want != got {
						return fmt.Errorf("%s: %s", kind, firstDifference(want, got))
					}
					return nil
				})
				if !strings.HasPrefix(want, "error") && strings.Contains(want, "\n") {
					answered++
				}
			}
		}
	}
	if answered < 3*len(questions) {
		t.Errorf("only %d results of %d questions are not empty", answered, len(questions))
	}
}

// answer returns the result of a question as text, with the series in order, or the error.
func answer(t *testing.T, base, kind string, form url.Values) string {
	var data struct {
		ResultType string
		Result     json.RawMessage
		Stats      struct {
			Samples struct{ TotalQueryableSamplesPerStep json.RawMessage }
		}
	}
	if err := api(base).API(context.Background(), http.MethodPost, kind, form, &data); err != nil {
		return "error " + strings.TrimPrefix(err.Error(), base)
	}
	head := data.ResultType + " " + string(data.Stats.Samples.TotalQueryableSamplesPerStep) + "\n"
	var series []struct {
		Metric map[string]string
		Value  json.RawMessage
		Values []json.RawMessage
	}
	if err := json.Unmarshal(data.Result, &series); err != nil {
		return head + string(data.Result)
	}
	var lines []string
	for _, r := range series {
		lines = append(lines, labelText(r.Metric)+" "+string(r.Value)+strings.ReplaceAll(joined(r.Values), "\n", " "))
	}
	if !strings.HasPrefix(form.Get("query"), "sort") || kind != "query" {
		slices.Sort(lines)
	}
	return head + strings.Join(lines, "\n")
}

// compareFeatureLists compares what both servers say about their language.
func compareFeatureLists(t *testing.T, prometheus, shale string) {
	lists := func(base string) map[string]map[string]bool {
		var all map[string]map[string]bool
		if err := api(base).API(context.Background(), http.MethodGet, "features", nil, &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	want, got := lists(prometheus), lists(shale)
	for _, category := range []string{"promql", "promql_functions", "promql_operators"} {
		for name, on := range want[category] {
			if have, ok := got[category][name]; !ok || have != on {
				t.Errorf("%s %s is %t, want %t", category, name, have, on)
			}
		}
	}
}
