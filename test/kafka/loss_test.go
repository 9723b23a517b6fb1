//go:build e2e

package kafka

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// A power cut takes the end of a partition, and new records take its offsets while no one reads. A reader
// that goes on after what it has read says so, if it knows the leader of its last record.
func testPowerCut(t *testing.T, broker *Broker) {
	c := open(broker.Addr)
	topic := create(t, broker, c, "cut", 1)
	sample := &model.Batch{Tenant: "team", Signal: model.Metrics}
	sample.AddSample(model.Key{Lo: 1}, 1, 1)
	write := func(n int) {
		t.Helper()
		p := producer(t, c, topic)
		for range n {
			if err := p.Append(t.Context(), sample); err != nil {
				t.Fatal(err)
			}
		}
	}
	// read reads up to an offset, and returns the leader epoch of the last record.
	read := func(r *kafka.Reader, to int64) (epoch int32, err error) {
		for r.Next() < to && err == nil {
			err = r.Read(t.Context(), func(rec *kafka.Record) error { epoch = rec.LeaderEpoch; return nil })
		}
		return epoch, err
	}
	write(20)
	epoch, err := read(reader(t, c, topic, 0, 0), 20)
	if err != nil || epoch < 0 {
		t.Fatalf("leader epoch %d, %v", epoch, err)
	}
	continued := kafka.ReaderOptions{Connection: c, Topic: topic.Name, TopicID: topic.ID, From: 20, FromEpoch: &epoch}
	resume := func() *kafka.Reader {
		t.Helper()
		r, err := kafka.OpenReader(t.Context(), continued)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r
	}
	broker.Kill()
	broker.Restart()
	write(5)
	if _, err := read(resume(), 25); err != nil {
		t.Fatalf("after a kill that lost nothing: %v", err)
	}
	broker.Kill()
	file := filepath.Join(broker.Logs(), topic.Name+"-0", "00000000000000000000.log")
	has, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, has.Size()*10/25+1); err != nil {
		t.Fatal(err)
	}
	broker.Restart()
	write(30)
	extents, err := kafka.Offsets(t.Context(), c, topic.Name, 0)
	if err != nil || extents[0].End <= 20 {
		t.Fatalf("%+v, %v: expected more than 20 records", extents, err)
	}
	r := resume()
	_, err = read(r, 21)
	var gap *kafka.GapError
	if !errors.As(err, &gap) || gap.From < 9 || gap.From > 11 || gap.To != 19 || !errors.Is(err, model.ErrCorrupt) {
		t.Fatalf("got %v, expected a gap from about offset 10 to 19", err)
	}
	if _, again := read(r, 21); again != err {
		t.Errorf("the next read: got %v, expected the same gap", again)
	}
	t.Log(err)
}

// A reader knows the end of an idle partition, and says so when no broker answers.
func testAway(t *testing.T, broker *Broker) {
	c := open(broker.Addr)
	topic := create(t, broker, c, "away", 1)
	r := reader(t, c, topic, 0, 0)
	read := func() error { return r.Read(t.Context(), func(*kafka.Record) error { return nil }) }
	waitFor(t, "the end of an idle partition", func() bool {
		if err := read(); err != nil {
			t.Fatal(err)
		}
		return r.End() == 0
	})
	broker.Kill()
	var err error
	waitFor(t, "the error of a reader without brokers", func() bool { err = read(); return err != nil })
	if !errors.Is(err, model.ErrTransient) {
		t.Errorf("got %v, expected class transient", err)
	}
	t.Log(err)
	broker.Restart()
	waitFor(t, "an answer", func() bool { return read() == nil })
}

// A power cut takes the end of a partition that is in the bucket already, and new records take its offsets.
// The ingester refuses to go on, and names them, until an operator gives them up. All others are there.
func testOverwritten(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "overwritten", 1)
	gateway, ingester := c.process(t, "gateway"), c.process(t, "ingest", "--kafka.partitions", "0", "--ship-every", "1s")
	gateway.start()
	ingester.start()
	const series = 3
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	push := func(round int) { pushRound(gateway, begin.Add(time.Duration(round)*time.Second), round, series) }
	push(0)
	file := filepath.Join(broker.Logs(), "overwritten-0", "00000000000000000000.log")
	cut, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	kept := endOf(t, broker, "overwritten")
	push(1)
	shipped := endOf(t, broker, "overwritten")
	waitFor(t, "a ship", func() bool {
		return metric(ingester, "shale_partition_covered_offset", `partition="0",topic="overwritten"`) == fmt.Sprint(" ", shipped)
	})
	ingester.stop()
	gateway.stop()
	broker.Kill()
	if err := os.Truncate(file, cut.Size()); err != nil {
		t.Fatal(err)
	}
	broker.Restart()
	gateway.start()
	push(50) // takes the offsets of the second round
	for n := 51; endOf(t, broker, "overwritten") < shipped; n++ {
		push(n)
	}
	push(2)
	ingester.launch()
	gap := fmt.Sprintf("offsets %d to %d", kept, shipped-1)
	ingester.waitFor("the gap", func(status int, body string) bool {
		return status == http.StatusServiceUnavailable && strings.Contains(body, "topic overwritten, partition 0") && strings.Contains(body, gap)
	})
	_, body := ingester.get("/ready")
	t.Log(body)
	accept := func(code int, says, lost string, more ...string) {
		t.Helper()
		out, messages, got := shale(t, buildShale(t), append(append([]string{"kafka", "accept-loss", lost}, c.flags...), more...)...)
		if got != code || !strings.Contains(out+messages, says) {
			t.Fatalf("accept-loss %s: exit code %d and %q, expected %d and %q", lost, got, out+messages, code, says)
		}
	}
	accept(1, fmt.Sprintf("give these up, use 0:%d-%d", kept, shipped-1), fmt.Sprintf("0:%d", shipped))
	lost := fmt.Sprintf("0:%d-%d", kept, shipped-1)
	accept(1, "needs journal-version 3", lost, "--journal-version", "2", "--dry-run")
	recorded := records(t, c.bucket)
	accept(0, "would give up", lost, "--dry-run")
	if now := records(t, c.bucket); !slices.Equal(now, recorded) {
		t.Errorf("--dry-run left the records %q in the bucket, before it %q", now, recorded)
	}
	accept(0, "gave up", lost)
	ingester.waitFor("the way on", func(status int, _ string) bool { return status == http.StatusOK })
	gateway.stop()
	ingester.stop()
	compareWithServer(t, c.bucket, begin, 3, series)
}

// records returns the commit records in a bucket that is a folder.
func records(t *testing.T, bucket string) (names []string) {
	t.Helper()
	found, err := os.ReadDir(filepath.Join(bucket, filepath.FromSlash(catalog.RecordPrefix)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		names = append(names, f.Name())
	}
	return names
}
