package app

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
)

var rewriteLimits = flag.Bool("rewrite-limits", false, "write the table of limits to docs/limits.md")

// limitCase is a limit, what hits it, and what the client is told.
type limitCase struct {
	// hit says how, for the documentation.
	hit string
	// low is refused, and high is not. Both are the section of a tenant.
	low, high string
	send      func(c *limitClient) (status int, text string)
	status    int
	// text is a part of the response, and stands in the documentation; T is the tenant.
	text string
	// metric counts it.
	metric string
}

// limitClient sends as one tenant.
type limitClient struct {
	t      *testing.T
	url    string
	tenant string
	n      int // requests so far, for names that are new
}

func (c *limitClient) request(method, path, contentType string, body io.Reader, header ...string) (int, string) {
	c.t.Helper()
	r, err := http.NewRequest(method, c.url+path, body)
	must(c.t, err)
	r.Header.Set(model.TenantHeader, c.tenant)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	return finish(c.t, resp, err)
}

// points sends Graphite lines with names that no request had before.
func (c *limitClient) points(n int, format string) (int, string) {
	var b strings.Builder
	for i := range n {
		c.n++
		fmt.Fprintf(&b, format+" 1 -1\n", fmt.Sprintf("m%d.n%d", c.n, i))
	}
	return c.request("POST", "/api/v1/write/graphite", "text/plain", strings.NewReader(b.String()))
}

func (c *limitClient) lines(n, bytes int, metadata string) (int, string) {
	var values []string
	for i := range n {
		values = append(values, fmt.Sprintf(`["%d","%s"%s]`, time.Now().UnixNano()+int64(i), strings.Repeat("x", bytes), metadata))
	}
	return c.request("POST", "/loki/api/v1/push", "application/json", strings.NewReader(`{"streams":[{"stream":{"app":"d"},"values":[`+strings.Join(values, ",")+`]}]}`))
}

func (c *limitClient) query(q string, ago time.Duration) (int, string) {
	c.n++ // a response that is kept was not refused when it was made
	now := time.Now()
	return c.request("GET", "/api/v1/query_range?"+url.Values{
		"query": {fmt.Sprint(q, " + ", c.n)}, "start": {fmt.Sprint(now.Add(-ago).Unix())}, "end": {fmt.Sprint(now.Unix())}, "step": {"60"},
	}.Encode(), "", nil)
}

// again repeats a request until it is refused, at most so often.
func again(times int, send func() (int, string)) (status int, text string) {
	for range times {
		if status, text = send(); status >= 300 {
			break
		}
	}
	return status, text
}

// manyBuckets sends a native histogram.
func (c *limitClient) manyBuckets(n int) (int, string) {
	h := &histogram.Histogram{Count: uint64(n), Sum: 1, PositiveSpans: []histogram.Span{{Length: uint32(n)}}, PositiveBuckets: make([]int64, n)}
	h.PositiveBuckets[0] = 1
	req := prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels: []prompb.Label{{Name: "__name__", Value: "h"}}, Histograms: []prompb.Histogram{prompb.FromIntHistogram(time.Now().UnixMilli(), h)},
	}}}
	body, err := req.Marshal()
	must(c.t, err)
	return c.request("POST", "/api/v1/write", "application/x-protobuf", bytes.NewReader(snappy.Encode(nil, body)), "Content-Encoding", "snappy", "X-Prometheus-Remote-Write-Version", "0.1.0")
}

// slowly holds a request open while another one is sent.
func (c *limitClient) slowly() (int, string) {
	body, hold := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		r, err := http.NewRequest("POST", c.url+"/api/v1/write/graphite", body)
		if err == nil {
			r.Header.Set(model.TenantHeader, c.tenant)
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(r); err == nil {
				err = resp.Body.Close()
			}
		}
		_ = body.Close()
		ended <- err
	}()
	_, _ = io.WriteString(hold, "a.b 1 -1\n")
	// The other may come first, and then this one is refused.
	status, text := again(500, func() (int, string) { time.Sleep(time.Millisecond); return c.points(1, "%s") })
	_ = hold.Close()
	must(c.t, <-ended)
	return status, text
}

