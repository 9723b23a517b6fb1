//go:build e2e

package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/test/ports"
)

// process is a process of shale.
type process struct {
	t     *testing.T
	addr  string
	dir   string // its data folder
	args  []string
	log   *os.File
	cmd   *exec.Cmd
	ended chan error
	// client asks over TLS; nil: the process speaks none.
	client *http.Client
}

// newProcess describes a process with the flags of its role. It does not run yet.
func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	addrs, err := ports.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, addr: addrs[0], dir: filepath.Join(t.TempDir(), "data")}
	if p.log, err = os.Create(filepath.Join(t.TempDir(), "log")); err != nil {
		t.Fatal(err)
	}
	p.args = append([]string{"serve", "--http-listen", p.addr, "--data-dir", p.dir, "--memory", "256MiB", "--graphite-listen=", "--graphite-pickle-listen="}, args...)
	t.Cleanup(func() {
		if p.cmd != nil {
			p.kill()
		}
		p.log.Close()
		if text, err := os.ReadFile(p.log.Name()); t.Failed() && err == nil {
			t.Logf("the log of %v ends with:\n%s", args, text[max(0, len(text)-4000):])
		}
	})
	return p
}

// start starts the process, and waits until it is ready.
func (p *process) start() {
	p.t.Helper()
	p.launch()
	p.waitFor("a process that is ready", func(status int, _ string) bool { return status == http.StatusOK })
}

// launch starts the process.
func (p *process) launch() {
	p.t.Helper()
	p.cmd = exec.Command(buildShale(p.t), p.args...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	cmd, ended := p.cmd, make(chan error, 1)
	p.ended = ended
	go func() { ended <- cmd.Wait() }()
}

// waitFor waits until /ready answers as it should.
func (p *process) waitFor(what string, done func(status int, body string) bool) {
	p.t.Helper()
	waitFor(p.t, what, func() bool {
		select {
		case err := <-p.ended:
			p.ended <- err
			p.t.Fatalf("the process ended: %v", err)
		default:
		}
		return done(p.get("/ready"))
	})
}

// kill ends the process as a power cut does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.cmd = nil
}

// stop ends the process as an operator does.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := <-p.ended; err != nil {
		p.t.Errorf("the process ended with %v", err)
	}
	p.cmd = nil
}

// get asks for a path, with pairs of a header and its value. Status 0: there was no answer.
func (p *process) get(path string, headers ...string) (status int, body string) {
	scheme, client := "http://", &http.Client{Timeout: patience}
	if p.client != nil {
		scheme, client = "https://", p.client
	}
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, scheme+p.addr+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// push sends a body until it is acknowledged.
func (p *process) push(path, kind string, body []byte) {
	p.t.Helper()
	waitFor(p.t, "an acknowledgement", func() bool {
		resp, err := http.Post("http://"+p.addr+path, kind, bytes.NewReader(body))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode/100 == 4 {
			p.t.Fatalf("%s: status %d: %s", path, resp.StatusCode, text)
		}
		return resp.StatusCode/100 == 2
	})
}

// post sends a body once, for a tenant, and returns an error unless it is accepted.
func (p *process) post(path, kind, tenant string, body []byte) error {
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, "http://"+p.addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("X-Scope-OrgID", tenant)
	resp, err := (&http.Client{Timeout: time.Minute}).Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: status %d: %s", path, resp.StatusCode, strings.TrimSpace(string(text)))
	}
	return err
}

// cluster is a topic, a bucket, and the flags of all processes on them.
type cluster struct {
	bucket string
	flags  []string
}

// newCluster makes a topic by the command.
func newCluster(t *testing.T, broker *Broker, topic string, partitions int) *cluster {
	t.Helper()
	return newClusterAt(t, broker, topic, partitions, filepath.Join(t.TempDir(), "bucket"))
}

// newClusterAt does the same for a bucket of its own.
func newClusterAt(t *testing.T, broker *Broker, topic string, partitions int, bucket string) *cluster {
	t.Helper()
	broker.Own(t, topic)
	c := &cluster{bucket: bucket}
	c.flags = []string{"--bucket", c.bucket, "--kafka.brokers", broker.Addr, "--kafka.topic", topic}
	create := append([]string{"kafka", "create", "--replicas", "1", "--min-insync", "1", "--partitions", fmt.Sprint(partitions)}, c.flags...)
	if out, err := exec.Command(buildShale(t), create...).CombinedOutput(); err != nil {
		t.Fatalf("shale kafka create: %v\n%s", err, out)
	}
	return c
}

func (c *cluster) process(t *testing.T, role string, more ...string) *process {
	t.Helper()
	return newProcess(t, append(append([]string{"--role", role}, c.flags...), more...)...)
}

