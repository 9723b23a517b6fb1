package compact

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/logtest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/part"
	"github.com/shaledb/shale/internal/store/retention"
)

// faulty has a fault that panics at the steps of some name: after it let some of them pass, and so often at
// most, unless times is 0.
type faulty struct {
	at          string
	skip, times int
	panics      int
}

func (f *faulty) step(name string) {
	if f.at == "" || !strings.HasPrefix(name, f.at) || f.times > 0 && f.panics == f.times {
		return
	}
	if f.skip--; f.skip < 0 {
		f.panics++
		panic("a fault at " + name)
	}
}

type faultyBucket struct {
	Bucket
	f *faulty
}

func (b *faultyBucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	b.f.step("read " + name)
	return b.Bucket.GetRange(ctx, name, off, n)
}

func (b *faultyBucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	b.f.step("upload " + name)
	return b.Bucket.Put(ctx, name, r, size)
}

type faultyFS struct {
	vfs.FS
	f *faulty
}

func (f *faultyFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.f.step("create " + name)
	file, err := f.FS.Create(name, c)
	return &faultyFile{file, f.f}, err
}

type faultyFile struct {
	vfs.File
	f *faulty
}

func (f *faultyFile) Write(p []byte) (int, error) {
	f.f.step("write")
	return f.File.Write(p)
}

// faultyWorld is a world whose compactor has faults.
type faultyWorld struct {
	*world
	*faulty
	comp *Compactor
	log  *logtest.Buffer
	room int // reservations that are held
}

func newFaultyWorld(t *testing.T, change func(*Options)) *faultyWorld {
	w := &faultyWorld{world: newWorld(t, vfs.NewMem()), faulty: &faulty{}, log: &logtest.Buffer{}}
	w.now = dayZero
	w.fs = &faultyFS{w.fs, w.faulty}
	w.comp = w.compactor(t, w.c, func(o *Options) {
		o.Bucket = &faultyBucket{w.bucket, w.faulty}
		o.Fresh = func(context.Context, *catalog.Block, io.ReaderAt) { w.step("fresh") }
		o.Room = func(int64) (func(), error) {
			w.room++
			return func() { w.room-- }, nil
		}
		o.Logger = slog.New(slog.NewTextHandler(w.log, nil))
		if change != nil {
			change(o)
		}
	})
	return w
}

// fails runs the compactor and expects a panic in one step, which is an error of the run and leaves no
// trace.
func (w *faultyWorld) fails(t *testing.T) {
	t.Helper()
	before, failed, merged := list(w.c), testutil.ToFloat64(w.comp.metrics.failures), testutil.CollectAndCount(w.comp.metrics.merges)
	if _, err := w.comp.RunOnce(ctx); err == nil || !strings.Contains(err.Error(), "a fault at "+w.at) || model.StackOf(err) == "" {
		t.Error(err)
	}
	if testutil.CollectAndCount(w.comp.metrics.merges) != merged {
		t.Error("the merge is counted")
	}
	if w.panics != 1 {
		t.Errorf("%d panics", w.panics)
	}
	if n := testutil.ToFloat64(w.comp.metrics.failures) - failed; n != 1 {
		t.Errorf("%v failures are counted", n)
	}
	if !strings.Contains(w.log.String(), "(*faulty).step") {
		t.Errorf("the log has no stack: %s", w.log)
	}
	if after := list(w.c); after != before || list(w.open(t)) != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	if left, _ := w.fs.List("compact"); len(left) > 0 || w.room != 0 {
		t.Errorf("the files %v and %d reservations are left", left, w.room)
	}
	w.check(t, w.open(t))
}