// limitCases has every limit of a tenant that a response names.
func limitCases() map[string]limitCase {
	const burst = ", limits.tenant-burst: 1s"
	const samples, refused = "shale_discarded_samples_total", "shale_write_refused_requests_total"
	const dropped = samples + "{reason}, shale_write_discarded_samples_total{reason}"
	const droppedLines = "shale_discarded_lines_total{reason}, shale_write_discarded_lines_total{reason}"
	labelled := func(format string) func(*limitClient) (int, string) {
		return func(c *limitClient) (int, string) { return c.points(1, format) }
	}
	line := func(bytes int, metadata string) func(*limitClient) (int, string) {
		return func(c *limitClient) (int, string) { return c.lines(1, bytes, metadata) }
	}
	ask := func(q string, ago time.Duration) func(*limitClient) (int, string) {
		return func(c *limitClient) (int, string) { return c.query(q, ago) }
	}
	return map[string]limitCase{
		"limits.tenant-samples": {"write more samples, histograms and exemplars a second", "limits.tenant-samples: 1" + burst, "limits.tenant-samples: 1000000",
			func(c *limitClient) (int, string) {
				return again(5, func() (int, string) { return c.points(20, "%s") })
			}, 429, "tenant T may write 1 samples/s", samples + "{reason=\"sample_rate\"}"},
		"limits.tenant-lines": {"push more lines a second", "limits.tenant-lines: 1" + burst, "limits.tenant-lines: 1000000",
			func(c *limitClient) (int, string) {
				return again(5, func() (int, string) { return c.lines(20, 1, "") })
			}, 429, "ingestion rate limit exceeded for user T (limit: 1 lines/sec)", "shale_discarded_lines_total{reason=\"line_rate\"}"},
		"limits.tenant-line-bytes": {"push more bytes of lines a second", "limits.tenant-line-bytes: 10" + burst, "limits.tenant-line-bytes: 1GiB",
			func(c *limitClient) (int, string) {
				return again(5, func() (int, string) { return c.lines(1, 5000, "") })
			}, 429, "ingestion rate limit exceeded for user T (limit: 10 bytes/sec)", "shale_discarded_lines_total{reason=\"line_byte_rate\"}"},
		"limits.tenant-burst": {"write in bursts that are longer", "limits.tenant-samples: 10" + burst, "limits.tenant-samples: 10, limits.tenant-burst: 1h",
			func(c *limitClient) (int, string) {
				return again(5, func() (int, string) { return c.points(15, "%s") })
			}, 429, "with a burst of 1s", samples + "{reason=\"sample_rate\"}"},
		"limits.tenant-request-bytes": {"send more bytes of requests a second", "limits.tenant-request-bytes: 10" + burst, "limits.tenant-request-bytes: 1GiB",
			func(c *limitClient) (int, string) {
				return again(5, func() (int, string) { return c.points(50, "%s") })
			}, 429, "tenant T may send 10 bytes/s of requests", refused + "{limit}"},
		"limits.tenant-requests": {"send more write requests at one time, such as slow ones", "limits.tenant-requests: 1", "limits.tenant-requests: 100",
			(*limitClient).slowly, 429, "tenant T has 1 write request in progress, the most that it may have", refused + "{limit}"},
		"limits.tenant-series": {"create more series", "limits.tenant-series: 5", "limits.tenant-series: 1000000",
			func(c *limitClient) (int, string) {
				return again(3, func() (int, string) { return c.points(10, "%s") })
			}, 429, "active series and may have 5", samples + "{reason=\"active_series\"}"},
		"limits.tenant-new-series": {"create series faster, for a minute", "limits.tenant-new-series: 1", "limits.tenant-new-series: 1000000",
			func(c *limitClient) (int, string) {
				return again(3, func() (int, string) { return c.points(100, "%s") })
			}, 429, "tenant T may create 1 per second", samples + "{reason=\"new_series_rate\"}"},
		"limits.metric-series": {"create more series of one metric", "limits.metric-series: 5", "limits.metric-series: 1000000",
			func(c *limitClient) (int, string) {
				return again(3, func() (int, string) { return c.points(10, "m;i=%s") })
			}, 429, "metric m of tenant T has", samples + "{reason=\"metric_active_series\"}"},
		"limits.label-set-series": {"create more series that a selector of the list matches", "limits.label-set-series: [{match: '{team=\"a\"}', series: 5}]", "limits.label-set-series: [{match: '{team=\"a\"}', series: 1000000}]",
			func(c *limitClient) (int, string) {
				return again(3, func() (int, string) { return c.points(10, "%s;team=a") })
			}, 429, `{team="a"} of tenant T matches`, samples + "{reason=\"label_set_active_series\"}"},
		"limits.labels": {"send a series with more labels", "limits.labels: 2", "limits.labels: 9", labelled("%s;a=1;b=2"), 400, "the series has 3 labels, limits.labels is 2", dropped},
		"limits.label-name-bytes": {"send a longer label name", "limits.label-name-bytes: 16", "limits.label-name-bytes: 64", labelled("%s;abcdefghijklmnopqrst=1"), 400,
			"a label name has 20 bytes, limits.label-name-bytes is 16", dropped},
		"limits.label-value-bytes": {"send a longer label value", "limits.label-value-bytes: 16", "limits.label-value-bytes: 64", labelled("%s;a=abcdefghijklmnopqrst"), 400,
			`the value of label "a" has 20 bytes, limits.label-value-bytes is 16`, dropped},
		"limits.histogram-buckets": {"send a native histogram with more buckets on a side", "limits.histogram-buckets: 2", "limits.histogram-buckets: 9", func(c *limitClient) (int, string) { return c.manyBuckets(4) }, 400,
			"limits.histogram-buckets", dropped},
		"limits.body-bytes": {"send a larger body", "limits.body-bytes: 1KiB", "limits.body-bytes: 1MiB", func(c *limitClient) (int, string) { return c.points(200, "%s") }, 413,
			"limits.body-bytes", refused + "{limit}"},
		"limits.decoded-bytes": {"send a body that is larger when it is decompressed", "limits.body-bytes: 2KiB, limits.decoded-bytes: 2KiB", "limits.body-bytes: 2KiB, limits.decoded-bytes: 1MiB",
			func(c *limitClient) (int, string) {
				var b bytes.Buffer
				w := gzip.NewWriter(&b)
				_, err := io.WriteString(w, strings.Repeat("a.b 1 -1\n", 1000))
				must(c.t, errors.Join(err, w.Close()))
				return c.request("POST", "/api/v1/write/graphite", "text/plain", &b, "Content-Encoding", "gzip")
			}, 413, "limits.decoded-bytes", refused + "{limit}"},
		"limits.line-bytes":            {"push a longer line", "limits.line-bytes: 1KiB", "limits.line-bytes: 256KiB", line(2000, ""), 400, "max entry size", droppedLines},
		"limits.line-metadata-bytes":   {"push a line with larger structured metadata", "limits.line-metadata-bytes: 64", "limits.line-metadata-bytes: 1KiB", line(1, `,{"k":"`+strings.Repeat("v", 200)+`"}`), 400, "structured metadata", droppedLines},
		"limits.line-metadata-entries": {"push a line with more entries of structured metadata", "limits.line-metadata-entries: 1", "limits.line-metadata-entries: 10", line(1, `,{"a":"1","b":"2","c":"3"}`), 400, "structured metadata", droppedLines},
		"max-age":                      {"send older samples and lines", "max-age: 1h", "max-age: 7d", func(c *limitClient) (int, string) { return c.at(-2 * time.Hour) }, 400, "max-age (1h0m0s)", dropped},
		"max-future":                   {"send samples and lines from further ahead", "max-future: 1m", "max-future: 2h", func(c *limitClient) (int, string) { return c.at(time.Hour) }, 400, "max-future (1m0s)", dropped},
		"query.max-range":              {"ask for rows of more time", "query.max-range: 1h", "query.max-range: 7d", ask("present", 5*time.Hour), 422, "a query of tenant T may ask for 1h (query.max-range)", "shale_api_prom_requests_total{code}"},
		"query.max-series":             {"select more series", "query.max-series: 1", "query.max-series: 100", ask(`count({__name__=~"present.*"})`, time.Hour), 422, "more than 1 series (query.max-series)", "shale_api_prom_requests_total{code}"},
		"query.max-samples":            {"read or hold more samples", "query.max-samples: 1", "query.max-samples: 1000000", ask("count_over_time(present[1h])", time.Hour), 422, "more than 1 samples (query.max-samples)", "shale_api_prom_requests_total{code}"},
		"query.max-bytes":              {"need more memory", "query.max-bytes: 1KiB", "query.max-bytes: 50%", ask("present", time.Hour), 422, "query.max-bytes", "shale_api_prom_requests_total{code}"},
		"query.tenant-concurrent":      {"send more queries at one time", "query.tenant-concurrent: 1", "query.tenant-concurrent: 10000", (*limitClient).manyQueries, 429, "tenant T has", "shale_api_prom_requests_total{code}"},
	}
}

