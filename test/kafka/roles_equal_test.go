//go:build e2e

package kafka

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/auth/certstest"
	"github.com/shaledb/shale/test/ports"
)

// installation has two processes of each role on one broker and a bucket in a folder.
type installation struct {
	*cluster
	gateways, ingesters, queries []*process
	graphite                     string // where the second gateway takes lines
}

// install makes a topic of 4 partitions, and starts the processes, those that query with further flags.
func install(t *testing.T, broker *Broker, topic string, queries ...string) *installation {
	t.Helper()
	in := &installation{cluster: newCluster(t, broker, topic, 4)}
	addrs, err := ports.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	in.graphite = addrs[0]
	in.gateways = []*process{
		in.process(t, "gateway", "--gateways", "2"), in.process(t, "gateway", "--gateways", "2", "--graphite-listen", in.graphite),
	}
	// Ingesters let only query processes in.
	const token = "shale_peer_of_the_test"
	dir := t.TempDir()
	tokens := certstest.File(t, dir, "tokens.yaml", fmt.Appendf(nil, "tokens: [{name: query, sha256: %s, tenants: [none], rights: [peer]}]\n", auth.Sum(token)))
	servers := certstest.New(t, "servers")
	cert, key := servers.Server(t, "ingester").Write(t, dir, "ingester")
	guarded := []string{"--auth.tokens", tokens, "--tls.cert-file", cert, "--tls.key-file", key}
	in.ingesters = []*process{
		in.process(t, "ingest", append(guarded, "--kafka.partitions", "0,3", "--ship-every", "5s")...), in.process(t, "ingest", append(guarded, "--kafka.partitions", "1-2", "--ship-every", "1h")...),
	}
	for _, p := range in.ingesters {
		p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: servers.Pool()}}}
	}
	asks := []string{
		"--ingesters", in.ingesters[0].addr + "," + in.ingesters[1].addr, "--ingesters-token-file", certstest.File(t, dir, "token", []byte(token)),
		"--ingesters-tls", "on", "--ingesters-tls-ca-file", certstest.File(t, dir, "ca.pem", servers.PEM()),
	}
	asks = append(asks, queries...)
	in.queries = []*process{in.process(t, "query", asks...), in.process(t, "query,compact", asks...)}
	for _, p := range slices.Concat(in.gateways, in.ingesters, in.queries) {
		p.start()
	}
	return in
}