// TestPanicOfAMerge: a merge that panics, or the search for one, fails and leaves no trace, neither in the
// catalogue nor on the disk. The next run tries it again.
func TestPanicOfAMerge(t *testing.T) {
	for _, f := range []faulty{
		{at: "rollups", times: 1}, {at: "rules", times: 1}, {at: "create"}, {at: "write"}, {at: "upload"}, {at: "upload", skip: 1}, {at: "fresh"}, {at: "fresh", skip: 1},
	} {
		t.Run(fmt.Sprint(f.at, f.skip), func(t *testing.T) {
			var w *faultyWorld
			w = newFaultyWorld(t, func(o *Options) {
				o.maxSeries = 10
				o.Retention = func() *retention.Rules { w.step("rules"); return nil }
				o.Rollups = func() *Rollups { w.step("rollups"); return nil }
			})
			for range 2 {
				w.shipMany(t, w.now, map[string]int{"a": 30})
				w.now += int64(2 * time.Hour)
			}
			w.now += int64(day)
			for range 2 {
				*w.faulty = f
				w.fails(t)
			}
			if w.at = ""; len(w.comp.damaged) > 0 {
				t.Errorf("the blocks %v are blamed", w.comp.damaged)
			}
			if res, err := w.comp.RunOnce(ctx); err != nil || res.Merges != 1 || len(w.c.Live()) < 3 {
				t.Errorf("%+v, %v\n%s", res, err, list(w.c))
			}
			w.check(t, w.open(t))
			*w.faulty = faulty{at: "rules", times: 1} // to find out what has expired
			w.fails(t)
		})
	}
}

// TestPanicOfAReading: a block whose reading panics is left out for a while like one that is damaged, and the
// rest is merged.
func TestPanicOfAReading(t *testing.T) {
	for skip := range 2 { // opening the block to weigh its tenants, and to merge it
		w := newFaultyWorld(t, nil)
		for i := range 4 {
			w.shipMany(t, w.now, map[string]int{fmt.Sprint("t", i): 50})
			w.now += int64(2 * time.Hour)
		}
		w.now += int64(day)
		bad := w.c.Live()[1].ID
		*w.faulty = faulty{at: "read " + catalog.ObjectName(bad), skip: skip}
		w.fails(t)
		if _, blamed := w.comp.damaged[bad]; !blamed || len(w.comp.damaged) != 1 {
			t.Errorf("the blocks %v are blamed", w.comp.damaged)
		}
		if !w.comp.whole {
			t.Error("the run does not count as whole")
		}
		if res, err := w.comp.RunOnce(ctx); err != nil || res.Merges == 0 || len(w.c.Live()) != 2 {
			t.Errorf("%+v, %v\n%s", res, err, list(w.c))
		}
		w.check(t, w.open(t))
		w.at = ""
		w.now += int64(damagedFor) + 1
		if _, err := w.comp.RunOnce(ctx); err != nil || len(w.comp.damaged) > 0 {
			t.Errorf("%v, damaged: %v", err, w.comp.damaged)
		}
		w.check(t, w.open(t))
	}
}

// TestPanicOfLines: so is a block in which any read panics, also one of lines.
func TestPanicOfLines(t *testing.T) {
	for skip := 0; ; skip++ {
		w := newFaultyWorld(t, nil)
		w.shipLogs(t)
		bad := w.c.Live()[1].ID
		*w.faulty = faulty{at: "read " + catalog.ObjectName(bad), skip: skip}
		if _, err := w.comp.RunOnce(ctx); err == nil {
			if skip < 4 {
				t.Errorf("a block is read %d times", skip)
			}
			return
		}
		if _, blamed := w.comp.damaged[bad]; !blamed || len(w.comp.damaged) != 1 {
			t.Errorf("reading %d: the blocks %v are blamed", skip, w.comp.damaged)
		}
		if res, err := w.comp.RunOnce(ctx); err != nil || res.Merges == 0 || len(w.c.Live()) != 2 {
			t.Errorf("reading %d: %+v, %v\n%s", skip, res, err, list(w.c))
		}
		w.check(t, w.open(t))
	}
}

