//go:build e2e

package kafka

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/shaledb/shale/internal/journal/kafka"
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

// A metric and a label set at their limits get no new series at gateways. Known series are not held back,
// also at a gateway that has just started, and neither are those of other metrics.
func testGroupLimits(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "group-limits", 2)
	const most = 40
	limit := []string{"--limits.metric-series", fmt.Sprint(most), "--limits.label-set-series", fmt.Sprintf(`[{match: '{team="a"}', series: %d}]`, most)}
	gateway, ingester := c.process(t, "gateway", limit...), c.process(t, "ingest", limit...)
	gateway.start()
	ingester.start()
	push := func(format string, n int) error {
		return gateway.post("/api/v1/write/graphite", "text/plain", "anonymous", fmt.Appendf(nil, format+" 1 %d\n", n, time.Now().Unix()))
	}
	const ofMetric, ofTeam = "probe;series=m%d", "m%d;team=a"
	known := func() {
		t.Helper()
		for i := range most {
			for _, format := range []string{ofMetric, ofTeam} {
				if err := push(format, i); err != nil {
					t.Errorf("a known series: %v", err)
				}
			}
		}
	}
	known()
	refused := func(format, setting, culprit string) {
		t.Helper()
		var err error
		n := 1000
		waitFor(t, setting, func() bool { // one of 40 may seem to be known
			n++
			err = push(format, n)
			return err != nil
		})
		if text := err.Error(); !strings.Contains(text, "status 429") || !strings.Contains(text, setting) || !strings.Contains(text, culprit) || !strings.Contains(text, fmt.Sprintf("may have %d", most)) && !strings.Contains(text, fmt.Sprintf("may match %d", most)) {
			t.Errorf("the text: %v", err)
		}
	}
	for range 2 {
		refused(ofMetric, "limits.metric-series", "metric probe of tenant anonymous")
		refused(ofTeam, "limits.label-set-series", `{team="a"}`)
		known()
		if err := push("other%d", 1); err != nil {
			t.Errorf("another metric: %v", err)
		}
		gateway.kill()
		gateway.start()
		waitFor(t, "the count of series", func() bool { return number(gateway, "shale_gateway_counted_series") >= 2*most })
	}
}

// The state topic is deleted and made again while replicas of an HA pair send. Nothing is restarted: the pair
// goes on and fails over, and gateways go on to hear how far the bucket is. They refuse nothing while it is
// near, and do once it is not.
func testStateMadeAgain(t *testing.T, broker *Broker) {
	const topic = "state-again"
	c := newCluster(t, broker, topic, 1)
	flags := []string{"--ha.deduplicate", "on", "--ha.failover-after", pairFailover.String()}
	gateways := []*process{c.process(t, "gateway", flags...), c.process(t, "gateway", flags...)}
	ingester := c.process(t, "ingest", "--kafka.partitions", "0", "--ship-every", "1s")
	query := c.process(t, "query", "--ingesters", ingester.addr)
	for _, p := range append(gateways, ingester, query) {
		p.start()
	}
	begin := time.Now()
	senders := []*pairSender{{t: t, replica: "a", value: 1, gateways: gateways}, {t: t, replica: "b", value: 2, gateways: gateways, first: 1}}
	senders[0].start()
	senders[0].accepted(1) // it is elected
	senders[1].start()
	senders[1].accepted(5)
	const retention = 12 * time.Second
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	admin, value := kadm.NewClient(cl), fmt.Sprint(retention.Milliseconds())
	if _, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}, topic); err != nil {
		t.Fatal(err)
	}
	name := kafka.StateTopic(topic)
	began := time.Now()
	if _, err := admin.DeleteTopics(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a topic that is gone", func() bool {
		all, err := admin.ListTopics(t.Context(), name)
		return err == nil && !all.Has(name)
	})
	if err := kafka.CreateState(t.Context(), open(broker.Addr), kafka.Plan{Topic: topic, Replicas: 1, MinInsync: 1}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "processes that notice", func() bool {
		for _, p := range append(gateways, ingester) {
			if number(p, "shale_state_topic_changes_total") == 0 {
				return false
			}
		}
		return true
	})
	read := make([]float64, len(gateways))
	for i, g := range gateways {
		read[i] = number(g, "shale_state_read_records_total")
	}
	for _, s := range senders {
		s.accepted(5)
	}
	away := time.Since(began)
	// As long as it takes until records are old that an ingester has taken to the bucket. A gateway that hears
	// nothing of that would count them from then on.
	time.Sleep(time.Until(began.Add(3 * retention / 2)))
	for _, g := range gateways {
		waitFor(t, "a gateway that knows that the bucket is near", func() bool { return number(g, "shale_gateway_retention_used_ratio") < 0.75 })
	}
	for i, g := range gateways {
		waitFor(t, fmt.Sprintf("records of the new topic at gateway %d", i), func() bool { return number(g, "shale_state_read_records_total") >= read[i]+5 })
	}
	leader, before := leads(t, query), elections(gateways)
	senders[leader].stop()
	waitFor(t, "an election", func() bool { return elections(gateways) > before })
	senders[1-leader].accepted(5)
	senders[1-leader].stop()
	t.Logf("%v elections in all", elections(gateways))
	checkPair(t, query, begin, 2, int(elections(gateways)), away, senders)

	if err := ingester.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	push := func(g *process) error {
		return g.post("/api/v1/write/graphite", "text/plain", "anonymous", fmt.Appendf(nil, "known 1 %d\n", time.Now().Unix()))
	}
	for _, g := range gateways {
		waitFor(t, "the brake", func() bool { return push(g) != nil })
	}
	if err := ingester.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, g := range gateways {
		waitFor(t, "writes again", func() bool { return push(g) == nil })
	}
	for _, p := range append(gateways, ingester) {
		if n := number(p, "shale_state_topic_changes_total"); n != 1 {
			t.Errorf("%v changes of the state topic were noticed, want 1", n)
		}
	}
	t.Logf("the pair went on %s after its topic was deleted", away)
}
