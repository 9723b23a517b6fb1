//go:build e2e

package kafka

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/shaledb/shale/internal/journal/kafka"
)

// readyOf counts the partitions of a topic that a process has in a state.
func readyOf(p *process, topic, state string) (n int) {
	_, text := p.get("/metrics")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "shale_partition_state{") && strings.HasSuffix(line, " 1\n") && strings.Contains(line, fmt.Sprintf("state=%q", state)) &&
			strings.Contains(line, fmt.Sprintf("topic=%q", topic)) {
			n++
		}
	}
	return n
}

// Partitions are doubled twice while four writers send and two processes answer queries. No sender sees an
// error, and no query a wrong answer: each has all that was acknowledged before it, or is refused with 503.
// Then the first topics are deleted, all ingesters lose their disks, and every row is there once.
func testDoubling(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "doubling", 2)
	gateways := []*process{c.process(t, "gateway", "--gateways", "2"), c.process(t, "gateway", "--gateways", "2")}
	ingesters := []*process{c.process(t, "ingest", "--ship-every", "20s"), c.process(t, "ingest", "--ship-every", "20s")}
	peers := ingesters[0].addr + "," + ingesters[1].addr
	queries := []*process{c.process(t, "query", "--ingesters", peers), c.process(t, "query,compact", "--ingesters", peers)}
	for _, p := range [][]*process{gateways, ingesters, queries} {
		for _, p := range p {
			p.start()
		}
	}
	w := startWriters(t, gateways, queries, time.Now().Add(-2*time.Hour).Truncate(time.Second))
	w.progress("the first writes")
	before := "doubling"
	for n, next := range []string{"doubling-4", "doubling-8"} {
		w.refused.Store(0)
		w.lastRefused.Store(0)
		w.slowest.Store(0)
		began := time.Now()
		out, messages, code := shale(t, buildShale(t), append([]string{"kafka", "double", next}, c.flags...)...)
		if code != 0 {
			t.Fatalf("exit code %d: %s%s", code, out, messages)
		}
		if n == 0 {
			t.Log(out)
		}
		took := time.Since(began)
		waitFor(t, "the partitions of "+next, func() bool {
			return readyOf(ingesters[0], next, "ready")+readyOf(ingesters[1], next, "ready") == 4<<n
		})
		whole := time.Since(began)
		w.progress("writes to " + next)
		time.Sleep(time.Second)
		last := time.Duration(0)
		if at := w.lastRefused.Load(); at > 0 {
			last = time.Unix(0, at).Sub(began)
		}
		t.Logf("%s: the command took %.1f s, the partitions were ready after %.1f s; the slowest write took %.1f s; %d queries refused, the last after %.1f s", next, took.Seconds(), whole.Seconds(), time.Duration(w.slowest.Load()).Seconds(), w.refused.Load(), last.Seconds())
		for _, p := range ingesters {
			waitFor(t, "the end of "+before, func() bool { return readyOf(p, before, "closed")+readyOf(p, before, "leaving") == 0 })
		}
		before = next
		t.Logf("%s is closed everywhere after %.1f s", before, time.Since(began).Seconds())
	}
	check := func(code int, says string) {
		t.Helper()
		out, messages, got := shale(t, buildShale(t), append([]string{"kafka", "check"}, append(c.flags, "--kafka.topic", "doubling-8")...)...)
		if got != code || !strings.Contains(out+messages, says) {
			t.Fatalf("check: exit code %d, %s%s, expected %q", got, out, messages, says)
		}
	}
	check(0, "note: epoch 1 = doubling\n    all of its records are in the bucket, and it takes no more: the topic and its state topic may be deleted")
	check(0, "note: epoch 2 = doubling-4")
	deleteTopics(t, broker, "doubling", "doubling-state", "doubling-4", "doubling-4-state")
	check(0, "doubling-8")
	w.progress("writes after the deletion")
	for _, p := range ingesters {
		p.kill()
		if err := os.RemoveAll(p.dir); err != nil {
			t.Fatal(err)
		}
		p.launch()
	}
	began := time.Now()
	w.progress("writes while all ingesters start")
	w.end(queries)
	t.Logf("all rows were found %.1f s after all ingesters had lost their disks", time.Since(began).Seconds())
}

func deleteTopics(t *testing.T, broker *Broker, names ...string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if all, err := kadm.NewClient(cl).DeleteTopics(t.Context(), names...); err != nil || all.Error() != nil {
		t.Fatal(err, all.Error())
	}
	for _, name := range names {
		waitFor(t, "the deletion of "+name, func() bool {
			_, err := kafka.Describe(t.Context(), open(broker.Addr), name)
			return errors.Is(err, kafka.ErrNoTopic)
		})
	}
}

// The same, while everything fails that can. The command dies after it has sealed the old topic, and is run
// again. A gateway sleeps from before that until the new topic has rows, and wakes with requests that it has
// not appended. As soon as the command has ended, both ingesters are killed and one loses its disk, and then
// the broker is. Senders repeat what is refused with 503. Every row is there once and in order.
func testDoublingKilled(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "killed", 2)
	gateways := []*process{c.process(t, "gateway"), c.process(t, "gateway")}
	ingesters := []*process{c.process(t, "ingest", "--ship-every", "20s"), c.process(t, "ingest", "--ship-every", "20s")}
	queries := []*process{c.process(t, "query", "--ingesters", ingesters[0].addr+","+ingesters[1].addr)}
	for _, p := range [][]*process{gateways, ingesters, queries} {
		for _, p := range p {
			p.start()
		}
	}
	w := &writers{t: t, begin: time.Now().Add(-2 * time.Hour).Truncate(time.Second), repeated: true}
	w.start(gateways, queries)
	w.progress("the first writes")
	topic, err := kafka.Describe(t.Context(), open(broker.Addr), "killed")
	if err != nil {
		t.Fatal(err)
	}
	ends, err := kafka.Seal(t.Context(), open(broker.Addr), "killed", topic.ID, 2)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a refusal", func() bool { return w.again.Load() > 0 })
	_ = gateways[1].cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(time.Second) // each writer has a request there that waits for the next topic
	out, messages, code := shale(t, buildShale(t), append([]string{"kafka", "double", "killed-4"}, c.flags...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, messages)
	}
	for i, p := range ingesters {
		p.kill()
		if i == 0 {
			if err := os.RemoveAll(p.dir); err != nil {
				t.Fatal(err)
			}
		}
		p.launch()
	}
	_ = gateways[1].cmd.Process.Signal(syscall.SIGCONT)
	w.progress("writes to the new topic")
	broker.Kill()
	broker.Restart()
	w.progress("writes after the broker")
	waitFor(t, "the new partitions", func() bool {
		return readyOf(ingesters[0], "killed-4", "ready")+readyOf(ingesters[1], "killed-4", "ready") == 4
	})
	w.end(queries)
	all, err := kafka.Offsets(t.Context(), open(broker.Addr), "killed", 0, 1)
	if err != nil || all[0].End != ends[0] || all[1].End != ends[1] {
		t.Errorf("the old topic ended at %v and has %v, %v", ends, all, err)
	}
	t.Logf("%d writes were refused and sent again, %d queries refused", w.again.Load(), w.refused.Load())
}
