package compact

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
)

// TestCrash cuts the power before each change of the bucket's folder, during merges, deletions and
// collection. The catalogue that is left is valid and every row is there once; the compactor that comes after
// it finishes the work.
func TestCrash(t *testing.T) {
	racetest.SkipSerial(t)
	mem := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(1, 1))
	var crashes []vfs.FS
	recording := false
	cut := func(op errorfs.Op) error {
		if !recording || op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		for _, percent := range []int{0, 50, 100} {
			crashes = append(crashes, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
		}
		return nil
	}
	w := newWorld(t, errorfs.Wrap(mem, errorfs.InjectorFunc(cut)))
	w.now = 20_000 * int64(day)
	for n := range int64(6) {
		s := w.shipment()
		for i := range int64(8) {
			at := w.now - n%3*int64(day) + i%4*int64(time.Hour)
			s.addFloat("a", labelsOf(int(i)), at, math.Float64bits(float64(n)))
			s.addFloat("b", labelsOf(int(i%2)), at, math.Float64bits(float64(n)))
			s.addExemplar("b", labelsOf(1), at, "trace")
		}
		s.ship(t)
		w.now += int64(3 * time.Hour)
	}
	w.remove(t, catalog.Deletion{Deletion: deletion.Deletion{
		Signal: model.Metrics, Tenant: "a", Range: model.Always(),
		Matchers: []catalog.Matcher{{Name: "i", Op: model.MatchEqual, Value: "3"}},
	}})
	w.now += 2 * int64(day)
	comp := w.compactor(t, w.c, func(o *Options) { o.MaxBlockBytes = 1 << 10; o.MaxInputs = 3 })
	recording = true
	for range 4 {
		if _, err := comp.RunOnce(ctx); err != nil {
			t.Fatal(err)
		}
		w.now += int64(day)
	}
	recording = false
	t.Logf("%d crashes, %d blocks in the end", len(crashes), len(w.c.Live()))
	for i, clone := range crashes {
		b, err := fs.New(clone, "bucket")
		if err != nil {
			t.Fatal(err)
		}
		after := *w
		after.bucket, after.fs = fault.New(b), vfs.NewMem()
		c := after.open(t)
		after.check(t, c)
		if i%5 > 0 {
			continue
		}
		if _, err := after.compactor(t, c, nil).RunOnce(ctx); err != nil {
			t.Fatal(err)
		}
		after.check(t, after.open(t))
	}
	// A crash of the compactor alone leaves temporary files, which the next one deletes.
	f, err := w.fs.Create("compact/00000007"+fileSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w.compactor(t, w.c, nil)
	if left, _ := w.fs.List("compact"); len(left) != 0 {
		t.Fatalf("%v", left)
	}
}