// pushRound sends a sample of each series of metrics, and a line of each stream, as compareWithServer expects
// them.
func pushRound(gateway *process, at time.Time, round, series int) {
	gateway.t.Helper()
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][2]string       `json:"values"`
	}
	var metrics strings.Builder
	var lines []stream
	for i := range series {
		fmt.Fprintf(&metrics, "probe;series=m%d %d %d\n", i, round*series+i, at.Unix())
		name := fmt.Sprint("l", i)
		lines = append(lines, stream{
			map[string]string{"app": "probe", "stream": name}, [][2]string{{fmt.Sprint(at.UnixNano()), fmt.Sprintf("line %d of %s", round, name)}},
		})
	}
	body, err := json.Marshal(map[string]any{"streams": lines})
	if err != nil {
		gateway.t.Fatal(err)
	}
	gateway.push("/api/v1/write/graphite", "text/plain", []byte(metrics.String()))
	gateway.push("/loki/api/v1/push", "application/json", body)
}

// A gateway writes to Kafka and sends the labels of a series once. Two processes with the role ingest take
// halves of the partitions to the bucket. One is killed and loses its disk, the other is stopped and started,
// and once both lose their disks. A server over the bucket then has every row once.
func testIngestRole(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "roles", 4)
	gateway := c.process(t, "gateway")
	low := c.process(t, "ingest", "--kafka.partitions", "0-1", "--ship-every", "2s", "--store.window", "2m")
	high := c.process(t, "ingest,compact", "--kafka.partitions", "2,3", "--ship-every", "2s")
	for _, p := range []*process{gateway, low, high} {
		p.start()
	}
	const rounds, series = 300, 12
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	for round := range rounds {
		pushRound(gateway, begin.Add(time.Duration(round)*time.Second), round, series)
		switch {
		case round%100 == 49: // while there are rows in the heads, and rows that only Kafka has
			low.kill()
			if err := os.RemoveAll(low.dir); err != nil {
				t.Fatal(err)
			}
			low.start()
		case round == 120: // all disks at once
			for _, p := range []*process{low, high} {
				p.kill()
				if err := os.RemoveAll(p.dir); err != nil {
					t.Fatal(err)
				}
			}
			low.start()
			high.start()
		case round%100 == 99:
			high.stop()
			high.start()
		}
	}
	for _, p := range []*process{low, high} {
		_, state := p.get("/internal/v1/state")
		var has struct {
			Journals []struct {
				Node  string
				Ready bool
			}
		}
		if err := json.Unmarshal([]byte(state), &has); err != nil || len(has.Journals) != 2 || !has.Journals[0].Ready || !has.Journals[1].Ready {
			t.Errorf("state is %s, %v", state, err)
		}
		if status, _ := p.get("/api/v1/query?query=up"); status != http.StatusNotImplemented {
			t.Errorf("a query at an ingester: status %d", status)
		}
	}
	gateway.stop()
	low.stop()
	high.stop()
	compareWithServer(t, c.bucket, begin, rounds, series)
}

