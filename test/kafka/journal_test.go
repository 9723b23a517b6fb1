//go:build e2e

package kafka

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/shaledb/shale/internal/auth/certstest"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestKafka runs tests over one server at the same time, as they mostly wait.
func TestKafka(t *testing.T) {
	t.Parallel()
	broker := start(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *Broker)
	}{
		{"AppendAndRead", testAppendAndRead},
		{"RetentionGap", testRetentionGap},
		{"Poison", testPoison},
		{"Damage", testDamage},
		{"MadeAgain", testMadeAgain},
		{"Secure", testSecure},
		{"Ingest", testIngest},
		{"Unlabelled", testUnlabelled},
		{"IngestRole", testIngestRole},
		{"AcceptLoss", testAcceptLoss},
		{"OneProcess", testOneProcess},
		{"Zombie", testZombie},
		{"Commands", testCommands},
		{"EqualRoles", testEqualRoles},
		{"Doubling", testDoubling},
		{"SecondGroup", testSecondGroup},
		{"LabelsAgain", testLabelsAgain},
		{"SeriesLimit", testSeriesLimit},
		{"CreationRate", testCreationRate},
		{"GroupLimits", testGroupLimits},
		{"Brake", testBrake},
		{"StateMadeAgain", testStateMadeAgain},
		{"Tail", testTail},
		{"RelabelUnderMoves", testRelabelUnderMoves},
		// The last one begins first. These wait for the end of a session, which takes a minute.
		{"Whole", testWhole},
		{"Sleeper", testSleeper},
		{"GroupMoves", testGroupMoves},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, broker)
		})
	}
}

// TestBroker runs tests that kill the server, one after the other.
func TestBroker(t *testing.T) {
	t.Parallel()
	broker := start(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *Broker)
	}{
		{"KillBroker", testKillBroker},
		{"PowerCut", testPowerCut},
		{"Overwritten", testOverwritten},
		{"Away", testAway},
		{"KillsUnderLoad", testKillsUnderLoad},
		{"DoublingKilled", testDoublingKilled},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, broker) })
	}
}

// TestBrokerOfRoles runs more of them at the same time, with a server of their own.
func TestBrokerOfRoles(t *testing.T) {
	t.Parallel()
	broker := start(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *Broker)
	}{
		{"KillRoles", testKillRoles},
		{"Pairs", testPairs},
		{"Deletions", testDeletions},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, broker) })
	}
}

func start(t *testing.T) *Broker {
	authority := certstest.New(t, "test authority")
	pair := authority.Server(t, "kafka")
	return Start(t, Keys{authority.PEM(), append(pair.Key, pair.Cert...)})
}

func open(addr string) kafka.Connection { return kafka.Connection{Brokers: []string{addr}} }

