//go:build e2e

package kafka

import (
	"context"
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

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/provider"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/test/objectstores"
	"github.com/shaledb/shale/test/ports"
)

// whole is all roles on real systems: Kafka, an S3 server and memcached. Next to it is one process with the
// role all, which gets the same writes and whose answers count.
type whole struct {
	installation
	second       []*process
	compact, all *process
	allGraphite  string // where it takes lines
	tenants      string // the file of tenants of all processes
	asked        []asked
	turn         int
	// question counts the questions of the suites. Each of so many is asked.
	question, every int
}

// asked is a question, and what the role all has answered.
type asked struct {
	tenant, path string
	status       int
	want         any
}

// startWhole starts 2 gateways, 3 ingesters and 2 of a second group, 2 query processes and one that compacts.
func startWhole(t *testing.T, broker *Broker, topic string) *whole {
	t.Helper()
	store, cache := objectstores.Start(t, objectstores.Versity), memcachetest.Start(t, "-m", "64")
	at := store.At("roles")
	w := &whole{tenants: filepath.Join(t.TempDir(), "tenants.yaml")}
	w.keep(t, "30d", "30d")
	w.cluster = newClusterAt(t, broker, topic, 8, at.String())
	addrs, err := ports.Reserve(2)
	if err != nil {
		t.Fatal(err)
	}
	w.graphite, w.allGraphite = addrs[0], addrs[1]
	same := []string{"--max-age", "0", "--retention", "0", "--tenants.file", w.tenants, "--memory", "128MiB"}
	w.flags = append(w.flags, same...)
	w.gateways = []*process{
		w.process(t, "gateway", "--gateways", "2"), w.process(t, "gateway", "--gateways", "2", "--graphite-listen", w.graphite),
	}
	var peers []string
	for i := range 5 {
		if i < 3 {
			w.ingesters = append(w.ingesters, w.process(t, "ingest", "--zone", "a", "--ship-every", "20s"))
			peers = append(peers, w.ingesters[i].addr)
		} else {
			w.second = append(w.second, w.process(t, "ingest", "--zone", "b", "--ship", "off", "--kafka.group", topic+"-b"))
			peers = append(peers, w.second[i-3].addr)
		}
	}
	for _, zone := range []string{"a", "b"} {
		w.queries = append(w.queries, w.process(t, "query", "--zone", zone, "--ingesters", strings.Join(peers, ","), "--cache.memcached", cache.Addr,
			"--memory", "512MiB", "--limits.deletion-cancel-period", "0s"))
	}
	w.compact = w.process(t, "compact", "--memory", "512MiB")
	roles := slices.Concat(w.gateways, w.ingesters, w.second, w.queries, []*process{w.compact})
	for _, p := range roles {
		p.launch()
	}
	for _, p := range roles {
		p.waitFor("a process that is ready", func(status int, _ string) bool { return status == http.StatusOK })
	}
	w.all = newProcess(t, append([]string{"--bucket", sameSeedAs(t, at), "--graphite-listen", w.allGraphite, "--limits.deletion-cancel-period", "0s"}, same...)...)
	w.all.start()
	return w
}

// sameSeedAs returns a new folder for a bucket with the seed of the one at a location, so that series come in
// the same order.
func sameSeedAs(t *testing.T, at location.Location) string {
	t.Helper()
	b, _, err := provider.Open(vfs.Default, at)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := b.Get(t.Context(), "seed")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "seed"), seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// keep writes how long rows of the tenant brief, and the lines of its app debug, are kept.
func (w *whole) keep(t *testing.T, tenant, stream string) {
	t.Helper()
	text := fmt.Sprintf("tenants:\n  brief:\n    retention: %s\n    retention-rules:\n      - {signal: logs, match: '{app=\"debug\"}', keep: %s}\n", tenant, stream)
	next := w.tenants + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, w.tenants); err != nil {
		t.Fatal(err)
	}
}

