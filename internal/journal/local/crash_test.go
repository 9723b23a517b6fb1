package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

// crash is a file system as a power cut may leave it, with what had been acknowledged before the cut.
type crash struct {
	fs        *vfs.MemFS
	acked     map[int]string
	truncated uint64
}

// crasher takes crash clones at every operation that changes files.
type crasher struct {
	mem *vfs.MemFS
	rng *rand.Rand

	mu        sync.Mutex
	acked     map[int]string
	truncated uint64
	crashes   []crash
}

// hook is called before every operation.
func (c *crasher) hook(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpRename, errorfs.OpRemove, errorfs.OpCreate:
	default:
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, percent := range []int{0, 50, 100} {
		cr := crash{acked: map[int]string{}, truncated: c.truncated}
		for n, rec := range c.acked {
			cr.acked[n] = rec
		}
		cr.fs = c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng})
		c.crashes = append(c.crashes, cr)
	}
	return nil
}

func (c *crasher) ack(b *model.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked[number(b)] = encode(b)
}

// TestCrash cuts the power before every change of a file. Whatever had been acknowledged is there, once,
// unchanged, and what else is there is whole. The journal then goes on, and a second cut takes nothing
// either.
func TestCrash(t *testing.T) {
	c := &crasher{mem: newFS(t), rng: rand.New(rand.NewPCG(1, 2)), acked: map[int]string{}}
	o := options(errorfs.Wrap(c.mem, errorfs.InjectorFunc(c.hook)))
	for run := range 3 {
		j := start(t, o)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 12 {
					b := batch(run*10000 + w*1000 + i)
					if err := j.Append(context.Background(), b); err != nil {
						t.Error(err)
					}
					c.ack(b)
				}
			})
		}
		wg.Wait()
		if run > 0 {
			covered := j.LastSeq() - 40
			c.mu.Lock()
			c.truncated = covered
			c.mu.Unlock()
			if err := j.Truncate(covered); err != nil {
				t.Fatal(err)
			}
		}
		j.Close()
	}
	t.Logf("%d crashes", len(c.crashes))
	for i, cr := range c.crashes {
		if i%racetest.Fewer > 0 {
			continue
		}
		first, recs := verify(t, i, cr)
		j := start(t, options(cr.fs))
		mustAppend(t, j, batch(77_000))
		mustAppend(t, j, batch(77_001))
		again := cr.fs.CrashClone(vfs.CrashCloneCfg{})
		j.Close()
		_, after := replayed(t, again, max(first, 1))
		if len(after) != len(recs)+2 {
			t.Fatalf("crash %d: %d records, and %d after another crash", i, len(recs), len(after))
		}
		for k := range recs {
			if recs[k] != after[k] {
				t.Fatalf("crash %d: record %d has changed", i, k)
			}
		}
	}
}

// verify replays a crashed journal from where it was truncated.
func verify(t *testing.T, i int, cr crash) (first uint64, recs []string) {
	t.Helper()
	if _, err := cr.fs.Stat("data/journal"); errors.Is(err, fs.ErrNotExist) && len(cr.acked) == 0 {
		return 0, nil
	}
	first, recs, err := tryReplay(cr.fs, cr.truncated+1)
	if err != nil {
		t.Fatalf("crash %d: %v", i, err)
	}
	count := map[string]int{}
	for _, rec := range recs {
		count[rec]++
	}
	missing := 0
	for n, rec := range cr.acked {
		switch count[rec] {
		case 0:
			missing++
		case 1:
		default:
			t.Fatalf("crash %d: batch %d is there %d times", i, n, count[rec])
		}
	}
	// As many as were truncated, by number, may be missing, and none else.
	if missing > int(cr.truncated) {
		t.Fatalf("crash %d: %d of %d acknowledged batches are missing", i, missing, len(cr.acked))
	}
	return first, recs
}

// TestKillThenPowerCut has a process end between write and sync, so that its last record is read again
// although it is in the page cache alone. What replay has given to the head once must survive a power cut
// later.
func TestKillThenPowerCut(t *testing.T) {
	mem := newFS(t)
	var broken errorfs.Toggle
	broken.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData {
			return errDisk
		}
		return nil
	})
	j := start(t, options(errorfs.Wrap(mem, &broken)))
	mustAppend(t, j, batch(1))
	broken.On()
	if err := j.Append(context.Background(), batch(2)); !errors.Is(err, model.ErrTransient) {
		t.Fatal(err)
	}
	j.Close()
	if _, recs := replayed(t, mem, 1); len(recs) != 2 {
		t.Fatalf("%d records are read from the page cache", len(recs))
	}
	j = start(t, options(mem))
	mustAppend(t, j, batch(3))
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	j.Close()
	_, recs := replayed(t, crashed, 1)
	if !slices.Equal(recs, []string{encode(batch(1)), encode(batch(2)), encode(batch(3))}) {
		t.Fatalf("%d records after the power cut", len(recs))
	}
}

