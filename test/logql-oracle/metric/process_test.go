package metric

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
)

var (
	binary    = flag.String("loki", "", "program of Loki, to compare the oracle with, over HTTP")
	processed = flag.Int("process-queries", 2000, "queries for that program")
)

// TestProcess compares the oracle with a whole Loki over HTTP, which proves that the oracle is faithful.
func TestProcess(t *testing.T) {
	if *binary == "" {
		t.Skip("needs -loki")
	}
	p := startLoki(t)
	data := logqltest.Datasets(min(20, *sets), 120, *seed)
	for _, d := range data {
		p.push(t, d)
	}
	all := ask(t, data, *processed)
	same, bad := 0, 0
	for i := range all {
		a := &all[i]
		got := p.query(t, a.data.Name, &a.query)
		if d := diff(a, got); d == "" || known(a, got) != "" {
			same++
		} else if bad++; bad <= *show {
			t.Error(describe(a, got))
		}
	}
	t.Logf("%d the same, %d not", same, bad)
}

// process is a running Loki. Its querier finds only recent lines in memory, so all times are later by shift.
type process struct {
	url   string
	shift time.Duration
}

const config = `
auth_enabled: true
server: {http_listen_address: 127.0.0.1, http_listen_port: %d, grpc_listen_address: 127.0.0.1, grpc_listen_port: %d, log_level: error}
common:
  instance_addr: 127.0.0.1
  path_prefix: %[3]s
  storage: {filesystem: {chunks_directory: %[3]s/chunks, rules_directory: %[3]s/rules}}
  replication_factor: 1
  ring: {kvstore: {store: inmemory}}
schema_config:
  configs: [{from: 2020-10-24, store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}]
query_range: {parallelise_shardable_queries: false, max_retries: 1}
querier: {query_ingesters_within: 0}
limits_config:
  {discover_log_levels: false, discover_service_name: [], reject_old_samples: false, allow_structured_metadata: true, max_query_length: 0,
   max_query_series: 100000, split_queries_by_interval: 0, split_instant_metric_queries_by_interval: 0, query_timeout: 1m,
   ingestion_rate_mb: 100, ingestion_burst_size_mb: 100}
analytics: {reporting_enabled: false}
`

func startLoki(t *testing.T) *process {
	dir := t.TempDir()
	file := filepath.Join(dir, "loki.yaml")
	port := freePort(t)
	if err := os.WriteFile(file, fmt.Appendf(nil, config, port, freePort(t), dir), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(*binary, "-config.file="+file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p := &process{fmt.Sprintf("http://127.0.0.1:%d", port), (time.Since(time.Unix(0, logqltest.Begin)) - 45*time.Minute).Truncate(time.Second)}
	for range 300 {
		if r, err := http.Get(p.url + "/ready"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return p
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatal("Loki is not ready after a minute")
	return nil
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func (p *process) do(t *testing.T, tenant, method, path string, body []byte) (int, []byte) {
	r, err := http.NewRequest(method, p.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Scope-OrgID", tenant)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

func (p *process) push(t *testing.T, d *logqltest.Dataset) {
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][]any           `json:"values"`
	}
	var body struct {
		Streams []stream `json:"streams"`
	}
	for _, s := range d.Streams {
		x := stream{Stream: object(s.Labels)}
		for _, l := range s.Lines {
			x.Values = append(x.Values, []any{p.stamp(l.Time), l.Text, object(l.Metadata)})
		}
		body.Streams = append(body.Streams, x)
	}
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if code, text := p.do(t, d.Name, "POST", "/loki/api/v1/push", b); code != http.StatusNoContent {
		t.Fatalf("%s: %d %s", d.Name, code, text)
	}
}

// stamp returns a time as the API has it.
func (p *process) stamp(t int64) string { return strconv.FormatInt(t+int64(p.shift), 10) }

func object(pairs []string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

func (p *process) query(t *testing.T, tenant string, q *logqltest.Query) *logqltest.Result {
	v := url.Values{"query": {strings.ReplaceAll(q.Text, "approx_topk", "topk")}, "limit": {strconv.Itoa(max(q.Limit, 100))}}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	v.Set("direction", map[bool]string{false: "backward", true: "forward"}[q.Forward])
	path := "/loki/api/v1/query_range?"
	if q.Instant() && q.Limit == 0 {
		path = "/loki/api/v1/query?"
		v.Set("time", p.stamp(q.Start))
	} else {
		v.Set("start", p.stamp(q.Start))
		v.Set("end", p.stamp(q.End))
		if q.Step > 0 {
			v.Set("step", strconv.FormatFloat(time.Duration(q.Step).Seconds(), 'f', -1, 64))
		}
	}
	code, body := p.do(t, tenant, "GET", path+v.Encode(), nil)
	if code != http.StatusOK {
		return &logqltest.Result{Error: string(body)}
	}
	r, err := decode(body)
	if err != nil {
		t.Fatalf("%s: %v: %s", q.Text, err, body)
	}
	for i := range r.Series {
		for j := range r.Series[i].Points {
			r.Series[i].Points[j].Time -= p.shift.Milliseconds()
		}
		for j := range r.Series[i].Lines {
			r.Series[i].Lines[j].Time -= int64(p.shift)
		}
	}
	return r
}

// decode reads the JSON of a result.
func decode(body []byte) (*logqltest.Result, error) {
	var in struct {
		Data struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	r := &logqltest.Result{Type: in.Data.ResultType}
	if r.Type == logqltest.Scalar {
		p, err := point(in.Data.Result)
		r.Series = []logqltest.Series{{Points: []logqltest.Point{p}}}
		return r, err
	}
	var series []struct {
		Stream, Metric map[string]string
		Value          json.RawMessage
		Values         []json.RawMessage
	}
	if err := json.Unmarshal(in.Data.Result, &series); err != nil {
		return nil, err
	}
	for _, s := range series {
		var out logqltest.Series
		for _, labels := range []map[string]string{s.Metric, s.Stream} {
			for _, name := range slices.Sorted(maps.Keys(labels)) {
				out.Labels = append(out.Labels, name, labels[name])
			}
		}
		if s.Value != nil {
			s.Values = append(s.Values, s.Value)
		}
		for _, v := range s.Values {
			if r.Type == logqltest.Streams {
				var pair []string
				if err := json.Unmarshal(v, &pair); err != nil {
					return nil, err
				}
				at, err := strconv.ParseInt(pair[0], 10, 64)
				if err != nil {
					return nil, err
				}
				out.Lines = append(out.Lines, logqltest.Entry{Time: at, Text: pair[1]})
				continue
			}
			p, err := point(v)
			if err != nil {
				return nil, err
			}
			out.Points = append(out.Points, p)
		}
		r.Series = append(r.Series, out)
	}
	return r, nil
}

func point(b json.RawMessage) (p logqltest.Point, err error) {
	var pair [2]any
	if err := json.Unmarshal(b, &pair); err != nil {
		return p, err
	}
	at, ok := pair[0].(float64)
	text, also := pair[1].(string)
	if !ok || !also {
		return p, fmt.Errorf("expected a time and a text, got %s", b)
	}
	p.Time = int64(at*1000 + 0.5)
	p.Value, err = strconv.ParseFloat(text, 64)
	return p, err
}