func create(t *testing.T, broker *Broker, c kafka.Connection, topic string, partitions int32) *kafka.Topic {
	t.Helper()
	broker.Own(t, topic)
	made, err := kafka.Create(t.Context(), c, kafka.Plan{Topic: topic, Partitions: partitions, Replicas: 1, MinInsync: 1, Retention: 48 * time.Hour, MaxMessage: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if refused := kafka.Refused(kafka.Check(made)); len(refused) > 0 {
		t.Fatalf("a topic that Create has made is refused: %+v", refused)
	}
	return made
}

func producer(t *testing.T, c kafka.Connection, topic *kafka.Topic) *kafka.Producer {
	t.Helper()
	p, err := kafka.OpenProducer(t.Context(), kafka.ProducerOptions{
		Connection: c, Topic: topic.Name, TopicID: topic.ID, Partitions: topic.Partitions, MaxBytes: 8 << 20, Deliver: 40 * time.Second, VerifyEvery: 500 * time.Millisecond,
		PartitionOf: func(k model.Key) int32 { return topics.PartitionOf(k, topic.Partitions) }, Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	return p
}

func reader(t *testing.T, c kafka.Connection, topic *kafka.Topic, partition int32, from int64) *kafka.Reader {
	t.Helper()
	r, err := kafka.OpenReader(t.Context(), kafka.ReaderOptions{Connection: c, Topic: topic.Name, TopicID: topic.ID, Partition: partition, From: from})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// key makes the key of a series of one writer. The tail spreads over partitions.
func key(writer, n int) model.Key {
	return model.Key{Hi: uint64(writer), Lo: uint64(n)*16 + rand.Uint64N(16)}
}

// readAll reads each partition up to its present end.
func readAll(t *testing.T, c kafka.Connection, topic *kafka.Topic, fn func(partition int32, r *kafka.Record)) {
	t.Helper()
	for p := range topic.Partitions {
		ends, err := kafka.Offsets(t.Context(), c, topic.Name, p)
		if err != nil {
			t.Fatal(err)
		}
		r := reader(t, c, topic, p, 0)
		for r.Next() < ends[p].End {
			if err := r.Read(t.Context(), func(rec *kafka.Record) error { fn(p, rec); return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A batch comes back whole: each series in its partition, with its labels, rows and lines.
func testAppendAndRead(t *testing.T, broker *Broker) {
	c := open(broker.Addr)
	topic := create(t, broker, c, "append-and-read", 16)
	p := producer(t, c, topic)
	const series = 1000
	type row struct {
		partition int32
		labels    string
		times     []int64
		line      string
	}
	want := map[model.Key]row{}
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		b := &model.Batch{Tenant: "team", Signal: signal}
		for i := range series {
			k := key(int(signal), i)
			w := row{partition: topics.PartitionOf(k, 16)}
			if i%3 == 0 {
				var lb model.LabelsBuilder
				lb.Add([]byte("n"), []byte(fmt.Sprint(i)))
				l, err := lb.Append(nil)
				if err != nil {
					t.Fatal(err)
				}
				b.Labels.Append(uint32(len(b.Keys)), l)
				w.labels = string(l)
			}
			for j := range 1 + i%4 {
				at := int64(i)*1e9 + int64(j)
				w.times = append(w.times, at)
				if signal == model.Logs {
					w.line = fmt.Sprintf("line %d of %d", j, i)
					b.Text.AppendBlob(at, model.KindText, []byte(w.line), 0)
				} else {
					b.Samples.Append(at, uint64(i), int64(i%2))
				}
			}
			b.EndSeries(k)
			want[k] = w
		}
		if err := p.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	control := &model.Batch{Tenant: "team", Signal: model.Metrics, Control: model.Control{Kind: model.ControlDelete, Body: []byte("order")}}
	if err := p.Append(t.Context(), control); err != nil {
		t.Fatal(err)
	}
	got, controls := map[model.Key]row{}, 0
	readAll(t, c, topic, func(partition int32, r *kafka.Record) {
		b := r.Batch
		if b.Tenant != "team" {
			t.Errorf("partition %d, offset %d: tenant %q", partition, r.Offset, b.Tenant)
		}
		if b.Control.Kind == model.ControlDelete && string(b.Control.Body) == "order" {
			controls++
		}
		label := 0
		for i, k := range b.Keys {
			w := row{partition: partition}
			if label < b.Labels.Len() && b.Labels.Series[label] == uint32(i) {
				w.labels = string(b.Labels.At(label))
				label++
			}
			rows := &b.Samples
			if b.Signal == model.Logs {
				rows = &b.Text
			}
			for j := rows.Begin(i); j < rows.End(i); j++ {
				w.times = append(w.times, rows.Times[j])
				if b.Signal == model.Logs {
					w.line = string(rows.Blob(int(j)))
				}
			}
			got[k] = w
		}
	})
	if controls != 16 {
		t.Errorf("%d partitions have the control record, expected all 16", controls)
	}
	if len(got) != len(want) {
		t.Fatalf("%d series came back, expected %d", len(got), len(want))
	}
	for k, w := range want {
		if fmt.Sprint(got[k]) != fmt.Sprint(w) {
			t.Fatalf("series %s: got %v, expected %v", k, got[k], w)
		}
	}
	large := &model.Batch{Tenant: "team", Signal: model.Logs}
	large.Text.AppendBlob(1, model.KindText, randomBytes(17<<20), 0)
	large.EndSeries(key(9, 9))
	if err := p.Append(t.Context(), large); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a row of 17 MiB: got %v, expected an error of class invalid", err)
	}
	// Rows that fit one by one are divided.
	several := &model.Batch{Tenant: "team", Signal: model.Logs}
	many := key(10, 10)
	for i := range 5 {
		several.Text.AppendBlob(int64(i), model.KindText, randomBytes(5<<20), 0)
	}
	several.EndSeries(many)
	if err := p.Append(t.Context(), several); err != nil {
		t.Fatalf("a part of 25 MiB: %v", err)
	}
	var times []int64
	readAll(t, c, topic, func(_ int32, r *kafka.Record) {
		if len(r.Batch.Keys) == 1 && r.Batch.Keys[0] == many {
			times = append(times, r.Batch.Text.Times...)
		}
	})
	if fmt.Sprint(times) != "[0 1 2 3 4]" {
		t.Errorf("rows of a divided part came back at %v", times)
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, rand.Uint64())
	}
	return b[:n]
}

// The broker is killed twice while 16 writers write. Every acknowledged batch is there once.
func testKillBroker(t *testing.T, broker *Broker) {
	c := open(broker.Addr)
	topic := create(t, broker, c, "broker-killed", 4)
	p := producer(t, c, topic)
	const writers = 16
	acked := make([][]int, writers)
	var total, refused atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	halt := sync.OnceFunc(func() { close(stop); all.Wait() })
	t.Cleanup(halt) // writers log, which they must not after the test
	for w := range writers {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				b := &model.Batch{Tenant: "team", Signal: model.Metrics}
				// Two series, so that most batches have parts in two partitions.
				b.AddSample(model.Key{Hi: uint64(w), Lo: uint64(n)<<8 | uint64(n)&3}, int64(n)+1, uint64(n))
				b.AddSample(model.Key{Hi: uint64(w) + 100, Lo: uint64(n)<<8 | uint64(n+1)&3}, int64(n)+1, uint64(n))
				if err := p.Append(t.Context(), b); err != nil {
					refused.Add(1)
					t.Logf("writer %d: %v", w, err)
					continue
				}
				acked[w] = append(acked[w], n)
				total.Add(1)
			}
		})
	}
	for range 2 {
		waitFor(t, "2,000 more batches", func() bool { return total.Load() >= 2000 })
		broker.Kill()
		broker.Restart()
		total.Store(0)
	}
	waitFor(t, "2,000 batches after the last kill", func() bool { return total.Load() >= 2000 })
	halt()
	counts := map[[2]uint64]int{}
	records := 0
	readAll(t, c, topic, func(_ int32, r *kafka.Record) {
		records++
		for _, k := range r.Batch.Keys {
			counts[[2]uint64{k.Hi, k.Lo >> 8}]++
		}
	})
	missing, doubled, batches := 0, 0, 0
	for w := range writers {
		batches += len(acked[w])
		for _, n := range acked[w] {
			for _, hi := range []int{w, w + 100} {
				switch counts[[2]uint64{uint64(hi), uint64(n)}] {
				case 0:
					missing++
				case 1:
				default:
					doubled++
				}
			}
		}
	}
	t.Logf("%d batches acknowledged, %d refused, in %d records: %d missing, %d doubled", batches, refused.Load(), records, missing, doubled)
	if missing > 0 || doubled > 0 {
		t.Errorf("%d acknowledged series are missing and %d are there more than once", missing, doubled)
	}
}

// patience is after how long a test fails because something has not come. It only has to be longer than a
// busy machine takes.
const patience = 5 * time.Minute

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%s did not come", what)
		}
	}
}

// Retention deletes what a reader has not read. The reader says which offsets are gone, and so does one that
// was reading.
func testRetentionGap(t *testing.T, broker *Broker) {
	c := open(broker.Addr)
	topic := create(t, broker, c, "short", 2)
	p := producer(t, c, topic)
	const partition = 1
	write := func() {
		t.Helper()
		b := &model.Batch{Tenant: "team", Signal: model.Logs}
		b.Text.AppendBlob(1, model.KindText, randomBytes(300<<10), 0)
		b.EndSeries(model.Key{Hi: 1, Lo: partition})
		if err := p.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		write()
	}
	r := reader(t, c, topic, partition, 0)
	if err := r.Read(t.Context(), func(*kafka.Record) error { return nil }); err != nil || r.Next() == 0 {
		t.Fatalf("read up to %d: %v", r.Next(), err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	short, segment := "1000", "1048576"
	if _, err := kadm.NewClient(cl).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "retention.ms", Value: &short}, {Op: kadm.SetConfig, Name: "segment.bytes", Value: &segment},
	}, topic.Name); err != nil {
		t.Fatal(err)
	}
	var has kafka.Extent
	waitFor(t, "deletion by retention", func() bool {
		write() // new segments begin with records
		offsets, err := kafka.Offsets(t.Context(), c, topic.Name, partition)
		if err != nil {
			t.Fatal(err)
		}
		has = offsets[partition]
		return has.Start > 10
	})
	behind := r.Next()
	for _, from := range []int64{0, behind} {
		later := reader(t, c, topic, partition, from)
		var gap *kafka.GapError
		for err = nil; err == nil && later.Next() == from; {
			err = later.Read(t.Context(), func(r *kafka.Record) error { return nil })
		}
		if !errors.As(err, &gap) || gap.Partition != partition || gap.From != from || gap.To < has.Start-1 || !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("reading from %d of %+v: got %v, expected a gap", from, has, err)
		}
		if again := later.Read(t.Context(), func(*kafka.Record) error { return nil }); again != err {
			t.Errorf("the next read: got %v, expected the same gap", again)
		}
	}
	// The reader has records in memory that it may give; then it meets the gap.
	for err = nil; err == nil; {
		next := r.Next()
		err = r.Read(t.Context(), func(rec *kafka.Record) error {
			if rec.Offset != next {
				t.Errorf("offset %d came after %d", rec.Offset, next-1)
			}
			next++
			return nil
		})
	}
	var gap *kafka.GapError
	if !errors.As(err, &gap) || gap.From != r.Next() {
		t.Fatalf("the reader from before: got %v at %d, expected a gap", err, r.Next())
	}
	t.Log(err)
	// Another partition of the topic is read on.
	other := reader(t, c, topic, 0, 0)
	if err := other.Read(t.Context(), func(*kafka.Record) error { return nil }); err != nil {
		t.Errorf("partition 0: %v", err)
	}
}

