//go:build e2e

package kafka

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
)

// shale runs the program of the repository, and returns its output, its messages and its exit code.
func shale(t *testing.T, program string, args ...string) (out, messages string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), code
}

// built is the program, next to those of Kafka.
var built = sync.OnceValues(func() (string, error) {
	path, err := find("kafka")
	if err != nil {
		return "", err
	}
	path = filepath.Join(filepath.Dir(path), "shale")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/shaledb/shale/cmd/shale").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func buildShale(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The commands make a topic, refuse those with wrong settings, and begin epochs.
func testCommands(t *testing.T, broker *Broker) {
	program := buildShale(t)
	broker.Own(t, "writes")
	file := filepath.Join(t.TempDir(), "shale.yaml")
	bucket := t.TempDir()
	if err := os.WriteFile(file, []byte("bucket: "+bucket+"\nkafka:\n  brokers: "+broker.Addr+"\n  topic: writes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type result struct {
		Topic      string
		Epoch      uint64
		Partitions int32
		Findings   []kafka.Finding
		Extents    []struct{ Partition, Start, End, Shipped int64 }
	}
	// run runs a subcommand, and expects a code and a part of the messages.
	run := func(code int, says string, args ...string) (r result) {
		t.Helper()
		out, messages, got := shale(t, program, append([]string{"kafka", args[0], "--config", file, "--json"}, args[1:]...)...)
		if got != code || !strings.Contains(messages, says) {
			t.Fatalf("%q: exit code %d and %q, expected %d and %q\n%s", args, got, messages, code, says, out)
		}
		if out != "" {
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("%q: %v\n%s", args, err, out)
			}
		}
		return r
	}
	run(1, "the cluster has no such topic; shale kafka create makes it", "check")
	run(2, "expected a power of two", "create", "--partitions", "3")
	run(2, "expected at least 2 with 3 replicas", "create", "--min-insync", "1")
	run(1, "INVALID_REPLICATION_FACTOR", "create")
	run(2, "would not be used: kafka.tls is off", "create", "--kafka.tls-ca-file", broker.CA)
	run(2, "would not be used: kafka.sasl-mechanism is empty", "check", "--kafka.sasl-user", "me")
	if r := run(0, "", "create", "--partitions", "4", "--replicas", "1", "--min-insync", "1"); r.Epoch != 1 || r.Partitions != 4 || r.Topic != "writes" {
		t.Errorf("create: %+v", r)
	}
	run(1, "records topic writes as epoch 1 already", "create", "--partitions", "4", "--replicas", "1", "--min-insync", "1")
	r := run(0, "", "check")
	if len(r.Extents) != 4 || len(r.Findings) != 1 || r.Findings[0].Setting != "replicas" || r.Findings[0].Refused {
		t.Errorf("check: %+v", r)
	}

	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	// Each wrong setting is refused by its name, and restored.
	for _, wrong := range [][2]string{
		{"cleanup.policy", "compact"}, {"cleanup.policy", "compact,delete"}, {"retention.ms", "3600000"}, {"max.message.bytes", "100000"}, {"message.timestamp.type", "CreateTime"},
		{"unclean.leader.election.enable", "true"}, {"min.insync.replicas", "2"},
	} {
		change := func(a kadm.AlterConfig) {
			t.Helper()
			all, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{a}, "writes")
			if err == nil {
				_, err = all.On("writes", func(r *kadm.AlterConfigsResponse) error { return r.Err })
			}
			if err != nil {
				t.Fatal(err)
			}
			// The controller has it; the broker takes it over a little later.
			waitFor(t, "the broker has "+a.Name, func() bool {
				described, err := admin.DescribeTopicConfigs(t.Context(), "writes")
				if err != nil {
					t.Fatal(err)
				}
				topic, err := described.On("writes", nil)
				return err == nil && slices.ContainsFunc(topic.Configs, func(c kadm.Config) bool { return c.Key == a.Name && c.MaybeValue() == *a.Value })
			})
		}
		before := map[string]string{"message.timestamp.type": "LogAppendTime", "retention.ms": "172800000", "max.message.bytes": "16777216", "min.insync.replicas": "1", "cleanup.policy": "delete", "unclean.leader.election.enable": "false"}[wrong[0]]
		change(kadm.AlterConfig{Op: kadm.SetConfig, Name: wrong[0], Value: &wrong[1]})
		run(1, "topic writes is refused: "+wrong[0]+" = "+wrong[1], "check")
		change(kadm.AlterConfig{Op: kadm.SetConfig, Name: wrong[0], Value: &before})
	}
	// Deleted records that the bucket does not have are a loss.
	topic, err := kafka.Describe(t.Context(), open(broker.Addr), "writes")
	if err != nil {
		t.Fatal(err)
	}
	p := producer(t, open(broker.Addr), topic)
	sample := &model.Batch{Tenant: "team", Signal: model.Metrics}
	sample.AddSample(model.Key{Lo: 2}, 1, 1)
	for range 5 {
		if err := p.Append(t.Context(), sample); err != nil {
			t.Fatal(err)
		}
	}
	var offsets kadm.Offsets
	offsets.AddOffset("writes", 2, 3, -1)
	if deleted, err := admin.DeleteRecords(t.Context(), offsets); err != nil || deleted.Error() != nil {
		t.Fatal(err, deleted.Error())
	}
	r = run(1, "Kafka has deleted the records with offsets 0 to 2, which are not in the bucket", "check")
	if x := r.Extents[2]; x.Start != 3 || x.End != 5 || x.Shipped != 0 {
		t.Errorf("partition 2: %+v", x)
	}

	// Another topic begins another epoch.
	run(1, "that of epoch 1 already; there is nothing to do", "adopt")
	run(1, "topic writes is that of epoch 1: a topic is used once", "double", "writes")
	run(1, "needs journal-version 3", "double", "too-early", "--journal-version", "2")
	if _, err := kafka.Describe(t.Context(), open(broker.Addr), "too-early"); !errors.Is(err, kafka.ErrNoTopic) {
		t.Errorf("a command that was refused has made a topic: %v", err)
	}
	create(t, broker, open(broker.Addr), "small", 2)
	run(1, "the next one has as many, or twice as many", "adopt", "--kafka.topic", "small")
	double := create(t, broker, open(broker.Addr), "double", 8)
	run(1, "the bucket records topic writes as epoch 1", "check", "--kafka.topic", "double")
	if err := producer(t, open(broker.Addr), double).Append(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	run(2, "has 1 record: say --from start", "adopt", "--kafka.topic", "double")
	if r := run(0, "", "adopt", "--kafka.topic", "double", "--from", "end", "--dry-run"); r.Epoch != 2 {
		t.Errorf("adopt --dry-run: %+v", r)
	}
	// Nothing follows a topic that cannot be read up to its end, and it is not sealed.
	run(1, "Give them up first: shale kafka accept-loss 2:0-2", "adopt", "--kafka.topic", "double", "--from", "end")
	if err := p.Append(t.Context(), sample); err != nil {
		t.Errorf("an append after a command that was refused: %v", err)
	}
	run(0, "", "accept-loss", "2:0-2")
	if r := run(0, "", "adopt", "--kafka.topic", "double", "--from", "end"); r.Epoch != 2 || r.Partitions != 8 {
		t.Errorf("adopt: %+v", r)
	}
	// The topic before takes no more, however large or small, and whoever asks.
	if err := producer(t, open(broker.Addr), topic).Append(t.Context(), sample); !errors.Is(err, kafka.ErrSealed) || !errors.Is(err, model.ErrTransient) {
		t.Errorf("an append to a topic that another one follows: %v", err)
	}
	if err := p.Append(t.Context(), sample); !errors.Is(err, kafka.ErrSealed) {
		t.Errorf("an append by a producer that was open before: %v", err)
	}
	if ends, err := kafka.Seal(t.Context(), open(broker.Addr), "writes", topic.ID, 4); err != nil || !slices.Equal(ends, []int64{1, 0, 6, 0}) {
		t.Errorf("the topic ends at %v, %v", ends, err)
	}
	for id, want := range map[string]error{topic.ID: nil, "Z0QiPvSMSIWJiSmPzyJFCg": kafka.ErrNoTopic} {
		if end, err := kafka.SealedEnd(t.Context(), open(broker.Addr), "writes", id, 2, 6, new(int32)); !errors.Is(err, want) || want == nil && end != 6 {
			t.Errorf("the end of a sealed partition, asked with the id %s: got %d, %v", id, end, err)
		}
	}
	if _, err := kafka.SealedEnd(t.Context(), open(broker.Addr), "none", topic.ID, 2, 5, nil); !errors.Is(err, kafka.ErrNoTopic) {
		t.Errorf("the end of a partition whose topic is gone: got %v", err)
	}
	// What the epoch before has lost is still said, and is given up by the name of its topic.
	offsets.AddOffset("writes", 2, 4, -1)
	if deleted, err := admin.DeleteRecords(t.Context(), offsets); err != nil || deleted.Error() != nil {
		t.Fatal(err, deleted.Error())
	}
	if r := run(1, "epoch 1 = writes: partition 2: Kafka has deleted the records with offsets 3 to 3", "check", "--kafka.topic", "double"); r.Extents[2].Shipped != 1 {
		t.Errorf("partition 2 of epoch 2 begins at %+v, expected offset 1", r.Extents[2])
	}
	run(0, "", "accept-loss", "2:3")
	// A topic that is lost takes a word of the operator.
	if _, err := admin.DeleteTopic(t.Context(), "double"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the deletion", func() bool {
		_, err := kafka.Describe(t.Context(), open(broker.Addr), "double")
		return errors.Is(err, kafka.ErrNoTopic)
	})
	create(t, broker, open(broker.Addr), "double", 8)
	run(1, "the topic was deleted and made again", "check", "--kafka.topic", "double")
	run(1, "--give-up-unshipped", "adopt", "--kafka.topic", "double")
	if r := run(0, "", "adopt", "--kafka.topic", "double", "--give-up-unshipped"); r.Epoch != 3 {
		t.Errorf("adopt after a loss: %+v", r)
	}
	if _, err := admin.DeleteTopic(t.Context(), "writes"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the deletion", func() bool {
		_, err := kafka.Describe(t.Context(), open(broker.Addr), "writes")
		return errors.Is(err, kafka.ErrNoTopic)
	})
	run(1, "epoch 1 = writes: the topic is gone, and the bucket does not say that it had all of its records", "check", "--kafka.topic", "double")
	run(1, "Kafka lacks the records from offset 4 to 5", "accept-loss", "2:4")
	run(0, "", "accept-loss", "2:4-5")
	run(0, "", "accept-loss", "0:0")
	if r := run(0, "", "check", "--kafka.topic", "double"); slices.ContainsFunc(r.Findings, func(f kafka.Finding) bool { return f.Setting == "epoch 1" }) {
		t.Errorf("all of epoch 1 is given up: %+v", r.Findings)
	}
	// No server pretends to use Kafka.
	_, messages, code := shale(t, program, "serve", "--config", file, "--data-dir", t.TempDir())
	if code != 2 || !strings.Contains(messages, "no write would go to Kafka") {
		t.Errorf("serve with kafka.brokers: exit code %d, %q", code, messages)
	}
	_, messages, code = shale(t, program, "serve", "--role", "gateway", "--data-dir", t.TempDir())
	if code != 2 || !strings.Contains(messages, "gateway requires kafka.brokers") {
		t.Errorf("serve --role gateway: exit code %d, %q", code, messages)
	}
}
