//go:build e2e

package kafka

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// killCount returns how often a test kills each process: few times here, and as often as KILLS says in a
// torture.
func killCount(t *testing.T, usually int) int { return fromEnviron(t, "KILLS", usually) }

// fromEnviron returns a number that a variable gives.
func fromEnviron(t *testing.T, name string, usually int) int {
	text := os.Getenv(name)
	if text == "" {
		return usually
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, expected a number above 0", name, text)
	}
	return n
}

// counter adds up the values of a counter of some processes.
func counter(name string, of ...*process) (sum float64) {
	for _, p := range of {
		_, text := p.get("/metrics")
		for line := range strings.Lines(text) {
			if rest, is := strings.CutPrefix(line, name); is && (rest[0] == ' ' || rest[0] == '{') {
				var v float64
				_, _ = fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &v)
				sum += v
			}
		}
	}
	return sum
}

// Two groups have all partitions, and one of them ships. Ingesters of both are killed in turn, while writers
// send and queries ask for everything that was acknowledged, without a pause. No query fails, and none is
// wrong. The second group never ships, and drops what the first one has shipped.
func testSecondGroup(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "two-groups", 4)
	gateways := []*process{c.process(t, "gateway", "--gateways", "2"), c.process(t, "gateway", "--gateways", "2")}
	var first, second []*process
	var addrs []string
	for i := range 4 {
		if i < 2 {
			first = append(first, c.process(t, "ingest", "--ship-every", "4s", "--zone", "a"))
			addrs = append(addrs, first[i].addr)
		} else {
			second = append(second, c.process(t, "ingest", "--ship-every", "4s", "--zone", "b", "--ship", "off", "--kafka.group", "two-groups-b"))
			addrs = append(addrs, second[i-2].addr)
		}
	}
	peers := strings.Join(addrs, ",")
	queries := []*process{c.process(t, "query", "--zone", "a", "--ingesters", peers), c.process(t, "query,compact", "--zone", "b", "--ingesters", peers)}
	for _, p := range [][]*process{gateways, first, second, queries} {
		for _, p := range p {
			p.start()
		}
	}
	holds := func(of ...*process) (n int) {
		for _, p := range of {
			_, text := p.get("/metrics")
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "shale_partition_state{") && strings.Contains(line, `state="ready"`) && strings.HasSuffix(line, " 1\n") {
					n++
				}
			}
		}
		return n
	}
	settled := func(what string) {
		t.Helper()
		waitFor(t, what, func() bool {
			return holds(first...) == 4 && holds(second...) == 4
		})
	}
	settled("two groups")
	w := startWriters(t, gateways, queries, time.Now().Add(-2*time.Hour).Truncate(time.Second))
	w.progress("the first writes")
	kills := 0
	for range killCount(t, 1) {
		for _, p := range []*process{first[0], second[0], first[1], second[1]} {
			p.kill()
			kills++
			w.progress("writes without an ingester")
			if kills%2 == 0 {
				if err := os.RemoveAll(p.dir); err != nil {
					t.Fatal(err)
				}
			}
			p.launch()
			p.waitFor("a process that is ready", func(status int, _ string) bool { return status == http.StatusOK })
			settled("the ingester that was killed")
			w.progress("writes with it")
		}
	}
	for _, p := range first { // the first group is away as a whole
		p.kill()
	}
	w.progress("writes without the first group")
	for _, p := range first {
		p.launch()
	}
	settled("the first group")
	held := counter("shale_partition_unshipped_records", second...)
	waitFor(t, "ships of the first group that the second one hears of, while writers go on", func() bool {
		now := counter("shale_partition_unshipped_records", second...)
		fewer := now < held
		held = max(held, now)
		return fewer
	})
	if n := w.refused.Load(); n > 0 {
		t.Errorf("%d queries were refused", n)
	}
	if n := counter("shale_ship_commits_total", second...); n > 0 {
		t.Errorf("the second group has shipped %v times", n)
	}
	t.Logf("%d kills; %v answers were lost in the middle and repeated", kills+2, counter("shale_remote_lost_total", queries...))
	w.end(queries)
}
