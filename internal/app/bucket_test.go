package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
)

// allSamples is a request for all samples of a tenant.
func allSamples(tenant string) *model.Request {
	return &model.Request{Tenant: tenant, Signal: model.Metrics, Range: everything}
}

// fails reports the error of reading all samples of a tenant.
func (s *setup) fails(tenant string) error {
	ctx := context.Background()
	set, err := s.Querier().Select(ctx, allSamples(tenant))
	if err != nil {
		return err
	}
	defer set.Close()
	var rows model.Rows
	for set.Next(ctx) {
		if err := set.AppendRows(ctx, &rows); err != nil {
			return err
		}
	}
	return set.Err()
}

// counted returns the value of a metric without labels.
func counted(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	all, err := r.Gather()
	must(t, err)
	for _, f := range all {
		if m := f.GetMetric(); f.GetName() == name && len(m) == 1 {
			return m[0].GetCounter().GetValue() + m[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// TestDamagedBlock: a block that is truncated, empty or missing is corrupt, whatever is asked. The log names
// it once.
func TestDamagedBlock(t *testing.T) {
	for what, damage := range map[string]func(s *setup, name string) error{
		"truncated": func(s *setup, name string) error {
			data, err := s.o.Bucket.Get(context.Background(), name)
			return errors.Join(err, s.o.Bucket.Put(context.Background(), name, bytes.NewReader(data[:len(data)/2]), int64(len(data)/2)))
		},
		"empty": func(s *setup, name string) error {
			return s.o.Bucket.Put(context.Background(), name, strings.NewReader(""), 0)
		},
		"missing": func(s *setup, name string) error { return s.o.Bucket.Delete(context.Background(), name) },
	} {
		var log bytes.Buffer
		metrics := prometheus.NewRegistry()
		s := newSetup(t, func(o *EngineOptions) {
			o.Logger, o.Registerer = slog.New(slog.NewTextHandler(&log, nil)), metrics
		})
		must(t, s.push("a", up, s.now, 1))
		must(t, s.push("b", up, s.now, 2))
		must(t, s.Ship())
		name := catalog.ObjectName(s.catalog.Live()[0].ID)
		must(t, damage(s, name))
		for range 3 {
			if err := s.fails("a"); !errors.Is(err, model.ErrCorrupt) || errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", what, err)
			}
			if _, _, err := s.Querier().LabelNames(context.Background(), allSamples("a"), 0); !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: label names: %v", what, err)
			}
		}
		if n := strings.Count(log.String(), "block="+name); n != 1 {
			t.Errorf("%s: %d log lines:\n%s", what, n, &log)
		}
		if n := counted(t, metrics, "shale_archive_damaged_blocks_total"); n != 1 {
			t.Errorf("%s: %g damaged blocks", what, n)
		}
		must(t, s.Close())
	}
}

// objectsOf lists the objects of the bucket below a prefix.
func (s *setup) objectsOf(t *testing.T, prefix string) (names []string) {
	t.Helper()
	must(t, s.o.Bucket.List(context.Background(), prefix, func(name string, _ int64) error {
		names = append(names, name)
		return nil
	}))
	return names
}

// contents returns all objects of the bucket.
func (s *setup) contents(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range s.objectsOf(t, "") {
		data, err := s.o.Bucket.Get(context.Background(), name)
		must(t, err)
		all[name] = data
	}
	return all
}

func (s *setup) lose(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, s.o.Bucket.Delete(context.Background(), name))
	}
}

