package head

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
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

func readAll(t *testing.T, mem *vfs.MemFS) worldtest.Content {
	t.Helper()
	r := newRig(t, func(o *Options) { o.FS = mem })
	got, err := r.read("a")
	r.must(err)
	r.must(r.head.Close())
	r.head = nil
	return got
}