var errDisk = errors.New("no space left on device")

// TestDiskErrors lets each kind of operation fail for a while, again and again, with appenders that try until
// they succeed. What was acknowledged is there once; what was refused is not, since the journal went on
// afterwards.
func TestDiskErrors(t *testing.T) {
	for _, kinds := range [][]errorfs.OpKind{
		{errorfs.OpFileWrite}, {errorfs.OpFileSyncData}, {errorfs.OpFileSync}, {errorfs.OpCreate}, {errorfs.OpRename},
		{errorfs.OpFilePreallocate}, {errorfs.OpFileSyncData, errorfs.OpRename},
	} {
		t.Run(fmt.Sprint(kinds), func(t *testing.T) {
			mem := newFS(t)
			var mu sync.Mutex
			rng := rand.New(rand.NewPCG(3, 4))
			broken := false
			fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				mu.Lock()
				defer mu.Unlock()
				for _, k := range kinds {
					if broken && op.Kind == k && rng.IntN(3) > 0 {
						return errDisk
					}
				}
				return nil
			}))
			var a applied
			o := options(fs)
			o.Apply = a.apply
			j := start(t, o)
			acked, refused := map[string]bool{}, 0
			for i := range 120 {
				mu.Lock()
				broken = i%20 > 5
				mu.Unlock()
				var wg sync.WaitGroup
				for w := range 3 {
					wg.Go(func() {
						b := batch(w*1000 + i)
						err := j.Append(context.Background(), b)
						mu.Lock()
						defer mu.Unlock()
						switch {
						case err == nil:
							acked[encode(b)] = true
						case !errors.Is(err, model.ErrTransient) || !errors.Is(err, errDisk):
							t.Error(err)
						default:
							refused++
						}
					})
				}
				wg.Wait()
			}
			mu.Lock()
			broken = false
			mu.Unlock()
			last := batch(999_999)
			mustAppend(t, j, last)
			acked[encode(last)] = true
			crashed := mem.CrashClone(vfs.CrashCloneCfg{})
			j.Close()
			a.check(t)
			for name, fs := range map[string]vfs.FS{"closed": mem, "crashed": crashed} {
				_, recs := replayed(t, fs, 1)
				if len(recs) != len(acked) {
					t.Fatalf("%s: %d records of %d acknowledged", name, len(recs), len(acked))
				}
				for i, rec := range recs {
					if !acked[rec] || a.recs[uint64(i)+1] != rec {
						t.Fatalf("%s: record %d was not acknowledged", name, i+1)
					}
				}
				if err := Check(context.Background(), fs, o.Dir); err != nil {
					t.Fatal(err)
				}
			}
			if refused == 0 && kinds[0] != errorfs.OpFilePreallocate && kinds[0] != errorfs.OpCreate && kinds[0] != errorfs.OpRename && kinds[0] != errorfs.OpFileSync {
				t.Fatal("nothing failed")
			}
			t.Logf("%d acknowledged, %d refused", len(acked), refused)
		})
	}
}

// segmentsOf returns the names of the segments, oldest first.
func segmentsOf(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	segs, err := folder{fs: fs, path: "data/journal"}.list()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range segs {
		names = append(names, "data/journal/"+s.name)
	}
	return names
}

// edit changes the bytes of a file.
func edit(t *testing.T, fs vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, info.Size())
	if _, err := f.ReadAt(buf, 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	f, err = fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(change(buf)); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func filled(t *testing.T) (*vfs.MemFS, []string, int) {
	t.Helper()
	fs := newFS(t)
	j := start(t, options(fs))
	for i := range 40 {
		mustAppend(t, j, batch(i))
	}
	j.Close()
	return fs, segmentsOf(t, fs), 40
}

// TestDamage changes each byte of a segment, one after the other.
func TestDamage(t *testing.T) {
	racetest.SkipSerial(t)
	for _, which := range []string{"oldest", "newest"} {
		t.Run(which, func(t *testing.T) {
			fs, names, n := filled(t)
			name := names[0]
			if which == "newest" {
				name = names[len(names)-1]
			}
			for i := 0; ; i++ {
				size := 0
				edit(t, fs, name, func(b []byte) []byte { size = len(b); b[i] ^= 0x40; return b })
				_, recs, err := tryReplay(fs, 1)
				switch {
				case err == nil && i < segmentHeader:
					t.Fatalf("the change of byte %d went unseen", i)
				case err == nil && len(recs) == n:
					t.Fatalf("the change of byte %d went unseen", i)
				case err == nil && which == "newest" && len(recs) == n-1:
					// Nothing vouches for the last record.
				case err == nil:
					t.Fatalf("the change of byte %d took %d records silently", i, n-len(recs))
				case i >= 8 && i < 12 && errors.Is(err, model.ErrInvalid): // the version
				case !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), name):
					t.Fatalf("byte %d: %v", i, err)
				}
				edit(t, fs, name, func(b []byte) []byte { b[i] ^= 0x40; return b })
				if i == size-1 {
					break
				}
			}
		})
	}
}

