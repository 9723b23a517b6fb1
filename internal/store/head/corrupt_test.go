package head

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/metadata"
)

// TestFlippedBits flips a bit here and there in every file of a folder. Then the head does not open, or a
// query fails, and the error names the file; or the answer is the right one, since the bit was not needed for
// it. The full check finds it in any case.
func TestFlippedBits(t *testing.T) {
	racetest.SkipSerial(t)
	ctx := context.Background()
	r := newRig(t, nil)
	for i := range 4 {
		b := r.batchOf("a", 0, 300, r.now-int64(i)*1e9, float64(i))
		for j := range b.Keys {
			b.Exemplars.AppendBlob(r.now, model.KindExemplar, model.AppendExemplar(nil, &model.Exemplar{Value: uint64(j), Labels: model.LabelsOf("t", "x")}), 0)
			b.Exemplars.Ends = append(b.Exemplars.Ends, uint32(j)+1)
		}
		r.label(b, 0)
		r.apply(b)
		r.push("a", 300+i, 301+i, r.now, 1)
		r.must(r.head.Flush(ctx))
	}
	r.must(r.head.PutMetadata("a", "f", model.Metadata{Help: "h"}))
	r.must(r.head.Close())
	whole := r.mem
	r.head, r.o.Registerer = nil, nil
	want := readAll(t, whole)
	names, err := whole.List("/head")
	r.must(err)
	rng, refused, failed, unharmed := rand.New(rand.NewPCG(1, 1)), 0, 0, 0
	for _, name := range names {
		if strings.HasPrefix(name, metadata.FileName) {
			continue // has a test of its own
		}
		size := len(readFile(t, whole, "/head/"+name))
		for at := 0; at < size; at += 1 + size/60 {
			mem := whole.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
			flip(t, mem, "/head/"+name, at)
			if err := Check(ctx, mem, "/head"); !errors.Is(err, model.ErrCorrupt) && !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Fatalf("%s, byte %d: the check says %v", name, at, err)
			}
			r.mem, r.o.FS, r.bucket.fs = mem, mem, mem
			h, err := Open(ctx, r.o)
			if err != nil {
				if !errors.Is(err, model.ErrCorrupt) && !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), name) {
					t.Fatalf("%s, byte %d: %v", name, at, err)
				}
				refused++
				continue
			}
			r.head = h
			got, err := r.read("a")
			switch {
			case err != nil && (!errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), name)):
				t.Fatalf("%s, byte %d: %v", name, at, err)
			case err != nil:
				failed++
			case want.Diff(got) != "":
				t.Fatalf("%s, byte %d: the answer is wrong", name, at)
			default:
				unharmed++
			}
			// What works on the parts names the file, too.
			for what, work := range map[string]func() error{
				"known":   func() error { return h.rebuildKnown(ctx) },
				"windows": func() error { return h.Ship(ctx) },
			} {
				if err := work(); err != nil && (!errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), name)) {
					t.Fatalf("%s, byte %d: %s: %v", name, at, what, err)
				}
			}
			h.background.stop()
			h.release()
			r.head = nil
		}
	}
	if refused == 0 || failed == 0 {
		t.Errorf("%d refused to open, %d failed, %d did no harm", refused, failed, unharmed)
	}
	t.Logf("%d refused to open, %d failed, %d did no harm", refused, failed, unharmed)
}

