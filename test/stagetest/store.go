package stagetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/results"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/test/objectstores"
	"github.com/shaledb/shale/test/tiertest"
)

// Store is the real engine on a disk in memory, with LogQL over it. It does no work in the background.
type Store struct {
	*app.Engine
	LogQL *logql.Engine

	places *objectstores.Places
	tiers  *tiertest.Tiers
	set    *tiertest.Set
	place  objectstores.Place
	bucket bucket.Bucket
	disk   *vfs.MemFS
	now    int64
}

// Open makes an empty store, whose clock stands at a time in Unix nanoseconds. The caller closes it.
func Open(places *objectstores.Places, caches *tiertest.Tiers, now int64) (*Store, error) {
	s := &Store{places: places, tiers: caches, now: now}
	return s, s.begin()
}

// begin starts with an empty disk and an empty bucket.
func (s *Store) begin() error {
	s.disk, s.place, s.set = vfs.NewMem(), s.places.New(), s.tiers.New()
	return s.open()
}

func (s *Store) open() (err error) {
	if s.bucket, err = s.place.Open(s.disk); err != nil {
		return err
	}
	s.Engine, err = app.OpenEngine(context.Background(), app.EngineOptions{
		FS: s.disk, Bucket: s.bucket, DataDir: "/data", Node: "n", MemoryBytes: s.set.Memory(1 << 30), Idle: true, Now: func() int64 { return s.now },
		Write: write.Limits{MaxFuture: time.Hour}, Results: results.Limits{Split: time.Minute, ClosedAfter: time.Second, MaxBytes: 64 << 20}, SSD: s.set.SSD(s.disk), Memcached: s.set.Memcached(), Registerer: s.set.Start(),
	})
	if err != nil {
		return err
	}
	s.LogQL = logql.New(logql.Options{Read: s.Querier(), Results: s.Results(), Now: func() time.Time { return time.Unix(0, s.now) }})
	return nil
}

// Objects returns the number of objects in the bucket.
func (s *Store) Objects() (n int, err error) {
	err = s.bucket.List(context.Background(), "", func(string, int64) error {
		n++
		return nil
	})
	return n, err
}

// Push stores lines.
func (s *Store) Push(in *worldtest.Batch) error {
	p := s.Path()
	b := p.Batch(in.Tenant, in.Signal)
	defer p.Recycle(b)
	in.AppendTo(b, p.Seed())
	r, err := p.Push(context.Background(), b)
	if err == nil && len(r.Rejected) > 0 {
		err = fmt.Errorf("rejected: %v", r.Rejected)
	}
	return err
}

// Lines pushes part i of n of the lines of a test, in the order of their arrival.
type Lines func(s *Store, i, n int) error

// Datasets are the lines of data sets, each as the logs of a tenant of its name.
func Datasets(data []*logqltest.Dataset) Lines {
	return func(s *Store, i, n int) error {
		for _, d := range data {
			in := worldtest.Batch{Tenant: d.Name, Signal: model.Logs}
			for _, x := range d.Streams {
				series := worldtest.Series{Labels: model.LabelsOf(x.Labels...)}
				for _, y := range x.Lines[len(x.Lines)*i/n : len(x.Lines)*(i+1)/n] {
					line := model.Line{Text: []byte(y.Text), Metadata: model.LabelsOf(y.Metadata...)}
					series.Rows = append(series.Rows, worldtest.LineRow(y.Time, &line))
				}
				in.Series = append(in.Series, series)
			}
			if err := s.Push(&in); err != nil {
				return err
			}
		}
		return nil
	}
}

// Stage is a state that stored lines pass through.
type Stage struct {
	Name string
	// Reach brings a store from the stage before to this one.
	Reach func(s *Store, lines Lines) error
}

// Stages returns the stages in their order.
func Stages() []Stage {
	const parts = 4
	return []Stage{
		{"buffers", func(s *Store, lines Lines) error { return lines(s, 0, 1) }},
		{"buffers and parts", func(s *Store, lines Lines) error {
			if err := s.Close(); err != nil {
				return err
			}
			if err := s.begin(); err != nil {
				return err
			}
			for i := range parts {
				if err := lines(s, i, parts); err != nil {
					return err
				}
				if i == parts-1 {
					break
				}
				if err := s.Flush(); err != nil {
					return err
				}
			}
			return nil
		}},
		{"parts", func(s *Store, _ Lines) error { return s.Flush() }},
		{"parts after a restart", restart},
		{"bucket", func(s *Store, lines Lines) error {
			// Lines that arrive once more, after their block was written, make further blocks.
			if err := s.Ship(); err != nil {
				return err
			}
			if err := lines(s, 1, parts); err != nil {
				return err
			}
			s.now += int64(48 * time.Hour)
			return s.Ship()
		}},
		{"merged blocks", func(s *Store, _ Lines) error { return s.Compact(context.Background()) }},
		{"merged blocks after a restart", restart},
	}
}

func restart(s *Store, _ Lines) error {
	if err := s.Close(); err != nil {
		return err
	}
	return s.open()
}

// Each opens a store with caches, and calls ask at each stage of the lines.
func Each(t *testing.T, places *objectstores.Places, caches *tiertest.Tiers, now int64, lines Lines, ask func(t *testing.T, s *Store)) {
	t.Helper()
	s, err := Open(places, caches, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range Stages() {
		if err := stage.Reach(s, lines); err != nil {
			t.Fatalf("%s: %v", stage.Name, err)
		}
		t.Run(stage.Name, func(t *testing.T) { ask(t, s) })
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