// unordered is a comparable answer whose order says nothing, unless the query sorts.
func unordered(path, text string) any {
	v := comparable(text)
	if m, ok := v.(map[string]any); ok && !strings.Contains(path, "sort") {
		if data, ok := m["data"].(map[string]any); ok {
			if all, ok := data["result"].([]any); ok {
				slices.SortFunc(all, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	}
	return v
}

// compare asks a query process for everything that was acknowledged, and compares with what the role all
// answers.
func (w *whole) compare(t testing.TB, tenant, path string) (status int) {
	t.Helper()
	status, text := w.all.get(path, "X-Scope-OrgID", tenant)
	q := asked{tenant: tenant, path: path, status: status, want: unordered(path, text)}
	w.check(t, "with ingesters", q)
	w.asked = append(w.asked, q)
	return status
}

// check asks a question at a query process, each time at another one. It may refuse for a while.
func (w *whole) check(t testing.TB, stage string, q asked) {
	t.Helper()
	w.turn++
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		status, text := w.queries[w.turn%2].get(q.path, "X-Scope-OrgID", q.tenant, "X-Read-Consistency", "strong")
		if status == http.StatusServiceUnavailable && q.status != status && time.Since(began) < patience {
			continue
		}
		if diff := cmp.Diff(q.want, unordered(q.path, text)); status != q.status || diff != "" {
			t.Errorf("%s: tenant %s: %s: status %d instead of %d: %.2000s", stage, q.tenant, q.path, status, q.status, diff)
		}
		return
	}
}

// again asks each question once more. More data may have come since it was asked.
func (w *whole) again(t *testing.T, stage string) {
	t.Helper()
	began := time.Now()
	for _, q := range w.asked {
		status, text := w.all.get(q.path, "X-Scope-OrgID", q.tenant)
		q.status, q.want = status, unordered(q.path, text)
		w.check(t, stage, q)
	}
	t.Logf("%s: %d questions in %.1f s", stage, len(w.asked), time.Since(began).Seconds())
}

// All roles on Kafka, S3 and memcached answer as one process with the role all does: about the data of the
// suites and of four protocols, with rows that are not in the bucket, and with all rows there. Lines are
// followed, rows are deleted, and others expire and leave the bucket.
func testWhole(t *testing.T, broker *Broker) {
	w := startWhole(t, broker, "whole")
	begin := time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	const n = 60
	for i := range 2 {
		at := begin.Add(time.Duration(i) * n / 2 * time.Second)
		send(t, w.gateways[i], "team-a", at, n/2)
		send(t, w.all, "team-a", at, n/2)
	}
	for _, to := range []string{w.graphite, w.allGraphite} {
		c, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(c, graphiteLines(begin, 15, 5)); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	w.ask(t, "four protocols", w.all, begin, begin.Add(n*time.Second), "team-a")
	w.ask(t, "the listener of Graphite", w.all, begin, begin.Add(n*time.Second), "anonymous")
	w.suites(t)
	t.Run("Tail", w.tail)
	t.Run("Expire", w.expire)
	t.Run("Delete", func(t *testing.T) { w.remove(t, begin) })
	for _, p := range w.ingesters {
		p.stop() // it ships everything
	}
	w.ask(t, "in the bucket", w.all, begin, begin.Add(n*time.Second), "team-a")
	w.again(t, "in the bucket")
	if hits := labelled("shale_cache_hits_total", `tier="memcached"`, w.queries...); hits == 0 {
		t.Error("no page came from memcached")
	} else {
		t.Logf("%v pages came from memcached", hits)
	}
	if n := counter("shale_ship_commits_total", w.second...); n > 0 {
		t.Errorf("the second group has shipped %v times", n)
	}
}

// labelled adds up a counter of some processes, where it has a label.
func labelled(name, label string, of ...*process) (sum float64) {
	for _, p := range of {
		_, text := p.get("/metrics")
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, name+"{") && strings.Contains(line, label) {
				var v float64
				_, _ = fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &v)
				sum += v
			}
		}
	}
	return sum
}

