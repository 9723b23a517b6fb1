package ingest

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/bucket/fault"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/part"
	"github.com/shaledb/shale/internal/store/topics"
)

// topicLog is what brokers keep of a topic. Readers of it behave like those of package kafka.
type topicLog struct {
	mu      sync.Mutex
	records [][][]byte // of each partition
	changed chan struct{}
	leader  int32 // of all records
}

func newTopicLog(partitions int) *topicLog {
	return &topicLog{records: make([][][]byte, partitions), changed: make(chan struct{})}
}

// append adds a batch with the labels of all of its series, and returns its offset.
func (l *topicLog) append(partition int, b *worldtest.Batch, labels bool) int64 {
	var to model.Batch
	to.Tenant, to.Signal = b.Tenant, b.Signal
	b.AppendTo(&to, testSeed)
	if labels {
		for i := range b.Series {
			to.Labels.Append(uint32(i), b.Series[i].Labels)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records[partition] = append(l.records[partition], journal.EncodeBatch(nil, &to))
	close(l.changed)
	l.changed = make(chan struct{})
	return int64(len(l.records[partition]) - 1)
}

func (l *topicLog) end(partition int32) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.records[partition]))
}

// sealedEnd returns a function like [kafka.SealedEnd].
func (l *topicLog) sealedEnd(partition int32) func(context.Context, int64, *int32) (int64, error) {
	return func(context.Context, int64, *int32) (int64, error) { return l.end(partition), nil }
}

func (l *topicLog) open(_ context.Context, o kafka.ReaderOptions) (reader, error) {
	return &logReader{l: l, partition: o.Partition, next: o.From}, nil
}

type logReader struct {
	l         *topicLog
	partition int32
	next      int64
	batch     model.Batch
}

func (r *logReader) Next() int64 { return r.next }
func (r *logReader) End() int64  { return r.l.end(r.partition) }
func (r *logReader) Close()      {}

func (r *logReader) Read(ctx context.Context, fn func(*kafka.Record) error) error {
	r.l.mu.Lock()
	all, changed := r.l.records[r.partition], r.l.changed
	r.l.mu.Unlock()
	if r.next == int64(len(all)) {
		select {
		case <-changed:
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond): // an idle partition has an end, too
		}
		return nil
	}
	for _, record := range all[r.next:min(r.next+5, int64(len(all)))] {
		if err := journal.DecodeBatch(record, &r.batch); err != nil {
			return err
		}
		if err := fn(&kafka.Record{Offset: r.next, LeaderEpoch: r.l.leader, Batch: &r.batch}); err != nil {
			return err
		}
		r.next++
	}
	return nil
}

const testSeed = model.KeySeed(7)

// rig is a bucket and a topic of some partitions.
type rig struct {
	t      *testing.T
	bucket *fault.Bucket
	log    *topicLog
	epochs []topics.Epoch
}

func newRig(t *testing.T, partitions int32) *rig {
	t.Helper()
	b, err := bucketfs.New(vfs.NewMem(), "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, fault.New(b), newTopicLog(int(partitions)), []topics.Epoch{{
		Number: 1, Topic: "shale", ID: "bznJnhIMSOy6JCmhaznOzA", Partitions: partitions, Begins: make([]int64, partitions), Begun: 1,
	}}}
}

func (r *rig) catalog() *catalog.Catalog {
	r.t.Helper()
	c, err := catalog.Open(r.t.Context(), r.bucket, catalog.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// options are those of a life whose disk is new, and which flushes and ships all the time.
func (r *rig) options(c *catalog.Catalog, partition int32) Options {
	return Options{
		Epochs: r.epochs, Partition: partition, Bucket: r.bucket, Catalog: c, Life: strconv.FormatUint(rand.Uint64(), 16),
		ShipEvery: 50 * time.Millisecond, Drain: 10 * time.Second, Logger: slog.New(slog.DiscardHandler), open: r.log.open, sealedEnd: r.log.sealedEnd(partition),
		Head: head.Options{
			FS: vfs.NewMem(), Dir: "/ingest/" + topics.Node(partition), Seed: testSeed, KnownBytes: 8 << 20,
			FlushEvery: 3 * time.Millisecond,
			Windows:    head.Windows{Window: time.Minute, Grace: time.Second, LateAge: 10 * time.Millisecond},
		},
	}
}

func (r *rig) open(o Options) *Partition {
	r.t.Helper()
	p, err := Open(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// running runs a partition, until stop.
func (r *rig) running(p *Partition) (stop func() error) {
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	r.t.Cleanup(func() { _ = stop() })
	return stop
}

func (r *rig) waitFor(what string, done func() bool) {
	r.t.Helper()
	for began := time.Now(); !done(); time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			r.t.Fatalf("%s did not come", what)
		}
	}
}

// content reads all blocks as the archive does: in their order, the last one wins.
func (r *rig) content(c *catalog.Catalog) worldtest.Content {
	r.t.Helper()
	ctx, got, blocks := r.t.Context(), worldtest.Content{}, c.Live()
	slices.SortFunc(blocks, func(a, b catalog.Block) int { return int(int64(a.Order()) - int64(b.Order())) })
	for i := range blocks {
		data, err := r.bucket.Get(ctx, catalog.ObjectName(blocks[i].ID))
		if err != nil {
			r.t.Fatal(err)
		}
		p, err := part.Open(ctx, bytes.NewReader(data), int64(len(data)))
		if err == nil {
			err = part.Check(ctx, p)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		for s, err := range part.All(ctx, p.Stream()) {
			if err != nil {
				r.t.Fatal(err)
			}
			id := worldtest.ID{Tenant: s.Tenant, Signal: blocks[i].Signal, Labels: string(s.Labels)}
			for _, f := range model.PointFamilies() {
				got.AddRows(id, s.Rows.Family(f))
			}
			if s.Text == nil {
				continue
			}
			run := s.Text.Run(ctx, model.Always())
			for run.Next() {
				rows, err := run.Piece().Rows(ctx)
				if err != nil {
					r.t.Fatal(err)
				}
				for j := range rows.Times {
					got.Add(id, worldtest.TextRowAt(rows, j))
				}
			}
			if run.Err() != nil {
				r.t.Fatal(run.Err())
			}
		}
	}
	return got
}

// gauge returns the value of a metric of a partition, and whether there is one.
func gauge(t *testing.T, reg *prometheus.Registry, name, partition string) (value float64, there bool) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if f.GetName() == name && l.GetName() == "partition" && l.GetValue() == partition {
					return m.GetGauge().GetValue(), true
				}
			}
		}
	}
	return 0, false
}