// at sends a line of a time from now.
func (c *limitClient) at(from time.Duration) (int, string) {
	return c.request("POST", "/api/v1/write/graphite", "text/plain", strings.NewReader(fmt.Sprintf("a.b 1 %d\n", time.Now().Add(from).Unix())))
}

// manyQueries sends queries at one time until one is refused, or all are answered often.
func (c *limitClient) manyQueries() (int, string) {
	var mu sync.Mutex
	status, text := 200, ""
	var done sync.WaitGroup
	for g := range 8 {
		done.Go(func() {
			for i := range 30 {
				mu.Lock()
				over := status >= 300
				mu.Unlock()
				if over {
					return
				}
				q := url.Values{"query": {fmt.Sprintf("sum(sum_over_time(present[1h:1s])) + %d", g*1000+i)}}
				r, err := http.NewRequest("GET", c.url+"/api/v1/query?"+q.Encode(), nil)
				if err != nil {
					c.t.Error(err)
					return
				}
				r.Header.Set(model.TenantHeader, c.tenant)
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					c.t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				if err = errors.Join(err, resp.Body.Close()); err != nil {
					c.t.Error(err)
				}
				if resp.StatusCode >= 300 {
					mu.Lock()
					status, text = resp.StatusCode, string(body)
					mu.Unlock()
				}
			}
		})
	}
	done.Wait()
	return status, text
}