// tail follows the same lines at the role all and at a query process.
func (w *whole) tail(t *testing.T) {
	const n = 40
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	follow := func(p *process) *websocket.Conn {
		conn, _, err := websocket.Dial(ctx, "ws://"+p.addr+"/loki/api/v1/tail?"+url.Values{"query": {`{app="followed"} |= "line"`}}.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		return conn
	}
	push := func(text string) {
		var streams []string
		for pod := range 8 {
			streams = append(streams, fmt.Sprintf(`{"stream":{"app":"followed","pod":"%d"},"values":[["%d","line %s of %d"]]}`, pod, time.Now().UnixNano(), text, pod))
		}
		w.both(t, "/loki/api/v1/push", "application/json", "anonymous", []byte(`{"streams":[`+strings.Join(streams, ",")+`]}`))
	}
	// lines reads frames until there are all lines that are numbered.
	lines := func(conn *websocket.Conn) (got []string) {
		for len(got) < 8*n {
			_, frame, err := conn.Read(ctx)
			if err != nil {
				t.Fatalf("after %d lines: %v", len(got), err)
			}
			var f struct {
				Streams []struct {
					Stream map[string]string
					Values [][2]string
				}
			}
			if err := json.Unmarshal(frame, &f); err != nil {
				t.Fatal(err)
			}
			for _, s := range f.Streams {
				for _, v := range s.Values {
					if strings.HasPrefix(v[1], "line n") {
						got = append(got, fmt.Sprint(s.Stream["pod"], " ", v[1]))
					}
				}
			}
		}
		slices.Sort(got)
		return got
	}
	conns := []*websocket.Conn{follow(w.all), follow(w.queries[0])}
	// A query process follows once it is connected to all ingesters: lines until then may be sent or not.
	first := make(chan error, 1)
	go func() {
		_, _, err := conns[1].Read(ctx)
		first <- err
	}()
	for waiting := true; waiting; {
		push("before")
		select {
		case err := <-first:
			if err != nil {
				t.Fatal(err)
			}
			waiting = false
		case <-time.After(time.Second):
		}
	}
	for i := range n {
		push(fmt.Sprint("n", i))
	}
	want, got := lines(conns[0]), lines(conns[1])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines that were followed: %s", diff)
	}
}

// remove deletes samples and lines at the role all and at a query process.
func (w *whole) remove(t *testing.T, begin time.Time) {
	const form, n = "application/x-www-form-urlencoded", 60
	from, to := fmt.Sprint(begin.Unix()+10), fmt.Sprint(begin.Unix()+40)
	samples := url.Values{"match[]": {`requests_total{instance=~"host-1.*"}`}, "start": {from}, "end": {to}}
	lines := url.Values{"query": {`{app="probe"} |= "n=7 "`}, "start": {from}, "end": {to}}
	before := w.sum(t, begin)
	for i, p := range []*process{w.all, w.queries[0]} {
		if err := p.post("/api/v1/admin/tsdb/delete_series", form, "team-a", []byte(samples.Encode())); err != nil {
			t.Fatal(i, err)
		}
		if err := p.post("/loki/api/v1/delete?"+lines.Encode(), form, "team-a", nil); err != nil {
			t.Fatal(i, err)
		}
	}
	if after := w.sum(t, begin); after == before {
		t.Errorf("nothing was deleted: %s", after)
	}
	w.ask(t, "after a deletion", w.all, begin, begin.Add(n*time.Second), "team-a")
}

