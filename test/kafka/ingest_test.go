//go:build e2e

package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/ingest"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/topics"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/test/ports"
)

// allNew makes the write path send the labels of all series with each batch.
type allNew struct{}

func (allNew) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	for i := range b.Keys {
		dst = append(dst, uint32(i))
	}
	return dst, nil
}

// named gives the series of a batch their labels.
type named []string

func (n named) BuildLabels(i int, b *model.LabelsBuilder) {
	if n[i][0] == 'l' { // a stream of lines
		b.Add([]byte("app"), []byte("probe"))
		b.Add([]byte("stream"), []byte(n[i]))
		return
	}
	b.Add([]byte("__name__"), []byte("probe"))
	b.Add([]byte("series"), []byte(n[i]))
}

func keyOf(t *testing.T, seed model.KeySeed, n named, i int, signal model.Signal) model.Key {
	t.Helper()
	var lb model.LabelsBuilder
	n.BuildLabels(i, &lb)
	l, err := lb.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return model.Labels(l).Key(seed, signal)
}

// machine runs partitions of a topic.
type machine struct {
	t       *testing.T
	dir     string
	c       kafka.Connection
	bucket  bucket.Bucket
	catalog *catalog.Catalog
	seed    model.KeySeed
	epochs  []topics.Epoch
}

func (m *machine) open(ctx context.Context, partition int32, drain time.Duration) (*ingest.Partition, error) {
	return ingest.Open(ctx, ingest.Options{
		Connection: m.c, Epochs: m.epochs, Partition: partition, Bucket: m.bucket, Catalog: m.catalog,
		Life: strconv.FormatUint(rand.Uint64(), 16), ShipEvery: 200 * time.Millisecond, Drain: drain,
		Head:   head.Options{FS: vfs.Default, Dir: filepath.Join(m.dir, topics.Node(partition)), Seed: m.seed, KnownBytes: 8 << 20, RowBytes: 8 << 20, LabelBytes: 8 << 20},
		Logger: slog.New(slog.DiscardHandler),
	})
}

// lives opens a partition again and again, until done is closed. Half of its lives end like a machine that is
// lost: without a last ship, and the next life finds nothing.
func (m *machine) lives(partition int32, done <-chan struct{}) (lives, lost, stale int) {
	for {
		select {
		case <-done:
			return lives, lost, stale
		default:
		}
		drain := 30 * time.Second
		if rand.IntN(2) == 0 {
			drain, lost = 1, lost+1
		}
		p, err := m.open(m.t.Context(), partition, drain)
		if errors.Is(err, model.ErrTransient) { // a slow broker
			continue
		}
		if err != nil {
			m.t.Errorf("%s: partition %d: %v", m.dir, partition, err)
			return lives, lost, stale
		}
		lives++
		ctx, cancel := context.WithTimeout(m.t.Context(), time.Duration(rand.IntN(2000))*time.Millisecond)
		err = p.Run(ctx)
		cancel()
		switch {
		case errors.Is(err, catalog.ErrStale):
			stale++
		case err != nil && drain > 1 && !errors.Is(err, model.ErrTransient):
			m.t.Errorf("%s: partition %d: %v", m.dir, partition, err)
		}
		if err := p.Close(); err != nil {
			m.t.Errorf("%s: partition %d: closing: %v", m.dir, partition, err)
		}
	}
}