// TestLostRecords loses commit records, under a running server and a stopped one, with and without its
// memory. The results stay right, or queries fail; the log and a metric tell it, and no block is collected.
func TestLostRecords(t *testing.T) {
	for what, lose := range map[string]func(s *setup, older map[string][]byte){
		"one record":  func(s *setup, _ map[string][]byte) { s.lose(t, s.objectsOf(t, "catalog/")[0]) },
		"all records": func(s *setup, _ map[string][]byte) { s.lose(t, s.objectsOf(t, "catalog/")...) },
		"records and copies": func(s *setup, _ map[string][]byte) {
			s.lose(t, append(s.objectsOf(t, "catalog/"), s.objectsOf(t, "copies/catalog/")...)...)
		},
		"an older copy": func(s *setup, older map[string][]byte) {
			s.lose(t, s.objectsOf(t, "")...)
			for name, data := range older {
				must(t, s.o.Bucket.Put(context.Background(), name, bytes.NewReader(data), int64(len(data))))
			}
		},
	} {
		for _, when := range []string{"while it runs", "before a start", "before a start with a new data folder"} {
			var log bytes.Buffer
			var metrics *prometheus.Registry
			s := newSetup(t, func(o *EngineOptions) {
				metrics = prometheus.NewRegistry()
				o.Logger, o.Registerer = slog.New(slog.NewTextHandler(&log, nil)), metrics
			})
			must(t, s.push("a", up, s.now, 1))
			must(t, s.Ship())
			older := s.contents(t)
			s.now += int64(3 * time.Hour)
			must(t, s.push("a", up, s.now, 2))
			must(t, s.Ship())
			s.want(t, "a", "1 2")
			blocks := len(s.objectsOf(t, "blocks/"))
			reopen := func() {
				must(t, s.Close())
				metrics = prometheus.NewRegistry()
				s.o.Registerer = metrics
				var err error
				s.Engine, err = OpenEngine(context.Background(), s.o)
				must(t, err)
			}
			switch when {
			case "while it runs":
				lose(s, older)
			case "before a start":
				lose(s, older)
				reopen()
			default:
				if what == "an older copy" {
					must(t, s.Close())
					continue // only the memory knows
				}
				lose(s, older)
				s.o.DataDir = "/data2"
				reopen()
			}
			if what == "an older copy" {
				blocks = len(s.objectsOf(t, "blocks/"))
			}
			for i := range 4 {
				if err := s.Compact(context.Background()); err != nil && !errors.Is(err, model.ErrCorrupt) {
					t.Errorf("%s %s: compaction: %v", what, when, err)
				}
				if err := s.fails("a"); err == nil {
					s.want(t, "a", "1 2")
				} else if !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), "blocks/") {
					t.Errorf("%s %s: %v", what, when, err)
				} else if strings.HasSuffix(what, "records") || what == "one record" {
					if when != "before a start with a new data folder" {
						t.Errorf("%s %s: no answer, although all is known: %v", what, when, err)
					}
				}
				// In the end the blocks are merged, and the loss no longer matters.
				if n := counted(t, metrics, "shale_catalog_lost_records") + counted(t, metrics, "shale_catalog_stray_blocks"); n == 0 && i == 0 {
					t.Errorf("%s %s: the metrics do not tell it", what, when)
				}
				s.now += int64(10 * time.Hour)
			}
			if n := strings.Count(log.String(), "commit record"); n == 0 || n > 2 {
				t.Errorf("%s %s: %d log lines:\n%s", what, when, n, &log)
			}
			if n := len(s.objectsOf(t, "blocks/")); n < blocks {
				t.Errorf("%s %s: %d of %d blocks are left", what, when, n, blocks)
			}
			must(t, s.Close())
		}
	}
}

// TestNoFalseLoss: what another server on the bucket merges, expires and collects is not lost, also for a
// server that was away meanwhile.
func TestNoFalseLoss(t *testing.T) {
	var log bytes.Buffer
	s := newSetup(t, func(o *EngineOptions) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	for day := range 4 {
		for v := range 3 {
			must(t, s.push("a", up, s.now, float64(10*day+v)))
			must(t, s.Ship())
			s.now += int64(8 * time.Hour)
		}
	}
	must(t, s.Close()) // away
	theirs := s.o
	theirs.DataDir, theirs.Logger = "/theirs", nil
	e, err := OpenEngine(context.Background(), theirs)
	must(t, err)
	for range 8 {
		s.now += int64(24 * time.Hour)
		must(t, e.Compact(context.Background()))
	}
	must(t, e.catalog.Expire(context.Background(), olderThan(int64(1_700_000_000*time.Second)+int64(24*time.Hour)), 0))
	must(t, e.Close())
	s.Engine, err = OpenEngine(context.Background(), s.o)
	must(t, err)
	must(t, s.Compact(context.Background()))
	if log.Len() > 0 {
		t.Errorf("the log:\n%s", &log)
	}
	if n := len(s.objectsOf(t, "catalog/")); n > 5 {
		t.Errorf("%d records: nothing was merged", n)
	}
	must(t, s.Close())
}

// TestRepairOlderCopy: the loss of what an older copy of the bucket lacks is accepted, and the server goes on
// with what is left.
func TestRepairOlderCopy(t *testing.T) {
	ctx := context.Background()
	s := newSetup(t, nil)
	must(t, s.push("a", up, s.now, 1))
	must(t, s.Ship())
	older := s.contents(t)
	s.now += int64(3 * time.Hour)
	must(t, s.push("a", up, s.now, 2))
	must(t, s.Ship())
	s.now += int64(48 * time.Hour)
	must(t, s.Compact(ctx)) // the only blocks are merged ones
	s.lose(t, s.objectsOf(t, "")...)
	for name, data := range older {
		must(t, s.o.Bucket.Put(ctx, name, bytes.NewReader(data), int64(len(data))))
	}
	must(t, s.catalog.Refresh(ctx))
	if err := s.fails("a"); !errors.Is(err, model.ErrCorrupt) {
		t.Fatal(err)
	}
	memory, err := bucketfs.New(s.mem, "/data/"+catalogMemory)
	must(t, err)
	var out bytes.Buffer
	found, err := compact.Inspect(ctx, &out, s.o.Bucket, compact.InspectOptions{Check: true, Memory: memory})
	must(t, err)
	steps, _ := found.Repairs(ctx, s.o.Bucket, time.Unix(0, s.now), false)
	for _, r := range steps {
		must(t, r.Do(ctx))
	}
	found, err = compact.Inspect(ctx, &out, s.o.Bucket, compact.InspectOptions{Check: true, Memory: memory})
	if err != nil || found.Wrong != 0 {
		t.Errorf("after the repair: %v\n%s", err, &out)
	}
	must(t, s.Compact(ctx))
	s.want(t, "a", "1")
	must(t, s.Close())
	s.Engine, err = OpenEngine(ctx, s.o)
	must(t, err)
	s.want(t, "a", "1")
	must(t, s.push("a", up, s.now, 3))
	must(t, s.Ship())
	s.want(t, "a", "1 3")
	must(t, s.Close())
}