// A record that is not one of the journal stops its partition at its offset.
func testPoison(t *testing.T, broker *Broker) {
	c := open(broker.Addr)
	topic := create(t, broker, c, "poison", 1)
	p := producer(t, c, topic)
	sample := &model.Batch{Tenant: "team", Signal: model.Metrics}
	sample.AddSample(model.Key{Lo: 1}, 1, 1)
	if err := p.Append(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic.Name, Value: []byte("hello")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := p.Append(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	r := reader(t, c, topic, 0, 0)
	for err = nil; err == nil; {
		err = r.Read(t.Context(), func(*kafka.Record) error { return nil })
	}
	var poison *kafka.PoisonError
	if !errors.As(err, &poison) || poison.Offset != 1 || r.Next() != 1 {
		t.Fatalf("got %v at %d, expected poison at offset 1", err, r.Next())
	}
	t.Log(err)
}

// A flipped bit in a broker's file is found, and no later record is read.
func testDamage(t *testing.T, broker *Broker) {
	c := open(broker.Addr)
	topic := create(t, broker, c, "damage", 1)
	p := producer(t, c, topic)
	sample := &model.Batch{Tenant: "team", Signal: model.Metrics}
	sample.AddSample(model.Key{Lo: 1}, 1, 1)
	for range 3 {
		if err := p.Append(t.Context(), sample); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(broker.Logs(), topic.Name+"-0", "00000000000000000000.log")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	middle := bytes.LastIndex(data[:bytes.LastIndex(data, []byte("team"))], []byte("team"))
	if _, err := f.WriteAt([]byte{data[middle] ^ 1}, int64(middle)); err != nil {
		t.Fatal(err)
	}
	r := reader(t, c, topic, 0, 0)
	for err = nil; err == nil; {
		err = r.Read(t.Context(), func(*kafka.Record) error { return nil })
	}
	var poison *kafka.PoisonError
	if !errors.As(err, &poison) || poison.Offset != 1 || r.Next() != 1 {
		t.Fatalf("got %v at %d, expected poison at offset 1", err, r.Next())
	}
	t.Log(err)
}

// A topic that is deleted and made again is another one: writers and readers of the first stop.
func testMadeAgain(t *testing.T, broker *Broker) {
	c := open(broker.Addr)
	first := create(t, broker, c, "again", 1)
	p := producer(t, c, first)
	sample := &model.Batch{Tenant: "team", Signal: model.Metrics}
	sample.AddSample(model.Key{Lo: 1}, 1, 1)
	for range 3 {
		if err := p.Append(t.Context(), sample); err != nil {
			t.Fatal(err)
		}
	}
	r := reader(t, c, first, 0, 0)
	for r.Next() < 3 {
		if err := r.Read(t.Context(), func(*kafka.Record) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).DeleteTopic(t.Context(), first.Name); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the deletion", func() bool {
		_, err := kafka.Describe(t.Context(), c, first.Name)
		return errors.Is(err, kafka.ErrNoTopic)
	})
	second := create(t, broker, c, first.Name, 1)
	waitFor(t, "the refusal of writes", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wrong *kafka.TopicError
		return errors.As(p.Append(ctx, sample), &wrong)
	})
	fresh := producer(t, c, second)
	for range 10 {
		if err := fresh.Append(t.Context(), sample); err != nil {
			t.Fatal(err)
		}
	}
	var wrong *kafka.TopicError
	waitFor(t, "the refusal of reads", func() bool {
		err := r.Read(t.Context(), func(rec *kafka.Record) error {
			t.Errorf("offset %d of the second topic was read as one of the first", rec.Offset)
			return nil
		})
		return errors.As(err, &wrong)
	})
	t.Log(wrong)
	if _, err := kafka.OpenReader(t.Context(), kafka.ReaderOptions{Connection: c, Topic: first.Name, TopicID: first.ID}); !errors.As(err, &wrong) {
		t.Errorf("opening a reader: got %v", err)
	}
}

// Login and TLS work, and fail with errors that name what is wrong.
func testSecure(t *testing.T, broker *Broker) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("not it\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mechanism := range []string{kafka.Plain, kafka.SCRAM512} {
		c := kafka.Connection{Brokers: []string{broker.Secure}, TLS: true, CAFile: broker.CA, Mechanism: mechanism, User: User, PasswordFile: password}
		topic := create(t, broker, c, "secure-"+mechanism, 1)
		p := producer(t, c, topic)
		sample := &model.Batch{Tenant: "team", Signal: model.Metrics}
		sample.AddSample(model.Key{Lo: 1}, 1, 1)
		if err := p.Append(t.Context(), sample); err != nil {
			t.Errorf("%s: %v", mechanism, err)
		}
		refused := c
		refused.PasswordFile = wrong
		if _, err := kafka.Describe(t.Context(), refused, topic.Name); !errors.Is(err, kerr.SaslAuthenticationFailed) {
			t.Errorf("%s: a wrong password: got %v", mechanism, err)
		}
	}
	strange := kafka.Connection{Brokers: []string{broker.Secure}, TLS: true, Mechanism: kafka.Plain, User: User, PasswordFile: password}
	var unknown x509.UnknownAuthorityError
	if _, err := kafka.Describe(t.Context(), strange, "secure-plain"); !errors.As(err, &unknown) {
		t.Errorf("a broker of an unknown authority: got %v", err)
	}
}
