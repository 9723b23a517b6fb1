//go:build e2e

package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// balance listens as a load balancer does, and passes each connection to one of some processes: to another
// one if the first takes none. It returns its address.
func balance(t *testing.T, to ...*process) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	pass := func(from net.Conn, first int) {
		defer from.Close()
		for i := range to {
			c, err := net.DialTimeout("tcp", to[(first+i)%len(to)].addr, time.Second)
			if err != nil {
				continue
			}
			defer c.Close()
			done := make(chan struct{}, 2)
			for _, way := range [][2]net.Conn{{c, from}, {from, c}} {
				go func() {
					_, _ = io.Copy(way[0], way[1]) // either side may be killed
					done <- struct{}{}
				}()
			}
			<-done
			return
		}
	}
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go pass(c, n)
		}
	}()
	return l.Addr().String()
}

// load is one `shale load` that writes until it is stopped, and records what was acknowledged.
type load struct {
	t           *testing.T
	kind, state string
	cmd         *exec.Cmd
	out         bytes.Buffer
}

func startLoad(t *testing.T, kind, to string, flags ...string) *load {
	t.Helper()
	l := &load{t: t, kind: kind, state: filepath.Join(t.TempDir(), kind+".state")}
	l.cmd = exec.Command(buildShale(t), append([]string{"load", kind, "--quiet", "--json", "--state", l.state, "--url", "http://" + to}, flags...)...)
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.out
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if l.cmd.ProcessState == nil {
			_ = l.cmd.Process.Kill()
			_ = l.cmd.Wait()
		}
	})
	return l
}

// stop stops the load as Ctrl-C does.
func (l *load) stop() {
	l.t.Helper()
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	_ = l.cmd.Wait() // it says whether all was acknowledged, which is not asked here
}

// verify reads back what was acknowledged, over a query process, and returns what it says.
func (l *load) verify(over *process, flags ...string) {
	l.t.Helper()
	var out []byte
	var err error
	// Ingesters may lag for a moment.
	for began := time.Now(); time.Since(began) < patience; time.Sleep(2 * time.Second) {
		args := append([]string{"load", l.kind, "--verify-only", "--quiet", "--json", "--state", l.state, "--query-url", "http://" + over.addr}, flags...)
		if out, err = exec.Command(buildShale(l.t), args...).CombinedOutput(); err == nil {
			break
		}
	}
	if err != nil {
		l.t.Errorf("%s: %v\n%.3000s\nthe load itself: %.1000s", l.kind, err, out, l.out.Bytes())
		return
	}
	l.t.Logf("%s: %.1500s", l.kind, summary(out))
}

// summary is the part of a report that says what was verified, if it has one.
func summary(report []byte) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(report, &all) != nil {
		return string(report)
	}
	var parts []string
	for name, text := range all {
		if strings.Contains(strings.ToLower(name), "verif") {
			parts = append(parts, name+": "+string(bytes.Join(bytes.Fields(text), []byte(" "))))
		}
	}
	if slices.Sort(parts); len(parts) == 0 {
		return string(report)
	}
	return strings.Join(parts, "; ")
}

