package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/shaledb/shale/internal/app/disk"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/write"
)

// TestSlowMeasurement: a folder that takes long to measure is measured less often.
func TestSlowMeasurement(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("/data", 0o755))
	var walks atomic.Int64
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpList && op.Path == "/data" {
			walks.Add(1)
			time.Sleep(50 * time.Millisecond)
		}
		return nil
	}))
	d := disk.Watch(fs, "/data", 1<<30, nil)
	time.Sleep(2*disk.Every + disk.Every/2)
	d.Close()
	if n := walks.Load(); n != 1 {
		t.Errorf("%d walks of 50 ms in 2.5 s", n)
	}
}

// TestDiskBound writes lines that do not compress until the folder is full, with merges and ships in between,
// kills the engine, and starts it again, several times. The folder never exceeds its bound, nor does it
// while a start replays the journal. All that was acknowledged can be read.
func TestDiskBound(t *testing.T) {
	racetest.SkipSerial(t) // TestFullDisk watches a folder, too
	const limit = 24 << 20
	mem := vfs.NewCrashableMem()
	must(t, mem.MkdirAll("/data", 0o755))
	r := rand.New(rand.NewPCG(4, 2))
	now := int64(1_700_000_000 * time.Second)
	acked, refused := 0, 0
	for round := range 6 {
		d := disk.Watch(mem, "/data", limit, nil)
		b, err := bucketfs.New(mem, "/data/bucket")
		must(t, err)
		e, err := OpenEngine(context.Background(), EngineOptions{
			FS: mem, DataDir: "/data", Bucket: b, Node: "n", MemoryBytes: 64 << 20, Idle: true, Disk: d, Now: func() int64 { return now },
		})
		must(t, err)
		s := &setup{Engine: e, mem: mem, now: now}
		within := func(when string) {
			t.Helper()
			if n, err := disk.FolderBytes(mem, "/data"); err != nil || n > limit {
				t.Fatalf("round %d, %s: %d bytes, %v; the bound is %d", round, when, n, err, int64(limit))
			}
		}
		within("after the start")
		for n := 0; n < 120; n++ {
			now += int64(time.Second)
			line := make([]byte, 60<<10)
			for i := range line {
				line[i] = byte(' ' + r.IntN(95))
			}
			err := s.pushLines("a", model.LabelsOf("app", fmt.Sprint(n%7)), now, string(line))
			var no *write.Refused
			switch {
			case err == nil:
				acked++
			case !errors.As(err, &no) || no.Status != 503 || no.Limit != "disk":
				t.Fatal(err)
			default:
				refused++
			}
			within("after a push")
			switch r.IntN(12) {
			case 0:
				must(t, e.Flush())
			case 1:
				if _, err := e.head.Work(context.Background()); !errors.Is(err, model.ErrTransient) {
					must(t, err)
				}
			case 2:
				if err := e.Ship(); !errors.Is(err, model.ErrTransient) {
					must(t, err)
				}
			}
			within("after a flush, merge or ship")
			if r.IntN(10) == 0 {
				d.Measure()
			}
		}
		crashed := mem.CrashClone(vfs.CrashCloneCfg{})
		must(t, e.Close())
		d.Close()
		mem = crashed
	}
	if refused == 0 || acked < 100 {
		t.Errorf("%d acknowledged, %d refused", acked, refused)
	}
	s := newSetup(t, func(o *EngineOptions) {
		o.FS = mem
		var err error
		o.Bucket, err = bucketfs.New(mem, "/data/bucket")
		must(t, err)
		o.Now = func() int64 { return now }
	})
	lines := 0
	must(t, eachLine(s.Engine, &model.Request{Tenant: "a", Signal: model.Logs, Range: everything}, func(model.Labels, readtest.Line) { lines++ }))
	if lines < acked {
		t.Errorf("%d lines of %d that were acknowledged", lines, acked)
	}
	t.Logf("%d acknowledged, %d refused", acked, refused)
	must(t, s.Close())
}