// sum is what is left of samples and lines, as the query process says that was not asked to delete them.
func (w *whole) sum(t *testing.T, begin time.Time) string {
	t.Helper()
	at := fmt.Sprint(begin.Unix() + 300)
	var texts []string
	for _, path := range []string{
		"/api/v1/query?" + url.Values{"query": {"sum(count_over_time(requests_total[10m]))"}, "time": {at}}.Encode(),
		"/loki/api/v1/query?" + url.Values{"query": {`sum(count_over_time({app="probe"}[10m]))`}, "time": {at}}.Encode(),
	} {
		status, text := w.queries[1].get(path, "X-Scope-OrgID", "team-a", "X-Read-Consistency", "strong")
		if status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", path, status, text)
		}
		texts = append(texts, fmt.Sprint(comparable(text)))
	}
	return strings.Join(texts, "\n")
}

// expire shortens how long rows of a tenant are kept, and those of one stream further, once they are in the
// bucket. They are hidden at once. Their bytes go when their day is compacted, which is tomorrow.
func (w *whole) expire(t *testing.T) {
	const tenant = "brief"
	now := time.Now()
	ages := []int{1, 30, 60, 120} // hours
	var samples strings.Builder
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][2]string       `json:"values"`
	}
	var streams []stream
	for _, hours := range ages {
		at := now.Add(-time.Duration(hours) * time.Hour)
		for i := range 5 {
			fmt.Fprintf(&samples, "kept;i=%d %d %d\n", i, hours, at.Unix())
			for _, app := range []string{"debug", "web"} {
				streams = append(streams, stream{map[string]string{"app": app, "i": fmt.Sprint(i)}, [][2]string{{fmt.Sprint(at.UnixNano()), fmt.Sprint("line of hour ", hours)}}})
			}
		}
	}
	body, err := json.Marshal(map[string]any{"streams": streams})
	if err != nil {
		t.Fatal(err)
	}
	w.both(t, "/api/v1/write/graphite", "text/plain", tenant, []byte(samples.String()))
	w.both(t, "/loki/api/v1/push", "application/json", tenant, body)
	count := func(p *process) (text string) {
		for _, path := range []string{
			"/api/v1/query?" + url.Values{"query": {"sum(count_over_time(kept[10d]))"}}.Encode(),
			"/loki/api/v1/query?" + url.Values{"query": {`sum by (app) (count_over_time({app=~".+"}[10d]))`}}.Encode(),
		} {
			status, answer := p.get(path, "X-Scope-OrgID", tenant, "X-Read-Consistency", "strong")
			var found struct {
				Data struct {
					Result []struct {
						Metric map[string]string
						Value  [2]any
					}
				}
			}
			if err := json.Unmarshal([]byte(answer), &found); err != nil || status != http.StatusOK {
				return fmt.Sprint(status, " ", answer)
			}
			for _, r := range found.Data.Result {
				text += fmt.Sprint(r.Metric["app"], "=", r.Value[1], " ")
			}
		}
		return text
	}
	config := filepath.Join(t.TempDir(), "shale.yaml")
	if err := os.WriteFile(config, []byte("retention: 0\ntenants:\n  file: "+w.tenants+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// stored is how many rows of the tenant the bucket has, by rule: debug, and all others.
	stored := func() (debug, others int) {
		out, messages, code := shale(t, buildShale(t), "inspect", "retention", w.bucket, "--json", "--config", config)
		var rules []struct {
			Tenant, Match string
			Rows          int
		}
		if err := json.Unmarshal([]byte(out), &rules); err != nil || code != 0 {
			t.Fatalf("inspect retention: exit code %d, %v: %s%s", code, err, out, messages)
		}
		for _, r := range rules {
			if r.Tenant == tenant && r.Match != "" {
				debug += r.Rows
			} else if r.Tenant == tenant {
				others += r.Rows
			}
		}
		return debug, others
	}
	is := func(want string) {
		t.Helper()
		for _, p := range append([]*process{w.all}, w.queries...) {
			waitFor(t, "the count "+want, func() bool { return count(p) == want })
		}
	}
	is("=20 debug=20 web=20 ")
	waitFor(t, "all rows in the bucket", func() bool { debug, others := stored(); return debug == 20 && others == 40 })
	w.keep(t, "72h", "36h")
	is("=15 debug=10 web=15 ")
}
