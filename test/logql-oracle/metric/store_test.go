package metric

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/app"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/write"
)

// shale is a whole store in memory, with each data set as the logs of a tenant of its name.
type shale struct {
	fs     *vfs.MemFS
	now    int64
	engine *app.Engine
	logql  *logql.Engine
}

// openShale opens a store. It does no work in the background.
func openShale() (*shale, error) {
	s := &shale{fs: vfs.NewMem(), now: logqltest.Begin + 3*logqltest.Span}
	return s, s.open()
}

func (s *shale) open() error {
	b, err := bucketfs.New(s.fs, "/bucket")
	if err != nil {
		return err
	}
	s.engine, err = app.OpenEngine(context.Background(), app.EngineOptions{
		FS: s.fs, Bucket: b, DataDir: "/data", Node: "n", MemoryBytes: 1 << 30, Idle: true, Now: func() int64 { return s.now },
		Write: write.Limits{MaxFuture: time.Hour}, Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		return err
	}
	s.logql = logql.New(logql.Options{Read: s.engine.Querier(), Now: func() time.Time { return time.Unix(0, s.now) }})
	return nil
}

// push stores part i of n of all lines, in the order of their arrival.
func (s *shale) push(data []*logqltest.Dataset, i, n int) error {
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
		p := s.engine.Path()
		b := p.Batch(in.Tenant, in.Signal)
		in.AppendTo(b, p.Seed())
		r, err := p.Push(context.Background(), b)
		if err == nil && len(r.Rejected) > 0 {
			err = fmt.Errorf("rejected: %v", r.Rejected)
		}
		p.Recycle(b)
		if err != nil {
			return err
		}
	}
	return nil
}

// stage is a state that stored lines pass through.
type stage struct {
	name  string
	reach func(s *shale, data []*logqltest.Dataset) error
}

// stages are the states in their order. Each follows from the one before.
func stages() []stage {
	const parts = 4
	return []stage{
		{"buffers", func(s *shale, data []*logqltest.Dataset) error { return s.push(data, 0, 1) }},
		{"buffers and parts", func(s *shale, data []*logqltest.Dataset) error {
			if err := s.engine.Close(); err != nil {
				return err
			}
			s.fs = vfs.NewMem()
			if err := s.open(); err != nil {
				return err
			}
			for i := range parts {
				if err := s.push(data, i, parts); err != nil {
					return err
				}
				if i == parts-1 {
					break
				}
				if err := s.engine.Flush(); err != nil {
					return err
				}
			}
			return nil
		}},
		{"parts", func(s *shale, _ []*logqltest.Dataset) error { return s.engine.Flush() }},
		{"parts after a restart", restart},
		{"bucket", func(s *shale, data []*logqltest.Dataset) error {
			// Lines that arrive once more, after their block was written, make further blocks.
			if err := s.engine.Ship(); err != nil {
				return err
			}
			if err := s.push(data, 1, parts); err != nil {
				return err
			}
			s.now += int64(48 * time.Hour)
			return s.engine.Ship()
		}},
		{"merged blocks", func(s *shale, _ []*logqltest.Dataset) error { return s.engine.Compact(context.Background()) }},
		{"merged blocks after a restart", restart},
	}
}

func restart(s *shale, _ []*logqltest.Dataset) error {
	if err := s.engine.Close(); err != nil {
		return err
	}
	return s.open()
}

// blocks returns the number of objects in the bucket.
func (s *shale) blocks() (n int, err error) {
	var walk func(dir string) error
	walk = func(dir string) error {
		names, err := s.fs.List(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			path := s.fs.PathJoin(dir, name)
			if info, err := s.fs.Stat(path); err == nil && info.IsDir() {
				err = walk(path)
				if err != nil {
					return err
				}
				continue
			}
			n++
		}
		return nil
	}
	return n, walk("/bucket")
}