// shownElsewhere are the limits that have no row from the table of this test, and where they are shown.
func shownElsewhere() map[string]string {
	return map[string]string{
		"limits.connections": "limit_test.go", "limits.inflight-bytes": "accept_test.go and write/path_test.go", "limits.tenants": "engine_test.go",
		"limits.new-series": "store/head/creation_test.go", "limits.deletions": "deletion_test.go", "limits.deletion-cancel-period": "no limit of requests",
		"limits.metadata-bytes": "store/head/metadata", "limits.metadata-families": "store/head/metadata", "limits.metadata-tenant-bytes": "store/head/metadata",
		"query.timeout": "api/prom", "query.max-concurrent": "api/gate", "query.max-lines": "api/loki", "query.max-result-series": "api/loki", "query.enable-feature": "no limit", "query.rollups": "no limit",
		"query.max-bucket-bytes": "bill", "query.max-bucket-requests": "bill", "query.all-bucket-bytes": "bill", "query.all-bucket-requests": "bill",
		"query.tenant-bucket-bytes": "bill", "query.tenant-bucket-requests": "bill", "retention": "retention_test.go", "retention-rules": "retention_test.go",
	}
}

// fates are what senders do with a refused write, as TestFates of test/e2e finds.
func fates(limit string, status int) (prometheus, otel string) {
	switch {
	case strings.HasPrefix(limit, "query."):
		return "", ""
	case status == http.StatusTooManyRequests:
		return "drops it, or repeats it with `retry_on_http_429`", "repeats it"
	}
	return "drops it", "drops it"
}

// TestEveryLimitHasARow: each setting that is a limit is hit by TestEveryLimitAnswers or named as shown
// elsewhere, and docs/limits.md has its row.
func TestEveryLimitHasARow(t *testing.T) {
	cases, elsewhere := limitCases(), shownElsewhere()
	defaults := map[string]string{}
	ofTenants := config.TenantSettings()
	for _, s := range config.Settings() {
		defaults[s.Name] = s.Default
		if !strings.HasPrefix(s.Name, "limits.") && !strings.HasPrefix(s.Name, "query.") && !slices.Contains(ofTenants, s.Name) {
			continue
		}
		_, hit := cases[s.Name]
		if _, other := elsewhere[s.Name]; hit == other {
			t.Errorf("%s: must be hit by TestEveryLimitAnswers, or be shown elsewhere", s.Name)
		}
	}
	var table strings.Builder
	table.WriteString("| limit of a tenant | default | how to hit it | answer | with the text | counted by | Prometheus | OpenTelemetry SDK, Promtail |\n|---|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		standard, known := defaults[name]
		if !known {
			t.Errorf("%s is no setting", name)
		}
		if standard == "0" || standard == "" {
			standard = "none of its own"
		}
		var counted []string
		for _, m := range strings.Split(c.metric, ", ") {
			counted = append(counted, "`"+m+"`")
		}
		prometheus, otel := fates(name, c.status)
		fmt.Fprintf(&table, "| `%s` | %s | %s | %d | `%s` | %s | %s | %s |\n", name, standard, c.hit, c.status, c.text, strings.Join(counted, ", "), prometheus, otel)
	}
	path := filepath.Join("..", "..", "docs", "limits.md")
	doc, err := os.ReadFile(path)
	must(t, err)
	const begin, end = "<!-- the table of limits: go test ./internal/app -run TestEveryLimitHasARow -rewrite-limits -->\n", "<!-- end -->\n"
	head, rest, ok := strings.Cut(string(doc), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/limits.md has no place for the table")
	}
	want := head + begin + table.String() + end + tail
	if *rewriteLimits {
		must(t, os.WriteFile(path, []byte(want), 0o644))
	} else if want != string(doc) {
		t.Error("the table in docs/limits.md is not the one of this test: run it with -rewrite-limits")
	}
}