// Kafka deletes records that no ingester has read, and later one comes that cannot be read. The ingester is
// not ready, and names topic, partition and offsets, until an operator gives up these and no others. What
// came before and after is there.
func testAcceptLoss(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "given-up", 1)
	gateway, ingester := c.process(t, "gateway"), c.process(t, "ingest", "--kafka.partitions", "0", "--ship-every", "1s")
	gateway.start()
	ingester.start()
	const rounds, series = 4, 3
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	at := func(round int) time.Time { return begin.Add(time.Duration(round) * time.Second) }
	pushRound(gateway, at(0), 0, series)
	pushRound(gateway, at(1), 1, series)
	shipped := endOf(t, broker, "given-up")
	covered := fmt.Sprintf("shale_partition_covered_offset{partition=\"0\",topic=\"given-up\"} %d\n", shipped)
	waitFor(t, "a ship", func() bool {
		_, metrics := ingester.get("/metrics")
		return strings.Contains(metrics, covered)
	})
	ingester.stop()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	// These rounds are lost. They have further series, so that no later record lacks their labels.
	pushRound(gateway, at(50), 50, series+4)
	pushRound(gateway, at(51), 51, series+4)
	end := endOf(t, broker, "given-up")
	accept := func(code int, says, lost string, more ...string) {
		t.Helper()
		args := append(append([]string{"kafka", "accept-loss", lost}, c.flags...), more...)
		out, messages, got := shale(t, buildShale(t), args...)
		if got != code || !strings.Contains(out+messages, says) {
			t.Fatalf("accept-loss %s: exit code %d and %q, expected %d and %q", lost, got, out+messages, code, says)
		}
	}
	accept(1, "can be read", fmt.Sprintf("0:%d", shipped))
	var before kadm.Offsets
	before.Add(kadm.Offset{Topic: "given-up", Partition: 0, At: end, LeaderEpoch: -1})
	if _, err := kadm.NewClient(cl).DeleteRecords(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	ingester.launch()
	gap := fmt.Sprintf("offsets %d to %d", shipped, end-1)
	ingester.waitFor("the gap", func(status int, body string) bool {
		return status == http.StatusServiceUnavailable && strings.Contains(body, "topic given-up, partition 0") && strings.Contains(body, gap)
	})
	_, body := ingester.get("/ready")
	t.Log(body)
	accept(1, "what is given up begins there", fmt.Sprintf("0:%d-%d", shipped+1, end-1))
	accept(1, fmt.Sprintf("give up exactly these, use 0:%d-%d", shipped, end-1), fmt.Sprintf("0:%d-%d", shipped, shipped))
	accept(1, "there is no record", fmt.Sprintf("0:%d-%d", shipped, end))
	accept(2, "has 1 partition,", fmt.Sprintf("1:%d-%d", shipped, end-1))
	recorded := records(t, c.bucket)
	accept(0, "would give up", fmt.Sprintf("0:%d-%d", shipped, end-1), "--dry-run")
	if now := records(t, c.bucket); !slices.Equal(now, recorded) {
		t.Errorf("--dry-run left the records %q in the bucket, before it %q", now, recorded)
	}
	accept(0, "gave up", fmt.Sprintf("0:%d-%d", shipped, end-1))
	ingester.waitFor("the way on", func(status int, _ string) bool { return status == http.StatusOK })

	pushRound(gateway, at(2), 2, series)
	poison := endOf(t, broker, "given-up")
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "given-up", Value: []byte("hello")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	pushRound(gateway, at(3), 3, series)
	ingester.waitFor("the record that cannot be read", func(status int, body string) bool {
		return status == http.StatusServiceUnavailable && strings.Contains(body, fmt.Sprintf("offset %d", poison))
	})
	_, body = ingester.get("/ready")
	t.Log(body)
	accept(1, "given up one at a time", fmt.Sprintf("0:%d-%d", poison, poison+1))
	accept(0, "gave up", fmt.Sprintf("0:%d", poison))
	ingester.waitFor("the way on", func(status int, _ string) bool { return status == http.StatusOK })
	lost := []string{fmt.Sprintf("partition 0 of epoch 1, offsets %d to %d were given up", shipped, end-1), fmt.Sprintf("partition 0 of epoch 1, offsets %[1]d to %[1]d were given up", poison)}
	query := c.process(t, "query", "--ingesters", ingester.addr)
	query.start()
	checkLossIsSaid(t, query, lost)
	query.stop()
	query.start()
	checkLossIsSaid(t, query, lost)
	query.stop()
	gateway.stop()
	ingester.stop()
	all := newProcess(t, "--bucket", c.bucket)
	all.start()
	checkLossIsSaid(t, all, lost)
	all.stop()
	compareWithServer(t, c.bucket, begin, rounds, series)
}

// checkLossIsSaid asks each dialect for times that a loss may have had rows of, and for later ones.
func checkLossIsSaid(t *testing.T, p *process, lost []string) {
	t.Helper()
	said := func(path string) string {
		t.Helper()
		resp, err := http.Get("http://" + p.addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v: %s", path, resp.Status, err, body)
		}
		header := strings.Join(resp.Header.Values("Shale-Warning"), "\n")
		var answer struct{ Warnings []string }
		if json.Unmarshal(body, &answer) == nil && len(answer.Warnings) > 0 {
			return header + "\n" + strings.Join(answer.Warnings, "\n")
		}
		return header
	}
	for _, path := range []string{
		"/api/v1/query?query=probe", "/api/v1/query_range?query=sum(probe)&step=60&start=%d&end=%d", "/api/v1/series?match[]=probe", "/api/v1/labels",
		"/loki/api/v1/query_range?query=%%7Bapp=%%22probe%%22%%7D&start=%d&end=%d", "/loki/api/v1/query_range?query=sum(count_over_time(%%7Bapp=%%22probe%%22%%7D[1m]))&step=60&start=%d&end=%d",
		"/loki/api/v1/labels", "/render?target=probe&format=json&from=%d&until=%d", "/metrics/find?query=*",
	} {
		now := time.Now().Unix()
		asked := strings.ReplaceAll(path, "%%", "%")
		if strings.Contains(path, "%d") {
			asked = fmt.Sprintf(path, now-3600, now)
			later := fmt.Sprintf(path, now+3*3600, now+4*3600)
			// Graphite asks for no times after now.
			if text := said(later); strings.Contains(text, "given up") && !strings.HasPrefix(path, "/render") {
				t.Errorf("%s, of later times, says: %s", later, text)
			}
		}
		text := said(asked)
		for _, l := range lost {
			if !strings.Contains(text, l) {
				t.Errorf("%s does not say %q: %q", asked, l, text)
			}
		}
	}
}