// TestTornTail cuts the newest segment at each length, and lets zeros or noise follow.
func TestTornTail(t *testing.T) {
	racetest.SkipSerial(t)
	fs, names, _ := filled(t)
	name := names[len(names)-1]
	_, want := replayed(t, fs, 1)
	var whole []byte
	edit(t, fs, name, func(b []byte) []byte { whole = append(whole, b...); return b })
	noise := make([]byte, 5000)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for cut := segmentHeader; cut <= len(whole); cut += 1 + cut%3 {
		least := -1
		for _, tail := range [][]byte{nil, make([]byte, 5000), noise} {
			edit(t, fs, name, func([]byte) []byte { return append(append([]byte(nil), whole[:cut]...), tail...) })
			_, recs, err := tryReplay(fs, 1)
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if least < 0 {
				least = len(recs)
			}
			// What follows may by chance be the byte that was cut off.
			if len(recs) < least || len(recs) > least+1 || !slices.Equal(recs, want[:len(recs)]) {
				t.Fatalf("cut at %d, then %x...: %d records, not %d", cut, tail[:4], len(recs), least)
			}
		}
		if cut == len(whole) && least != len(want) {
			t.Fatalf("%d of %d records", least, len(want))
		}
	}
}

// TestTornTailIsReported: what the start drops is in the log, with file, offset and bytes, and a whole
// journal is not.
func TestTornTailIsReported(t *testing.T) {
	fs, names, n := filled(t)
	name := names[len(names)-1]
	for _, cut := range []int{0, 5} {
		size := 0
		edit(t, fs, name, func(b []byte) []byte { size = len(b) - cut; return b[:size] })
		var out bytes.Buffer
		o := options(fs)
		o.Logger = slog.New(slog.NewTextHandler(&out, nil))
		o.Registerer = prometheus.NewPedanticRegistry()
		j := open(t, o)
		line := out.String()
		if cut == 0 {
			if line != "" {
				t.Errorf("nothing is torn: %s", line)
			}
			continue
		}
		for _, want := range []string{
			"level=WARN", "file=" + name, fmt.Sprint("offset=", j.tail.end), fmt.Sprint("bytes=", int64(size)-j.tail.end), fmt.Sprint("last_record=", n-1),
		} {
			if !strings.Contains(line, want) {
				t.Errorf("%q lacks %q", line, want)
			}
		}
	}
}

func TestDump(t *testing.T) {
	fs, _, _ := filled(t)
	var sb strings.Builder
	if err := Dump(context.Background(), &sb, fs, "data/journal"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(sb.String(), ": record "); got != 40 {
		t.Fatalf("%d records in\n%s", got, sb.String())
	}
}

func FuzzReplay(f *testing.F) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("data", 0o755); err != nil {
		f.Fatal(err)
	}
	o := options(mem)
	o.SegmentBytes = 1 << 20
	j := start(f, o)
	for i := range 5 {
		mustAppend(f, j, batch(i))
	}
	j.Close()
	whole, err := mem.UnsafeGetFileDataBuffer("data/journal/" + segmentName(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(append([]byte(nil), whole...), make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		fs := vfs.NewMem()
		if err := fs.MkdirAll("data/journal", 0o755); err != nil {
			t.Fatal(err)
		}
		file, err := fs.Create("data/journal/"+segmentName(1), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(data); err != nil {
			t.Fatal(err)
		}
		file.Close()
		j, err := Open(options(fs))
		if err != nil {
			if !errors.Is(err, model.ErrCorrupt) && !errors.Is(err, model.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		n := j.LastSeq()
		if err := j.Replay(context.Background(), 0, func(uint64, *model.Batch) error { return nil }); err != nil {
			if !errors.Is(err, model.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		// What can be replayed can be gone on with.
		if err := j.Start(0); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, j, batch(1))
		if j.Close(); j.LastSeq() != n+1 {
			t.Fatalf("record %d after %d", j.LastSeq(), n)
		}
		if err := Check(context.Background(), fs, "data/journal"); err != nil {
			t.Fatal(err)
		}
	})
}