// TestPanicOfAStream: a panic while a series is decoded is blamed on its block, and one after that is not.
func TestPanicOfAStream(t *testing.T) {
	w := newFaultyWorld(t, nil)
	w.shipMany(t, w.now, map[string]int{"a": 5})
	for _, decodes := range []bool{true, false} {
		j := &job{why: becauseDay, inputs: w.c.Live(), cells: everything(catalog.Settled)}
		m, err := w.comp.begin(ctx, j, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &chain{m: m, blocks: j.inputs, most: leastWindow}
		err = m.caught(func() error {
			if _, err := c.Next(ctx); err != nil {
				return err
			}
			if decodes {
				c.stream = streamFunc(func() (*part.Series, error) { panic("a fault") })
				_, err := c.Next(ctx)
				return err
			}
			panic("a fault")
		})
		id, blamed := blamed(err)
		if model.StackOf(err) == "" || blamed != decodes || blamed && id != j.inputs[0].ID {
			t.Errorf("decodes %v: %v, blamed %q", decodes, err, id)
		}
		if err := m.end(); err != nil {
			t.Error(err)
		}
	}
}

type streamFunc func() (*part.Series, error)

func (f streamFunc) Next(context.Context) (*part.Series, error) { return f() }

// TestPanicOfADeletion: so is a block of which it cannot be found out whether a deletion concerns it.
func TestPanicOfADeletion(t *testing.T) {
	w := newFaultyWorld(t, nil)
	w.shipMany(t, w.now, map[string]int{"a": 50})
	w.now += 2 * int64(day)
	if _, err := w.comp.RunOnce(ctx); err != nil {
		t.Fatal(err)
	}
	w.remove(t, catalog.Deletion{Deletion: deletion.Deletion{
		Signal: model.Metrics, Tenant: "a", Range: model.Always(),
		Matchers: []catalog.Matcher{{Name: "i", Op: model.MatchEqual, Value: "3"}},
	}})
	settled := w.c.Live()[0].ID
	*w.faulty = faulty{at: "read " + catalog.ObjectName(settled)}
	w.fails(t)
	if _, blamed := w.comp.damaged[settled]; !blamed {
		t.Errorf("the blocks %v are blamed", w.comp.damaged)
	}
	w.at = ""
	w.now += int64(damagedFor) + 1
	if res, err := w.comp.RunOnce(ctx); err != nil || res.Merges != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	w.check(t, w.open(t))
}

// TestPanicOfRollups: rollups whose making panics are made by a later run.
func TestPanicOfRollups(t *testing.T) {
	for _, f := range []faulty{{at: "roll"}, {at: "upload"}, {at: "fresh"}} {
		var w *faultyWorld
		w = newFaultyWorld(t, func(o *Options) {
			rules := &Rollups{
				ID: "r", Makes: true, Keep: func(int64) time.Duration { return retention.Forever },
				Of: func(model.Labels) ([]int64, func(int64, *model.Rows, *model.Rows), error) {
					return []int64{3600}, func(_ int64, rows, dst *model.Rows) {
						w.step("roll")
						dst.AppendRows(rows, 0, 1)
					}, nil
				},
			}
			o.Rollups = func() *Rollups { return rules }
		})
		w.shipMany(t, w.now, map[string]int{"a": 5})
		w.now += 2 * int64(day)
		w.comp.o.Plain = true // makes none
		if _, err := w.comp.RunOnce(ctx); err != nil {
			t.Fatal(err)
		}
		w.comp.o.Plain = false
		*w.faulty = f
		w.fails(t)
		if n := len(w.c.State().Rollups); n > 0 || len(w.comp.damaged) > 0 {
			t.Errorf("%d rollups, damaged: %v", n, w.comp.damaged)
		}
		w.at = ""
		if _, err := w.comp.RunOnce(ctx); err != nil || len(w.c.State().Rollups) != 1 {
			t.Errorf("%v, %d rollups", err, len(w.c.State().Rollups))
		}
		w.check(t, w.open(t))
	}
}

// TestRunGoesOn: the goroutine of the compactor outlives a panic.
func TestRunGoesOn(t *testing.T) {
	w := newFaultyWorld(t, func(o *Options) { o.Interval = time.Hour })
	w.shipMany(t, w.now, map[string]int{"a": 5})
	w.now += 2 * int64(day)
	shipped := w.c.Live()[0].ID
	*w.faulty = faulty{at: "upload"}
	w.comp.Start()
	for testutil.ToFloat64(w.comp.metrics.failures) == 0 {
		time.Sleep(time.Millisecond)
	}
	w.comp.running.Lock() // the run is over
	w.at = ""
	w.comp.running.Unlock()
	w.comp.Wake()
	for slices.ContainsFunc(w.c.Live(), func(b catalog.Block) bool { return b.ID == shipped }) {
		time.Sleep(time.Millisecond)
	}
	w.comp.Close()
	w.check(t, w.open(t))
}