// TestEveryLimitAnswers hits each limit over HTTP on a whole server, then changes all of them in the file of
// tenants while others write, and sees the new ones in force. The others lose nothing meanwhile.
func TestEveryLimitAnswers(t *testing.T) {
	cases := limitCases()
	file := filepath.Join(t.TempDir(), "tenants.yaml")
	tenant := func(limit string) string { return strings.ReplaceAll(limit, ".", "-") }
	put := func(section func(limitCase) string) {
		var b strings.Builder
		b.WriteString("tenants:\n")
		for name, c := range cases {
			fmt.Fprintf(&b, "  %s: {%s}\n", tenant(name), section(c))
		}
		c := config.Default()
		c.MemoryBytes = 512 << 20
		_, err := config.ParseTenants(file, []byte(b.String()), &c)
		must(t, errors.Join(err, os.WriteFile(file, []byte(b.String()), 0o600)))
	}
	put(func(c limitCase) string { return c.low })
	s := startServerWith(t, t.TempDir(), func(c *config.Config) { c.TenantsFile = file })
	defer func() { must(t, s.stop()) }()

	stop := make(chan struct{})
	var load sync.WaitGroup
	for g := range 2 {
		load.Go(func() {
			c := &limitClient{t: t, url: s.url, tenant: fmt.Sprint("other-", g)}
			for sent := 0; ; sent++ {
				select {
				case <-stop:
					return
				default:
				}
				r, err := http.NewRequest("POST", c.url+"/api/v1/write/graphite", strings.NewReader(fmt.Sprintf("load.n%d 1 -1\n", sent%500)))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set(model.TenantHeader, c.tenant)
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				if _ = resp.Body.Close(); resp.StatusCode >= 300 {
					t.Errorf("another tenant got %d", resp.StatusCode)
					return
				}
			}
		})
	}
	defer func() {
		close(stop)
		load.Wait()
	}()
	clients := map[string]*limitClient{}
	for name, c := range cases {
		client := &limitClient{t: t, url: s.url, tenant: tenant(name)}
		clients[name] = client
		if strings.HasPrefix(name, "query.") {
			if status, text := client.request("POST", "/api/v1/write/graphite", "text/plain", strings.NewReader("present 1 -1\npresent 2 -1\npresent2 1 -1\npresent;a=b 1 -1\n")); status >= 300 {
				t.Fatalf("%s: %d %s", name, status, text)
			}
		}
		status, text := c.send(client)
		if want := strings.ReplaceAll(c.text, "tenant T ", "tenant "+client.tenant+" "); status != c.status || !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), strings.ReplaceAll(want, "user T ", "user "+client.tenant+" ")) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	_, counters := s.get(t, "/metrics")
	for name, c := range cases {
		for _, m := range strings.Split(c.metric, ", ") {
			series, labels, _ := strings.Cut(strings.TrimSuffix(m, "}"), "{")
			if labels != "" && !regexp.MustCompile("(?m)^"+series+`\{.*`+labels+".*\\} [1-9]").MatchString(counters) {
				t.Errorf("%s: the metric %s is not there", name, m)
			}
		}
	}
	put(func(c limitCase) string { return c.high })
	for name, c := range cases {
		for begin := time.Now(); ; time.Sleep(200 * time.Millisecond) {
			status, text := c.send(clients[name])
			if status < 300 {
				break
			}
			if time.Since(begin) > 2*time.Minute {
				t.Fatalf("%s with the new limit: %d %s", name, status, text)
			}
		}
	}
}
