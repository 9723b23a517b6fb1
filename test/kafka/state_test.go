//go:build e2e

package kafka

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The records with the labels of all series are lost, and an operator accepts that. The gateway would not
// send the labels again for an hour. The ingester tells it that a partition lacks them, and it does: rows
// that came before are there in the end.
func testLabelsAgain(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "labels-again", 1)
	gateway, ingester := c.process(t, "gateway"), c.process(t, "ingest", "--ship-every", "1s")
	gateway.start()
	const rounds, series = 6, 3
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	at := func(round int) time.Time { return begin.Add(time.Duration(round) * time.Second) }
	pushRound(gateway, at(50), 50, series)
	end := endOf(t, broker, "labels-again")
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var before kadm.Offsets
	before.Add(kadm.Offset{Topic: "labels-again", Partition: 0, At: end, LeaderEpoch: -1})
	if _, err := kadm.NewClient(cl).DeleteRecords(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"kafka", "accept-loss", fmt.Sprintf("0:0-%d", end-1)}, c.flags...)
	if out, err := exec.Command(buildShale(t), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pushRound(gateway, at(0), 0, series)
	ingester.launch()
	ingester.waitFor("rows without labels", func(_ int, body string) bool { return strings.Contains(body, "labels are not known") })
	waitFor(t, "a gateway that was told", func() bool {
		return metric(gateway, "shale_gateway_forgotten_series_total", `reason="partition"`) != ""
	})
	for round := 1; round < rounds; round++ {
		pushRound(gateway, at(round), round, series)
	}
	ingester.waitFor("the way on", func(status int, _ string) bool { return status == 200 })
	gateway.stop()
	ingester.stop()
	compareWithServer(t, c.bucket, begin, rounds, series)
}

// A tenant at its limit creates no series at gateways. Known series are not held back, also at a gateway that
// has just started and at one that has never seen them.
func testSeriesLimit(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "series-limit", 2)
	// So many that neither partition has less than a quarter, and lists none.
	const most = 60
	limit := []string{"--limits.tenant-series", fmt.Sprint(most)}
	first, second := c.process(t, "gateway", limit...), c.process(t, "gateway", limit...)
	ingester := c.process(t, "ingest", limit...)
	for _, p := range []*process{first, second, ingester} {
		p.start()
	}
	push := func(to *process, series int) error {
		return to.post("/api/v1/write/graphite", "text/plain", "anonymous", fmt.Appendf(nil, "probe;series=m%d 1 %d\n", series, time.Now().Unix()))
	}
	for i := range most {
		if err := push(first, i); err != nil {
			t.Fatal(err)
		}
	}
	counted := func(p *process) {
		t.Helper()
		waitFor(t, "the count of series", func() bool {
			_, text := p.get("/metrics")
			return strings.Contains(text, fmt.Sprintf("shale_gateway_counted_series %d\n", most))
		})
	}
	check := func(p *process) {
		t.Helper()
		counted(p)
		for i := range most {
			if err := push(p, i); err != nil {
				t.Errorf("a known series: %v", err)
			}
		}
		refused := 0
		for i := 100; i < 120; i++ {
			if err := push(p, i); err != nil {
				refused++
				if !strings.Contains(err.Error(), "status 429") || !strings.Contains(err.Error(), "limits.tenant-series") {
					t.Errorf("a new series: %v", err)
				}
			}
		}
		if refused < 15 { // one of 40 may seem to be known
			t.Errorf("%d of 20 new series are refused", refused)
		}
	}
	check(first)
	check(second)
	first.kill()
	first.start()
	check(first)
}

// A tenant creates series no faster than its limit, at a gateway that has just started, too. Series that an
// ingester knows are not held back there.
func testCreationRate(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "creation-rate", 1)
	limit := []string{"--limits.tenant-new-series", "1"} // and a burst of 60
	first, ingester := c.process(t, "gateway", limit...), c.process(t, "ingest", limit...)
	first.start()
	ingester.start()
	const known = 40
	push := func(to *process, from, n int) error {
		var body strings.Builder
		for i := from; i < from+n; i++ {
			fmt.Fprintf(&body, "probe;series=m%d 1 %d\n", i, time.Now().Unix())
		}
		return to.post("/api/v1/write/graphite", "text/plain", "anonymous", []byte(body.String()))
	}
	counted := func() {
		t.Helper()
		waitFor(t, "the count of series", func() bool {
			return number(first, "shale_gateway_counted_series") >= known
		})
	}
	if err := push(first, 0, known); err != nil {
		t.Fatal(err)
	}
	counted()
	first.kill()
	first.start()
	counted()
	for range 5 { // else they would have used up the burst
		if err := push(first, 0, known); err != nil {
			t.Errorf("known series: %v", err)
		}
	}
	err := push(first, 1000, 200)
	if err == nil || !strings.Contains(err.Error(), "status 429") || !strings.Contains(err.Error(), "limits.tenant-new-series") {
		t.Fatalf("too many new series: %v", err)
	}
	var refused int // all but a minute's worth, of which known series have used nothing
	_, rest, _ := strings.Cut(err.Error(), "refused ")
	if _, scan := fmt.Sscanf(rest, "%d of", &refused); scan != nil || refused < 120 || refused > 145 {
		t.Errorf("%d new series are refused: %v", refused, err)
	}
	if err := push(first, 0, known); err != nil {
		t.Errorf("known series: %v", err)
	}
	t.Log(err)
}
