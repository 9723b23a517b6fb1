package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/journal/local"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/write"
)

// syncFS calls hook before and after every sync of a file or folder.
type syncFS struct {
	vfs.FS
	hook func()
}

type syncFile struct {
	vfs.File
	hook func()
}

func (f *syncFS) wrap(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &syncFile{file, f.hook}, nil
}

func (f *syncFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.wrap(f.FS.Create(name, c))
}

func (f *syncFS) OpenDir(name string) (vfs.File, error) { return f.wrap(f.FS.OpenDir(name)) }

func (f *syncFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.wrap(f.FS.OpenReadWrite(name, c, o...))
}

func (f *syncFile) around(sync func() error) error {
	f.hook()
	defer f.hook()
	return sync()
}

func (f *syncFile) Sync() error     { return f.around(f.File.Sync) }
func (f *syncFile) SyncData() error { return f.around(f.File.SyncData) }

const crashDir = "/data"

func openOn(t *testing.T, fs vfs.FS, now *int64) *Engine {
	t.Helper()
	b, err := bucketfs.New(fs, "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	e, err := OpenEngine(context.Background(), EngineOptions{
		FS: fs, DataDir: crashDir, Bucket: b, Node: "n", MemoryBytes: 64 << 20, Idle: true,
		Now: func() int64 { return *now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// clone is the disk after a power cut, and the number of batches that were acknowledged before it.
type clone struct {
	fs    *vfs.MemFS
	acked int
}

// TestCrashAtEverySync cuts the power before and after every sync of a run that writes samples and lines,
// flushes, merges and ships. Then it opens the rest: every acknowledged row is there once, and no row that
// was never sent.
func TestCrashAtEverySync(t *testing.T) {
	mem := vfs.NewCrashableMem()
	now := int64(1_700_000_000 * time.Second)
	var mu sync.Mutex
	var clones []clone
	acked := 0
	fs := &syncFS{FS: mem, hook: func() {
		mu.Lock()
		defer mu.Unlock()
		clones = append(clones, clone{mem.CrashClone(vfs.CrashCloneCfg{}), acked})
	}}
	e := openOn(t, fs, &now)
	batches := 40 / racetest.Fewer
	if testing.Short() {
		batches = min(batches, 24) // the time grows by the square
	}
	for i := range batches {
		must(t, pushCrashBatch(e.Path(), model.Metrics, i, now))
		must(t, pushCrashBatch(e.Path(), model.Logs, i, now))
		mu.Lock()
		acked++
		mu.Unlock()
		now += int64(10 * time.Minute)
		var err error
		switch {
		case i%7 == 6:
			err = e.Ship()
		case i%2 == 1:
			err = e.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if len(clones) < 4*batches {
		t.Fatalf("only %d syncs", len(clones)/2)
	}
	for i, c := range clones {
		e := openOn(t, c.fs, &now)
		for signal, seen := range map[model.Signal]map[int]int{model.Metrics: readCrashBatches(t, e), model.Logs: readCrashLines(t, e)} {
			for b := range batches {
				if b < c.acked && seen[b] != crashSeries {
					t.Errorf("clone %d: %d of %d series of batch %d of %s, which was acknowledged", i, seen[b], crashSeries, b, signal)
				}
				if b > c.acked && seen[b] != 0 {
					t.Errorf("clone %d: batch %d of %s is there before it was sent", i, b, signal)
				}
				if seen[b] != 0 && seen[b] != crashSeries {
					t.Errorf("clone %d: batch %d of %s is there in part: %d series", i, b, signal, seen[b])
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		checkFolder(t, c.fs)
	}
	t.Logf("opened %d clones", len(clones))
}

// checkFolder checks all files of an engine at the end of a test.
func checkFolder(t *testing.T, fs vfs.FS) {
	t.Helper()
	ctx := context.Background()
	if err := head.Check(ctx, fs, crashDir+"/head"); err != nil {
		t.Error(err)
	}
	if err := local.Check(ctx, fs, crashDir+"/journal"); err != nil && !errors.Is(err, local.ErrTorn) {
		t.Error(err)
	}
}

const crashSeries = 10

// crashLabels gives every batch a new series besides old ones.
type crashLabels int

func (c crashLabels) of(i int) model.Labels {
	if i == 0 {
		return model.LabelsOf("__name__", "new", "batch", fmt.Sprint(int(c)))
	}
	return model.LabelsOf("__name__", "old", "i", fmt.Sprint(i))
}

func (c crashLabels) BuildLabels(i int, b *model.LabelsBuilder) {
	for n, v, rest, ok := c.of(i).Next(); ok; n, v, rest, ok = rest.Next() {
		b.Add(n, v)
	}
}

func pushCrashBatch(p *write.Path, signal model.Signal, n int, now int64) error {
	b := p.Batch(model.DefaultTenant, signal)
	defer p.Recycle(b)
	b.Source = crashLabels(n)
	for i := range crashSeries {
		if signal == model.Logs {
			b.Text.AppendBlob(now-int64(i), model.KindText, model.AppendLine(nil, &model.Line{Text: fmt.Append(nil, n)}), 0)
		} else {
			b.Samples.Append(now-int64(i), math.Float64bits(float64(n)), 0)
		}
		b.EndSeries(crashLabels(n).of(i).Key(p.Seed(), signal))
	}
	res, err := p.Push(context.Background(), b)
	if err == nil && len(res.Rejected) > 0 {
		err = fmt.Errorf("rejected: %v", res.Rejected)
	}
	return err
}

// readCrashBatches counts the series that have a row of each batch.
func readCrashBatches(t *testing.T, e *Engine) map[int]int {
	t.Helper()
	ctx := context.Background()
	set, err := e.Querier().Select(ctx, &model.Request{
		Tenant: model.DefaultTenant, Signal: model.Metrics, Range: model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64},
		Matchers: []model.Matcher{{Name: "__name__", Op: model.MatchRegexp, Value: ".+", Match: func(v string) bool { return v != "" }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	seen := make(map[int]int)
	for set.Next(ctx) {
		var rows model.Rows
		if err := set.AppendRows(ctx, &rows); err != nil {
			t.Fatal(err)
		}
		for _, v := range rows.Values {
			seen[int(math.Float64frombits(v))]++
		}
	}
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	return seen
}

// readCrashLines counts the series that have a line of each batch.
func readCrashLines(t *testing.T, e *Engine) map[int]int {
	t.Helper()
	seen := make(map[int]int)
	req := &model.Request{Tenant: model.DefaultTenant, Signal: model.Logs, Range: everything}
	must(t, eachLine(e, req, func(_ model.Labels, l readtest.Line) {
		n, err := strconv.Atoi(l.Text)
		must(t, err)
		seen[n]++
	}))
	return seen
}