// endOf returns the offset after the last record of a topic with one partition.
func endOf(t *testing.T, broker *Broker, topic string) int64 {
	t.Helper()
	all, err := kafka.Offsets(t.Context(), open(broker.Addr), topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	return all[0].End
}

// One process may have all roles that there are.
func testOneProcess(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "together", 2)
	all := c.process(t, "gateway,ingest,query,compact", "--kafka.partitions", "0-1", "--ship-every", "1s")
	all.args = append(all.args, "--ingesters", all.addr)
	all.start()
	const rounds, series = 5, 4
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	for round := range rounds {
		pushRound(all, begin.Add(time.Duration(round)*time.Second), round, series)
		if round == 2 {
			all.stop()
			all.start()
		}
	}
	waitFor(t, "the ship of all rows", func() bool {
		_, metrics := all.get("/metrics")
		return strings.Contains(metrics, "shale_partition_unshipped_records{partition=\"0\",topic=\"together\"} 0\n") &&
			strings.Contains(metrics, "shale_partition_unshipped_records{partition=\"1\",topic=\"together\"} 0\n")
	})
	// The rows are in the bucket, and still in the heads: they count once.
	at := begin.Add(time.Minute).Unix()
	for _, query := range []string{"/api/v1/query?query=sum(count_over_time(probe[2h]))", `/loki/api/v1/query?query=sum(count_over_time({app="probe"}[2h]))`,
		`/loki/api/v1/query?query=sum(count_over_time({app="probe"}|="line"[2h]))`} {
		waitFor(t, query, func() bool {
			_, body := all.get(fmt.Sprintf("%s&time=%d", strings.ReplaceAll(query, `"`, "%22"), at))
			if !strings.Contains(body, fmt.Sprintf("%q", fmt.Sprint(rounds*series))) {
				t.Log(body)
				return false
			}
			return true
		})
	}
	all.stop()
	compareWithServer(t, c.bucket, begin, rounds, series)
}

// A process sleeps while another one takes its partition over and ships. When it wakes, it ships nothing of
// what it holds. Both go on with the partition, as after a mistake in kafka.partitions: nothing is lost or
// doubled, and samples of one time keep their order.
func testZombie(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "zombie", 1)
	gateway := c.process(t, "gateway")
	zombie := c.process(t, "ingest", "--kafka.partitions", "0", "--ship-every", "2s")
	heir := c.process(t, "ingest", "--kafka.partitions", "0", "--ship-every", "2s")
	gateway.start()
	zombie.start()
	const rounds, series = 40, 6
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	push := func(from, to int) {
		for round := from; round < to; round++ {
			at := begin.Add(time.Duration(round) * time.Second)
			for i := range series { // the round overwrites these samples
				gateway.push("/api/v1/write/graphite", "text/plain", fmt.Appendf(nil, "probe;series=m%d 7 %d\n", i, at.Unix()))
			}
			pushRound(gateway, at, round, series)
		}
	}
	push(0, 10)
	_ = zombie.cmd.Process.Signal(syscall.SIGSTOP)
	push(10, 20)
	heir.start()
	waitFor(t, "a ship of the heir", func() bool { return strings.Contains(metric(heir, "shale_ship_commits_total", `result="won"`), " ") })
	_ = zombie.cmd.Process.Signal(syscall.SIGCONT)
	push(20, rounds)
	waitFor(t, "the end of the zombie's life", func() bool { return metric(zombie, "shale_ship_commits_total", `result="stale"`) != "" })
	heir.stop()
	zombie.stop()
	heir.start() // whoever was overtaken last has left rows in Kafka
	shipped := fmt.Sprintf(" %d", endOf(t, broker, "zombie"))
	waitFor(t, "the last ship", func() bool {
		return metric(heir, "shale_partition_covered_offset", `partition="0",topic="zombie"`) == shipped
	})
	gateway.stop()
	heir.stop()
	compareWithServer(t, c.bucket, begin, rounds, series)
}

// metric returns what follows a metric with a label in what a process exposes; empty: it is missing or 0.
func metric(p *process, name, label string) string {
	_, text := p.get("/metrics")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+"{"+label+"}"); ok && rest != " 0\n" {
			return strings.TrimSuffix(rest, "\n")
		}
	}
	return ""
}