// Writers write through the write path to Kafka. Two machines run all partitions at the same time, lose their
// disks, and take over from each other. A server over the bucket then has every row once.
func testIngest(t *testing.T, broker *Broker) {
	c := open(broker.Addr)
	topic := create(t, broker, c, "ingested", 4)
	dir := t.TempDir()
	b, err := bucketfs.New(vfs.Default, filepath.Join(dir, "bucket"))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := catalog.EnsureSeed(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	e, err := topics.Add(t.Context(), b, nil, topics.Epoch{Topic: topic.Name, ID: topic.ID, Partitions: topic.Partitions, Begins: make([]int64, topic.Partitions)})
	if err != nil {
		t.Fatal(err)
	}
	path := write.New(write.Options{Seed: seed, Head: allNew{}, Journal: producer(t, c, topic), Limits: config.Default().Write})
	newMachine := func(name string) *machine {
		cat, err := catalog.Open(t.Context(), b, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return &machine{t, filepath.Join(dir, name), c, b, cat, seed, []topics.Epoch{e}}
	}
	done := make(chan struct{})
	var machines sync.WaitGroup
	stop := sync.OnceFunc(func() {
		close(done)
		machines.Wait()
	})
	defer stop()
	var counting sync.Mutex
	var lives, lost, stale int
	for _, name := range []string{"a", "b"} {
		m := newMachine(name)
		for p := range topic.Partitions {
			machines.Go(func() {
				x, y, z := m.lives(p, done)
				counting.Lock()
				defer counting.Unlock()
				lives, lost, stale = lives+x, lost+y, stale+z
			})
		}
	}
	const rounds, series = 300, 12
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	for round := range rounds {
		at := begin.Add(time.Duration(round) * time.Second).UnixNano()
		var metrics, lines named
		for i := range series {
			metrics, lines = append(metrics, fmt.Sprint("m", i)), append(lines, fmt.Sprint("l", i))
		}
		for signal, n := range map[model.Signal]named{model.Metrics: metrics, model.Logs: lines} {
			batch := path.Batch("anonymous", signal)
			batch.Source = n
			for i := range n {
				if signal == model.Metrics {
					batch.Samples.Append(at, math.Float64bits(float64(round*series+i)), 0)
				} else {
					begin := len(batch.Text.Bytes)
					batch.Text.Bytes = model.AppendLine(batch.Text.Bytes, &model.Line{Text: fmt.Appendf(nil, "line %d of %s", round, n[i])})
					batch.Text.EndBlob(at, model.KindText, begin, 0)
				}
				batch.EndSeries(keyOf(t, seed, n, i, signal))
			}
			if res, err := path.Push(t.Context(), batch); err != nil || len(res.Rejected) > 0 {
				t.Fatalf("round %d: %+v, %v", round, res, err)
			}
			path.Recycle(batch)
		}
	}
	stop()
	last := newMachine("c")
	for p := range topic.Partitions {
		ends, err := kafka.Offsets(t.Context(), c, topic.Name, p)
		if err != nil {
			t.Fatal(err)
		}
		one, err := last.open(t.Context(), p, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- one.Run(ctx) }()
		waitFor(t, "the ship of the last record", func() bool { return one.Shipped() == ends[p].End || len(ended) > 0 })
		cancel()
		if err := errors.Join(<-ended, one.Close()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d lives, %d of them lost with their disks, %d ended by another machine", lives, lost, stale)
	compareWithServer(t, filepath.Join(dir, "bucket"), begin, rounds, series)
}

// compareWithServer starts a server over the bucket and compares every row.
func compareWithServer(t *testing.T, bucket string, begin time.Time, rounds, series int) {
	t.Helper()
	addrs, err := ports.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(buildShale(t), "serve", "--data-dir", t.TempDir(), "--bucket", bucket, "--http-listen", addrs[0], "--graphite-listen=", "--graphite-pickle-listen=", "--memory", "1GiB")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}()
	get := func(path string, values url.Values, into any) error {
		resp, err := http.Get("http://" + addrs[0] + path + "?" + values.Encode())
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
		}
		if err != nil || into == nil {
			return err
		}
		return json.Unmarshal(text, into)
	}
	waitFor(t, "the server", func() bool { return get("/ready", nil, nil) == nil })
	end := begin.Add(time.Duration(rounds) * time.Second)
	var metrics struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := get("/api/v1/query", url.Values{"query": {fmt.Sprintf("probe[%ds]", rounds+10)}, "time": {fmt.Sprint(end.Unix())}}, &metrics); err != nil {
		t.Fatal(err)
	}
	if n := len(metrics.Data.Result); n != series {
		t.Errorf("%d series of metrics, expected %d", n, series)
	}
	for _, s := range metrics.Data.Result {
		i, err := strconv.Atoi(s.Metric["series"][1:])
		if err != nil || len(s.Values) != rounds {
			t.Errorf("series %v: %d samples, expected %d", s.Metric, len(s.Values), rounds)
			continue
		}
		for round, v := range s.Values {
			if v[0] != float64(begin.Unix()+int64(round)) || v[1] != fmt.Sprint(round*series+i) {
				t.Errorf("series %v: sample %d is %v", s.Metric, round, v)
				break
			}
		}
	}
	var lines struct {
		Data struct {
			Result []struct {
				Stream map[string]string
				Values [][2]string
			}
		}
	}
	if err := get("/loki/api/v1/query_range", url.Values{"query": {`{app="probe"}`}, "limit": {"5000"}, "direction": {"forward"},
		"start": {fmt.Sprint(begin.UnixNano())}, "end": {fmt.Sprint(end.UnixNano())}}, &lines); err != nil {
		t.Fatal(err)
	}
	found := map[string][][2]string{}
	for _, s := range lines.Data.Result {
		found[s.Stream["stream"]] = append(found[s.Stream["stream"]], s.Values...)
	}
	if len(found) != series {
		t.Errorf("%d streams of lines, expected %d", len(found), series)
	}
	for stream, values := range found {
		if len(values) != rounds {
			t.Errorf("stream %s: %d lines, expected %d", stream, len(values), rounds)
			continue
		}
		for round, v := range values {
			if v[1] != fmt.Sprintf("line %d of %s", round, stream) {
				t.Errorf("stream %s: line %d is %v", stream, round, v)
				break
			}
		}
	}
}

// A partition stops at rows whose labels it has never seen, and ships what came before.
func testUnlabelled(t *testing.T, broker *Broker) {
	c := open(broker.Addr)
	topic := create(t, broker, c, "unlabelled", 1)
	dir := t.TempDir()
	b, err := bucketfs.New(vfs.Default, filepath.Join(dir, "bucket"))
	if err != nil {
		t.Fatal(err)
	}
	cat, err := catalog.Open(t.Context(), b, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := producer(t, c, topic)
	now := time.Now().UnixNano()
	labelled := func(i int) *model.Batch {
		n := named{fmt.Sprint("m", i)}
		batch := &model.Batch{Tenant: "anonymous", Signal: model.Metrics}
		batch.AddSample(keyOf(t, 1, n, 0, model.Metrics), now, 1)
		var lb model.LabelsBuilder
		n.BuildLabels(0, &lb)
		l, err := lb.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		batch.Labels.Append(0, l)
		return batch
	}
	first, bare := labelled(1), labelled(2)
	bare.Labels.Reset()
	again := labelled(1)
	again.Labels.Reset() // known from the first
	for _, batch := range []*model.Batch{first, again, bare, first} {
		if err := p.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	e := topics.Epoch{Number: 1, Topic: topic.Name, ID: topic.ID, Partitions: 1, Begins: []int64{0}}
	m := &machine{t, dir, c, b, cat, 1, []topics.Epoch{e}}
	part, err := m.open(t.Context(), 0, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	err = part.Run(t.Context())
	var unlabelled *ingest.UnlabelledError
	if !errors.As(err, &unlabelled) || unlabelled.Offset != 2 || unlabelled.Count != 1 {
		t.Errorf("got %v, expected rows without labels at offset 2", err)
	}
	t.Log(err)
	if err := part.Close(); err != nil {
		t.Error(err)
	}
	if v := cat.Covered(topics.Node(0), 1); v.To != 2 {
		t.Errorf("the bucket covers %+v, expected the two records before", v)
	}
	// Retention passes what is not in the bucket: the next owner refuses.
	e.Begins[0] = 0
	next := e
	next.Number, next.Topic = 2, "unlabelled-2"
	m.epochs = append(m.epochs, next)
	if _, err := m.open(t.Context(), 0, time.Minute); !errors.Is(err, model.ErrTransient) {
		t.Errorf("an epoch whose parent is not closed: got %v", err)
	}
}