// TestDamagedLabels: a damaged label part costs the series of that part alone, and the limits on new series
// stay.
func TestDamagedLabels(t *testing.T) {
	racetest.SkipSerial(t)
	ctx := context.Background()
	r := newRig(t, func(o *Options) { o.Tenant.Series, o.Tenant.NewSeries = 310, 1 })
	r.push("a", 0, 300, r.now, 1)
	r.must(r.head.Flush(ctx))
	r.push("a", 300, 301, r.now, 1)
	r.must(r.head.Flush(ctx))
	parts := r.head.group(model.Metrics, local.Labels, local.Young)
	name := parts[len(parts)-1].Info.File
	damaged := r.damage(name, func(h *Head, at int) bool {
		if n, err := h.Create("a", 100_000); n != 100_000 || err != nil {
			t.Fatalf("byte %d: %d series may be created before the rebuild: %v", at, n, err)
		}
		err := h.rebuildKnown(ctx)
		if err == nil {
			return false
		}
		if !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), name) {
			t.Fatalf("byte %d: %v", at, err)
		}
		if n := h.known.Len(); n < 300 {
			t.Fatalf("byte %d: %d of 301 series are known", at, n)
		}
		if n, err := h.Create("a", 100_000); n > 10 || !errors.Is(err, model.ErrTransient) {
			t.Fatalf("byte %d: %d new series are allowed: %v", at, n, err)
		}
		for range 100 { // which may all be known ones
			if n, err := h.Create("a", 9); n != 9 || err != nil {
				t.Fatalf("byte %d: %d of 9 series are let in: %v", at, n, err)
			}
		}
		if _, err := h.Active("a", model.Metrics); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "lacks") {
			t.Fatalf("byte %d: which series are active: %v", at, err)
		}
		return true
	})
	if damaged == 0 {
		t.Error("no byte damages the keys")
	}
	t.Logf("%d bytes damage the keys", damaged)
}

// unreadable fails reads of the file that has a name; "": of none.
func unreadable(name *atomic.Value) errorfs.Injector {
	return errorfs.InjectorFunc(func(op errorfs.Op) error {
		if file := name.Load().(string); file != "" && op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, file) {
			return errorfs.ErrInjected
		}
		return nil
	})
}

// TestDamagedAndUnreadableLabels: where the disk fails besides, the set may lack nearly all series, and no
// limit on new series refuses them.
func TestDamagedAndUnreadableLabels(t *testing.T) {
	ctx := context.Background()
	var broken atomic.Value
	broken.Store("")
	r := newRig(t, func(o *Options) { o.Tenant.Series = 310 })
	r.faults = unreadable(&broken)
	r.push("a", 0, 300, r.now, 1)
	r.must(r.head.Flush(ctx))
	r.push("a", 300, 301, r.now, 1)
	r.must(r.head.Flush(ctx))
	parts := r.head.group(model.Metrics, local.Labels, local.Young)
	older, newest := parts[0].Info.File, parts[len(parts)-1].Info.File
	if older == newest {
		t.Fatal("there is one part")
	}
	damaged := r.damage(newest, func(h *Head, at int) bool {
		broken.Store(older)
		err := h.rebuildKnown(ctx)
		broken.Store("")
		if !errors.Is(err, errorfs.ErrInjected) {
			t.Fatalf("byte %d: %v", at, err)
		}
		if n, err := h.Create("a", 1000); n != 1000 || err != nil {
			t.Fatalf("byte %d: %d of 1,000 series are let in: %v", at, n, err)
		}
		return errors.Is(err, model.ErrCorrupt)
	})
	if damaged == 0 {
		t.Error("no byte damages the keys")
	}
}