// Under `shale load` of samples and lines, processes of each role and the broker are killed in turn, as often
// as KILLS says, and every second ingester loses its disk. Writers send next to it, and queries count without
// a pause. Nothing that was acknowledged is missing or doubled afterwards, and no query was wrong: each was
// answered, or refused with 503.
func testKillsUnderLoad(t *testing.T, broker *Broker) {
	rounds := killCount(t, 1)
	c := newCluster(t, broker, "killed-under-load", 4)
	c.flags = append(c.flags, "--memory", "128MiB")
	gateways := []*process{c.process(t, "gateway", "--gateways", "2"), c.process(t, "gateway", "--gateways", "2")}
	ingesters := []*process{c.process(t, "ingest", "--ship-every", "1m"), c.process(t, "ingest", "--ship-every", "1m")}
	// Each query reads hundreds of small blocks that are not merged yet.
	asks := []string{"--ingesters", ingesters[0].addr + "," + ingesters[1].addr, "--memory", "512MiB"}
	queries := []*process{c.process(t, "query", asks...), c.process(t, "query", asks...)}
	compact := []*process{c.process(t, "compact")}
	for _, p := range slices.Concat(gateways, ingesters, queries, compact) {
		p.start()
	}
	to := balance(t, gateways...)
	samples := startLoad(t, "remote-write", to, "--targets", "4", "--metrics", "50", "--series", "5", "--rate", "500", "--batch", "250", "--concurrency", "2", "--value", "counter")
	lines := startLoad(t, "logs", to, "--streams", "80", "--rate", "0.05", "--push-lines", "200", "--concurrency", "2", "--ooo", "0.02:1m")
	w := &writers{t: t, begin: time.Now().Add(-24 * time.Hour).Truncate(time.Second), repeated: true, pause: time.Duration(rounds) * 20 * time.Millisecond}
	w.start(gateways, queries)
	w.progress("the first writes")

	kills := map[string]int{}
	var slow time.Duration
	restart := func(role string, p *process, lose bool) {
		t.Helper()
		began := time.Now()
		p.kill()
		kills[role]++
		if lose {
			if err := os.RemoveAll(p.dir); err != nil {
				t.Fatal(err)
			}
		}
		p.launch()
		p.waitFor("a process that is ready", func(status int, _ string) bool { return status == http.StatusOK })
		slow = max(slow, time.Since(began))
	}
	for n := range rounds {
		restart("gateway", gateways[n%2], false)
		restart("ingest", ingesters[n%2], n/2%2 == 0)
		restart("query", queries[n%2], false)
		restart("compact", compact[0], n%2 == 0)
		broker.Kill()
		broker.Restart()
		kills["broker"]++
		w.moved(1, "writes after the broker")
		t.Logf("round %d of %d: %d samples of a writer, %d queries answered, %d refused, %d not answered, %d writes repeated", n+1, rounds, w.acked[0].Load(), w.answered.Load(), w.refused.Load(), w.lost.Load(), w.again.Load())
		if end, ok := t.Deadline(); t.Failed() || ok && time.Until(end) < 5*time.Minute {
			break
		}
	}
	for _, p := range ingesters { // all disks of ingesters at once
		p.kill()
		kills["ingest"]++
		if err := os.RemoveAll(p.dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range ingesters {
		p.launch()
	}
	for _, p := range ingesters {
		p.waitFor("a process that is ready", func(status int, _ string) bool { return status == http.StatusOK })
	}
	w.moved(1, "writes after the loss of all disks")
	samples.stop()
	lines.stop()
	w.end(queries)
	samples.verify(queries[0], "--verify", "200", "--verify-counts")
	lines.verify(queries[1], "--verify-page", "1000")
	t.Logf("kills: %v; the slowest process was ready after %.1f s; %d queries answered, %d refused with 503, %d not answered by a process that was killed; %d writes repeated, the slowest took %.1f s",
		kills, slow.Seconds(), w.answered.Load(), w.refused.Load(), w.lost.Load(), w.again.Load(), time.Duration(w.slowest.Load()).Seconds())
}

// An ingester of a group sleeps for longer than its session, and wakes. Another one has taken its partitions
// over and has shipped. No row is missing or doubled, the order is kept, and no query is wrong.
func testSleeper(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "sleeper", 4)
	gateways := []*process{c.process(t, "gateway")}
	ingesters := []*process{c.process(t, "ingest", "--ship-every", "10s"), c.process(t, "ingest", "--ship-every", "10s")}
	peers := ingesters[0].addr + "," + ingesters[1].addr
	queries := []*process{c.process(t, "query", "--ingesters", peers), c.process(t, "query,compact", "--ingesters", peers, "--memory", "512MiB")}
	for _, p := range slices.Concat(gateways, ingesters, queries) {
		p.start()
	}
	have := func(p *process) int { return readyOf(p, "sleeper", "ready") }
	waitFor(t, "two halves", func() bool { return have(ingesters[0]) == 2 && have(ingesters[1]) == 2 })
	w := &writers{t: t, begin: time.Now().Add(-24 * time.Hour).Truncate(time.Second), pause: 100 * time.Millisecond}
	w.start(gateways, queries)
	w.progress("the first writes")
	_ = ingesters[0].cmd.Process.Signal(syscall.SIGSTOP)
	waitFor(t, "an heir", func() bool { return have(ingesters[1]) == 4 })
	taken := counter("shale_ship_commits_total", ingesters[1])
	waitFor(t, "a ship of the heir", func() bool { return counter("shale_ship_commits_total", ingesters[1]) > taken })
	asleep := w.answered.Load()
	waitFor(t, "answers while it sleeps", func() bool { return w.answered.Load() > asleep || t.Failed() })
	_ = ingesters[0].cmd.Process.Signal(syscall.SIGCONT)
	waitFor(t, "two halves again", func() bool { return have(ingesters[0]) == 2 && have(ingesters[1]) == 2 })
	w.progress("writes after it woke")
	w.end(queries)
	t.Logf("%d queries answered, %d refused with 503", w.answered.Load(), w.refused.Load())
}

// All series are relabelled, again and again, while an ingester is added and stopped: each series begins as a
// new one at another owner. The memory of no process is far from its budget, and every sample is there.
func testRelabelUnderMoves(t *testing.T, broker *Broker) {
	const partitions, budget = 8, 128.0
	c := newCluster(t, broker, "relabelled", partitions)
	c.flags = append(c.flags, "--memory", fmt.Sprintf("%vMiB", budget))
	gateways := []*process{c.process(t, "gateway", "--gateways", "2"), c.process(t, "gateway", "--gateways", "2")}
	var ingesters []*process
	var addrs []string
	for range 3 {
		p := c.process(t, "ingest", "--ship-every", "20s")
		ingesters, addrs = append(ingesters, p), append(addrs, p.addr)
	}
	query, compact := c.process(t, "query", "--ingesters", strings.Join(addrs, ",")), c.process(t, "compact")
	for _, p := range slices.Concat(gateways, ingesters[:2], []*process{query, compact}) {
		p.start()
	}
	moves := killCount(t, 2)
	const series = 20_000
	samples := startLoad(t, "remote-write", balance(t, gateways...), "--targets", "20", "--metrics", "100", "--series", "10", "--rate", "8000", "--batch", "500",
		"--series-interval", "15s", "--step", "5s", "--start", "-2h")
	most := map[string]float64{}
	var mu sync.Mutex
	done := make(chan struct{})
	watching := group(t)
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-t.Context().Done():
				return
			case <-time.After(250 * time.Millisecond):
			}
			mu.Lock()
			for role, of := range map[string][]*process{"gateway": gateways, "ingest": ingesters, "query": {query}, "compact": {compact}} {
				for _, p := range of {
					most[role] = max(most[role], resident(p))
				}
			}
			mu.Unlock()
		}
	})
	have := func(p *process) int { return readyOf(p, "relabelled", "ready") }
	for range moves {
		ingesters[2].launch()
		waitFor(t, "an ingester that is added", func() bool {
			return have(ingesters[2]) >= 2 && have(ingesters[0])+have(ingesters[1])+have(ingesters[2]) == partitions
		})
		time.Sleep(5 * time.Second) // a relabelling
		ingesters[2].stop()
		waitFor(t, "an ingester that is stopped", func() bool { return have(ingesters[0])+have(ingesters[1]) == partitions })
		time.Sleep(5 * time.Second)
	}
	created := counter("shale_gateway_announced_labels_total", gateways...)
	samples.stop()
	close(done)
	watching.Wait()
	// Blocks of all cycles are small and many, and a query over them needs more than the budget gives it.
	reader := c.process(t, "query", "--ingesters", strings.Join(addrs, ","), "--memory", "1GiB")
	reader.start()
	samples.verify(reader, "--verify", "100", "--verify-counts")
	t.Logf("%d moves there and back, labels of %v series announced, %v of them of one cycle; most memory in MiB of a budget of %v: %v", moves, created, series, budget, most)
	for role, mib := range most {
		if mib > budget {
			t.Errorf("%s: %.0f MiB, with a budget of %v", role, mib, budget)
		}
	}
}

// resident returns the memory of a process in MiB; 0: it does not run.
func resident(p *process) float64 {
	_, text := p.get("/metrics")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "process_resident_memory_bytes "); ok {
			var v float64
			_, _ = fmt.Sscan(rest, &v)
			return v / (1 << 20)
		}
	}
	return 0
}
