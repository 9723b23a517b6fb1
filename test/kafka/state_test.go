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