// TestRebuildAgain: while labels cannot be read, no limit refuses a series, since known ones look like new
// ones. The log and a metric name the limits, and they apply as soon as the labels can be read.
func TestRebuildAgain(t *testing.T) {
	ctx := context.Background()
	var broken atomic.Value
	broken.Store("")
	r := newRig(t, func(o *Options) {
		o.Tenant.Series, o.Tenant.NewSeries, o.NewSeries = 310, 1, 1
		o.FS = errorfs.Wrap(o.FS, unreadable(&broken))
	})
	r.push("a", 0, 300, r.now, 1)
	r.must(r.head.Flush(ctx))
	r.push("a", 300, 301, r.now, 1)
	r.must(r.head.Flush(ctx))
	parts := r.head.group(model.Metrics, local.Labels, local.Young)
	if len(parts) != 2 {
		t.Fatalf("there are %d label parts", len(parts))
	}
	newest := parts[1].Info.File
	r.must(r.head.Close())
	r.o.Registerer = prometheus.NewPedanticRegistry()
	h, err := Open(ctx, r.o)
	r.must(err)
	r.head = h
	broken.Store(newest)
	h.Start()
	waitFor(t, "a second attempt", func() bool { return r.metric("shale_head_background_errors_total") >= 2 })
	if n := h.known.Len(); n != 300 {
		t.Errorf("%d series are known, of the 300 whose labels can be read", n)
	}
	for range 3 {
		if n, err := h.Create("a", 1000); n != 1000 || err != nil {
			t.Errorf("%d of 1,000 series are let in: %v", n, err)
		}
	}
	if n := r.metric("shale_head_unapplied_limits"); n != 3 {
		t.Errorf("%v limits do not apply", n)
	}
	for _, limit := range []string{LimitTenantSeries, LimitTenantNewSeries, LimitNewSeries, newest} {
		if log := r.log.String(); !strings.Contains(log, limit) {
			t.Errorf("the log does not name %s: %s", limit, log)
		}
	}
	broken.Store("")
	waitFor(t, "the limits to apply", func() bool { return r.metric("shale_head_unapplied_limits") == 0 })
	if n := h.known.Len(); n != 301 {
		t.Errorf("%d of 301 series are known", n)
	}
	var named *model.LimitError
	if n, err := h.Create("a", 1000); n != 9 || !errors.As(err, &named) || named.Limit != LimitTenantSeries {
		t.Errorf("%d of 1,000 new series are let in, want 9: %v", n, err)
	}
	if _, err := h.Active("a", model.Metrics); err != nil {
		t.Errorf("which series are active: %v", err)
	}
}

// TestEndedDespiteDamage: where one part is damaged, the series of others leave that have ended.
func TestEndedDespiteDamage(t *testing.T) {
	racetest.SkipSerial(t)
	ctx := context.Background()
	r := newRig(t, nil)
	r.push("a", 0, 5, r.now, 1)
	r.must(r.head.Flush(ctx))
	r.push("a", 2, 3, r.now+1, 1) // will be damaged
	r.must(r.head.Flush(ctx))
	r.push("a", 0, 1, r.now+1, math.Float64frombits(model.StaleNaN))
	r.must(r.head.Flush(ctx))
	name := r.head.group(model.Metrics, local.Data, local.Young)[1].Info.File
	damaged := r.damage(name, func(h *Head, at int) bool {
		_, err := r.read("a")
		r.must(h.rebuildKnown(ctx))
		if err := h.retireEnded(ctx); err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		r.must(h.sweepKnown())
		r.must(h.sweepKnown())
		id, _ := h.tenants.find("a")
		for n := range 5 {
			if has := h.known.Has(id, model.Metrics, series(n).Key(testSeed, model.Metrics)); has != (n > 0) {
				t.Fatalf("byte %d: series %d is known: %t", at, n, has)
			}
		}
		return err != nil
	})
	if damaged == 0 {
		t.Error("no byte damages the rows")
	}
	t.Logf("%d bytes damage the rows", damaged)
}

// damage closes the head, and opens it again for one byte of a file after the other, of which one bit is
// flipped. It returns how many calls of try returned true. A head that does not open is not tried.
func (r *rig) damage(name string, try func(h *Head, at int) bool) (n int) {
	r.t.Helper()
	r.must(r.head.Close())
	whole := r.mem
	size := len(readFile(r.t, whole, "/head/"+name))
	for at := 0; at < size; at += 1 + size/200 {
		mem := whole.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		flip(r.t, mem, "/head/"+name, at)
		r.mem, r.o.FS, r.bucket.fs, r.o.Registerer = mem, mem, mem, nil
		if r.faults != nil {
			r.o.FS = errorfs.Wrap(mem, r.faults)
		}
		h, err := Open(context.Background(), r.o)
		if err != nil {
			continue
		}
		if r.head = h; try(h, at) {
			n++
		}
		h.background.stop()
		h.release()
	}
	r.head = nil
	return n
}

func readAll(t *testing.T, mem *vfs.MemFS) worldtest.Content {
	t.Helper()
	r := newRig(t, func(o *Options) { o.FS = mem })
	got, err := r.read("a")
	r.must(err)
	r.must(r.head.Close())
	r.head = nil
	return got
}