// sameSeed returns a new bucket with the seed of another one, so that series come in the same order.
func sameSeed(t *testing.T, bucket string) string {
	t.Helper()
	seed, err := os.ReadFile(filepath.Join(bucket, "seed"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "seed"), seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// remoteWrite is a request of remote write 1.0: a few series with samples a second apart.
func remoteWrite(begin time.Time, series, samples int) []byte {
	var w prompb.WriteRequest
	for i := range series {
		s := prompb.TimeSeries{Labels: []prompb.Label{
			{Name: "__name__", Value: "requests_total"}, {Name: "instance", Value: fmt.Sprint("host-", i)}, {Name: "job", Value: "probe"},
		}}
		for k := range samples {
			s.Samples = append(s.Samples, prompb.Sample{Timestamp: begin.Add(time.Duration(k) * time.Second).UnixMilli(), Value: float64(i*1000 + k*k)})
		}
		w.Timeseries = append(w.Timeseries, s)
	}
	w.Metadata = []prompb.MetricMetadata{{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "requests_total", Help: "Requests of the probe.", Unit: "requests"}}
	data, err := w.Marshal()
	if err != nil {
		panic(err)
	}
	return snappy.Encode(nil, data)
}

// lokiPush is a push of a few streams with lines a second apart.
func lokiPush(begin time.Time, streams, lines int) []byte {
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][2]string       `json:"values"`
	}
	var all struct {
		Streams []stream `json:"streams"`
	}
	for i := range streams {
		s := stream{Stream: map[string]string{"app": "probe", "pod": fmt.Sprint("pod-", i)}}
		for k := range lines {
			at := begin.Add(time.Duration(k)*time.Second + time.Duration(i))
			s.Values = append(s.Values, [2]string{fmt.Sprint(at.UnixNano()), fmt.Sprintf("level=info msg=%q n=%d pod=%d", "a line of the probe", k, i)})
		}
		all.Streams = append(all.Streams, s)
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return data
}

func graphiteLines(begin time.Time, paths, points int) string {
	var b strings.Builder
	for i := range paths {
		for k := range points {
			fmt.Fprintf(&b, "servers.host-%d.cpu %d %d\n", i, i+k, begin.Add(time.Duration(k)*time.Minute).Unix())
		}
	}
	return b.String()
}

func otlpLogs(begin time.Time, n int) []byte {
	var records []string
	for k := range n {
		records = append(records, fmt.Sprintf(`{"timeUnixNano":"%d","severityText":"WARN","body":{"stringValue":"record %d"},"attributes":[{"key":"n","value":{"intValue":"%d"}}]}`,
			begin.Add(time.Duration(k)*time.Second).UnixNano(), k, k))
	}
	return fmt.Appendf(nil, `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"checkout"}}]},"scopeLogs":[{"logRecords":[%s]}]}]}`,
		strings.Join(records, ","))
}

// send sends the same data of four protocols to a process, for a tenant.
func send(t *testing.T, to *process, tenant string, begin time.Time, n int) {
	t.Helper()
	for _, x := range []struct {
		path, kind string
		body       []byte
	}{
		{"/api/v1/write", "application/x-protobuf", remoteWrite(begin, 20, n)},
		{"/loki/api/v1/push", "application/json", lokiPush(begin, 12, n)},
		{"/otlp/v1/logs", "application/json", otlpLogs(begin, n)},
		{"/api/v1/write/graphite", "text/plain", []byte(graphiteLines(begin, 15, n))},
	} {
		if err := to.post(x.path, x.kind, tenant, x.body); err != nil {
			t.Fatal(err)
		}
	}
}

// questions are queries of all languages over a range of time.
func questions(begin, end time.Time) (paths []string) {
	form := func(path string, kv ...string) {
		v := url.Values{}
		for i := 0; i < len(kv); i += 2 {
			v.Add(kv[i], kv[i+1])
		}
		paths = append(paths, path+"?"+v.Encode())
	}
	from, to := fmt.Sprint(begin.Unix()), fmt.Sprint(end.Unix())
	nanos := []string{"start", fmt.Sprint(begin.UnixNano()), "end", fmt.Sprint(end.UnixNano())}
	for _, q := range []string{
		"requests_total", "sum by (job) (rate(requests_total[30s]))", "topk(3, requests_total)", `count({instance=~"host-1.*"})`,
		"histogram_quantile(0.5, requests_total)", `absent(requests_total{instance="host-99"})`, "max_over_time(requests_total[1m]) - min_over_time(requests_total[1m])",
	} {
		form("/api/v1/query", "query", q, "time", fmt.Sprint(begin.Add(45*time.Second).Unix()))
		form("/api/v1/query_range", "query", q, "start", from, "end", to, "step", "7")
	}
	form("/api/v1/metadata")
	form("/api/v1/metadata", "metric", "requests_total")
	form("/api/v1/series", "match[]", "{job=\"probe\"}", "start", from, "end", to)
	form("/api/v1/labels", "start", from, "end", to)
	form("/api/v1/label/instance/values", "start", from, "end", to)
	for _, q := range []string{
		`{app="probe"}`, `{app="probe"} |= "n=7 " | logfmt | pod > 3`, `{service_name="checkout"}`, `sum by (pod) (count_over_time({app="probe"}[20s]))`,
		`sum(rate({app="probe"} | logfmt | unwrap n [30s]))`, `{app="probe"} | line_format "{{.pod}}"`, `topk(2, bytes_over_time({app="probe"}[1m]))`,
	} {
		form("/loki/api/v1/query_range", append([]string{"query", q, "limit", "2000", "step", "10"}, nanos...)...)
	}
	for _, path := range []string{"/loki/api/v1/labels", "/loki/api/v1/label/pod/values", "/loki/api/v1/index/stats", "/loki/api/v1/index/volume"} {
		form(path, append([]string{"query", `{app="probe"}`}, nanos...)...)
	}
	form("/loki/api/v1/series", append([]string{"match[]", `{app="probe"}`}, nanos...)...)
	for _, q := range []string{"servers.*.cpu", "sumSeries(servers.*.cpu)", "movingAverage(servers.host-1.cpu,3)", "aliasByNode(highestMax(servers.*.cpu,3),1)"} {
		form("/render", "target", q, "from", from, "until", fmt.Sprint(begin.Add(40*time.Minute).Unix()), "format", "json")
	}
	form("/metrics/find", "query", "servers.*")
	form("/metrics/find", "query", "servers.host-1*.cpu")
	return paths
}

// comparable is an answer without what says how it was computed, and in how many pieces rows are stored.
func comparable(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	if m, ok := v.(map[string]any); ok {
		delete(m, "chunks")
		if data, ok := m["data"].(map[string]any); ok {
			delete(data, "stats")
		}
	}
	return v
}

// The same data goes to two gateways in turn and to one process with the role all. Both processes with the
// role query answer as that one does: with rows that only ingesters have, with everything in the bucket and
// no ingester, and with some of both. Without ingesters they refuse rows that only Kafka has.
func testEqualRoles(t *testing.T, broker *Broker) {
	in := install(t, broker, "of-equal-roles")
	addrs, err := ports.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	all := newProcess(t, "--bucket", sameSeed(t, in.bucket), "--graphite-listen", addrs[0])
	all.start()
	const n = 60
	begin := time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	both := func(i int, at time.Time, n int) {
		t.Helper()
		send(t, in.gateways[i%2], "team-a", at, n)
		send(t, all, "team-a", at, n)
	}
	both(0, begin, n/2)
	both(1, begin.Add(n/2*time.Second), n/2)
	in.ask(t, "with ingesters", all, begin, begin.Add(n*time.Second), "team-a")

	for _, p := range in.ingesters {
		p.stop() // it ships everything
	}
	in.ask(t, "in the bucket", all, begin, begin.Add(n*time.Second), "team-a")
	both(0, begin.Add(n*time.Second), n)
	for i, q := range in.queries {
		waitFor(t, "a refusal", func() bool {
			status, text := q.get("/api/v1/query?query=up", "X-Scope-OrgID", "team-a")
			return status == http.StatusServiceUnavailable && strings.Contains(text, "of journal p000") && strings.Contains(text, "of epoch 1 are neither in the bucket nor") && strings.Contains(text, in.ingesters[i].addr)
		})
	}

	for _, p := range in.ingesters {
		p.start()
	}
	for _, to := range []string{in.graphite, addrs[0]} {
		c, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(c, graphiteLines(begin.Add(10*time.Minute), 15, 5)); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	in.ask(t, "some of both", all, begin, begin.Add(2*n*time.Second), "team-a")
	in.ask(t, "another tenant", all, begin, begin.Add(2*n*time.Second), "anonymous")
	refusals(t, in)
	in.strong(t)
}

// strong asks right after each acknowledgement, at both processes in turn.
func (in *installation) strong(t *testing.T) {
	t.Helper()
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	for k := range int64(40) {
		if err := one(in.gateways[k%2], 7, k, begin.Add(time.Duration(k)*time.Second)); err != nil {
			t.Fatal(err)
		}
		v := url.Values{"query": {`count_over_time(sent{writer="7"}[1h])`}, "time": {fmt.Sprint(begin.Unix() + k)}}
		status, text := in.queries[k%2].get("/api/v1/query?"+v.Encode(), "X-Read-Consistency", "strong")
		if status != http.StatusOK || !strings.Contains(text, fmt.Sprintf(`"%d"]`, k+1)) {
			t.Fatalf("sample %d: status %d: %s", k, status, text)
		}
	}
}

// ask asks the questions about a tenant, until all answers are those of the role all: the last records may
// not have been read from Kafka.
func (in *installation) ask(t *testing.T, stage string, all *process, begin, end time.Time, tenant string) {
	t.Helper()
	asked, empty := 0, 0
	for _, path := range questions(begin, end) {
		for i, q := range in.queries {
			for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
				status, want := all.get(path, "X-Scope-OrgID", tenant)
				if status != http.StatusOK {
					t.Fatalf("%s: the role all: %s: status %d: %s", stage, path, status, want)
				}
				status, got := q.get(path, "X-Scope-OrgID", tenant)
				if status == http.StatusOK && cmp.Equal(comparable(want), comparable(got)) {
					if asked++; len(want) < 80 {
						empty++
					}
					break
				}
				if time.Since(began) > patience {
					t.Fatalf("%s: query %d: %s: status %d: %s", stage, i, path, status, cmp.Diff(comparable(want), comparable(got)))
				}
			}
		}
	}
	t.Logf("%s: %d equal answers, of which %d are almost empty", stage, asked, empty)
	if empty > asked/4 && tenant == "team-a" {
		t.Errorf("%s: too many answers are almost empty", stage)
	}
}

// refusals asks each role for what it does not do.
func refusals(t *testing.T, in *installation) {
	t.Helper()
	for _, x := range []struct {
		p          *process
		path, want string
		status     int
	}{
		{in.gateways[0], "/api/v1/query?query=up", "if any role does, it is query", 501},
		{in.queries[0], "/api/v1/write", "if any role does, it is gateway", 503},
		{in.queries[0], "/api/v1/cardinality/active", "does not know which series are active", 501},
	} {
		if status, text := x.p.get(x.path); status != x.status || !strings.Contains(text, x.want) {
			t.Errorf("%s: status %d: %s", x.path, status, text)
		}
	}
}
