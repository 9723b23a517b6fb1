package aggregate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a sink and a clock.
type world struct {
	mu     sync.Mutex
	now    int64 // Unix seconds
	stored map[string]float64
	stores int
	err    error
}

func newWorld() *world { return &world{now: 1000, stored: map[string]float64{}} }

func (w *world) Store(_ context.Context, tenant string, paths []string, times []int64, values []float64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.stores++
	for i := range paths {
		w.stored[fmt.Sprintf("%s %s %d", tenant, paths[i], times[i])] = values[i]
	}
	return nil
}

func (w *world) open(t *testing.T, fs vfs.FS, change ...func(*Options)) *Aggregator {
	t.Helper()
	o := Options{
		FS: fs, Dir: "/aggregation", Intervals: 5, MaxBytes: 8 << 20, Sink: w, Now: func() int64 { return w.now * 1e9 }, Idle: true,
		Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pass has time pass, a second at a time.
func (w *world) pass(a *Aggregator, seconds int) {
	for range seconds {
		w.now++
		a.Work(context.Background())
	}
}

func target(path string, m rules.Method, frequency int64) []Target {
	return []Target{{Path: path, Method: m, Frequency: frequency}}
}

func (w *world) expect(t *testing.T, want map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(want, w.stored); diff != "" {
		t.Errorf("stored: -want +got\n%s", diff)
	}
}

func TestTenantsAreApart(t *testing.T) {
	w := newWorld()
	a := w.open(t, vfs.NewMem())
	a.Take(1, "t1", target("p", rules.Sum, 10), 1001, 1)
	a.Take(1, "t2", target("p", rules.Sum, 10), 1001, 2)
	w.pass(a, 10)
	w.expect(t, map[string]float64{"t1 p 1000": 1, "t2 p 1000": 2})
}

// TestOtherRule: a buffer whose rule has changed is computed as before, and its path gets another.
func TestOtherRule(t *testing.T) {
	w, fs := newWorld(), vfs.NewMem()
	a := w.open(t, fs)
	a.Take(1, "t", target("p", rules.Sum, 10), 1001, 1)
	a.Take(2, "t", target("p", rules.Sum, 10), 1002, 2) // the file changed, the rule did not
	a.Take(3, "t", target("p", rules.Max, 60), 1003, 7)
	if err := a.Sync(); err != nil {
		t.Fatal(err)
	}
	w.open(t, fs) // writes a snapshot with two buffers of one path
	a = w.open(t, fs)
	w.pass(a, 70)
	w.expect(t, map[string]float64{"t p 1000": 3, "t p 960": 7})
	w.pass(a, 600)
	if len(a.buffers) != 0 || len(a.due) != 0 || a.bytes != 0 {
		t.Errorf("left: %d buffers, %d bytes, %d seconds", len(a.buffers), a.bytes, len(a.due))
	}
}

func TestMemoryIsBounded(t *testing.T) {
	w := newWorld()
	var log bytes.Buffer
	a := w.open(t, vfs.NewMem(), func(o *Options) { o.MaxBytes, o.Logger = 64<<10, slog.New(slog.NewTextHandler(&log, nil)) })
	for i := range 1000 {
		a.Take(1, "t", target(fmt.Sprint("p", i%500), rules.P99, 10), 1001, float64(i))
		a.Take(1, "t", target("first", rules.P99, 10), int64(1000+10*i), 1)
	}
	refused := testutil.ToFloat64(a.metrics.refused)
	if a.bytes > 32<<10 || refused < 1000 {
		t.Errorf("%d bytes, %v points refused", a.bytes, refused)
	}
	if s := log.String(); strings.Count(s, "raise memory") != 1 {
		t.Errorf("the log says %q", s)
	}
	w.pass(a, 10_000)
	w.pass(a, 1000) // those far ahead
	if a.bytes != 0 || len(w.stored) == 0 {
		t.Errorf("%d bytes are left", a.bytes)
	}
}

// TestCrash cuts the power at random times. Each sum is that of the synced points, and at most of those
// taken since then.
func TestCrash(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		w, fs := newWorld(), vfs.NewCrashableMem()
		a := w.open(t, fs)
		synced, taken := map[string]float64{}, map[string]float64{}
		for range 300 {
			path, at := fmt.Sprint("p", r.IntN(5)), w.now-r.Int64N(20)
			v := float64(r.IntN(100))
			a.Take(1, "t", target(path, rules.Sum, 10), at, v)
			taken[fmt.Sprintf("t %s %d", path, at-at%10)] += v
			switch r.IntN(20) {
			case 0, 1:
				if err := a.Sync(); err != nil {
					t.Fatal(err)
				}
				for k, v := range taken {
					synced[k] = v
				}
			case 2:
				w.now++ // what is due stays due
				a.Work(context.Background())
			case 3:
				a.file.mu.Lock()
				a.file.full = 0 // the next write is a snapshot
				a.file.mu.Unlock()
			case 4:
				fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
				a = w.open(t, fs)
				// Unsynced points may have been kept or lost; a compute tells which.
				w.stored = map[string]float64{}
				w.pass(a, 10)
				for k, v := range w.stored {
					if v < synced[k] || v > taken[k] {
						t.Fatalf("seed %d: %s: %v, want from %v to %v", seed, k, v, synced[k], taken[k])
					}
				}
				for k, v := range synced {
					if got, ok := w.stored[k]; !ok || got < v {
						// The interval was forgotten: it was older than the last intervals when it was
						// computed.
						var start int64
						fmt.Sscanf(k[strings.LastIndexByte(k, ' ')+1:], "%d", &start)
						if start >= w.now-60 {
							t.Fatalf("seed %d, second %d: %s: %v of %v are left: %v", seed, w.now, k, got, v, w.stored)
						}
					}
				}
				synced, taken = w.stored, map[string]float64{}
				for k, v := range synced {
					taken[k] = v
				}
			}
		}
	}
}

func TestLogFailure(t *testing.T) {
	w, mem := newWorld(), vfs.NewMem()
	failing := false
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("the disk is full")
		}
		return nil
	}))
	a := w.open(t, fs)
	failing = true
	a.Take(1, "t", target("p", rules.Sum, 10), 1001, 1)
	if err := a.Sync(); err == nil {
		t.Fatal("a full disk is no error")
	}
	a.Take(1, "t", target("p", rules.Sum, 10), 1002, 2)
	if err := a.Sync(); err == nil || len(a.pending) != 0 {
		t.Fatalf("error %v; %d bytes are pending", err, len(a.pending))
	}
	failing, a.file.failed.err = false, nil // a second later
	if err := a.Sync(); err != nil {
		t.Fatal(err)
	}
	a = w.open(t, mem)
	w.pass(a, 10)
	w.expect(t, map[string]float64{"t p 1000": 3})
	if got := testutil.ToFloat64(a.metrics.logErrors); got != 0 {
		t.Errorf("%v errors after the start", got)
	}
}

func TestSinkFailureKeepsPoints(t *testing.T) {
	w, fs := newWorld(), vfs.NewMem()
	a := w.open(t, fs)
	a.Take(1, "t", target("p", rules.Sum, 10), 1001, 1)
	w.err = model.ErrClosed
	w.pass(a, 100)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	w.err = nil
	w.pass(w.open(t, fs), 10)
	w.expect(t, map[string]float64{"t p 1000": 1})
}

func TestConcurrent(t *testing.T) {
	w := newWorld()
	w.now = time.Now().Unix()
	a := w.open(t, vfs.NewMem(), func(o *Options) { o.Idle = false })
	var senders sync.WaitGroup
	for g := range 4 {
		senders.Go(func() {
			for i := range 2000 {
				a.Take(1, "t", target(fmt.Sprint("p", i%7), rules.Count, 3600), w.now, 1)
				if i%100 == g {
					if err := a.Sync(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	senders.Wait()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	w.now += 3600
	a.o.Now = func() int64 { return w.now * 1e9 }
	a.Work(context.Background())
	total := 0.0
	for _, v := range w.stored {
		total += v
	}
	if total != 8000 {
		t.Errorf("the counts sum to %v, want 8000", total)
	}
}

func TestTakeAllocatesLittle(t *testing.T) {
	w := newWorld()
	a := w.open(t, vfs.NewMem())
	to := target("p", rules.Sum, 10)
	for range 100_000 {
		a.Take(1, "t", to, 1001, 1)
	}
	if n := testing.AllocsPerRun(1000, func() { a.Take(1, "t", to, 1001, 1) }); n >= 1 {
		t.Errorf("%v allocations a point", n)
	}
}

// file returns a log with records.
func file(t testing.TB, fs vfs.FS, records ...[]byte) {
	t.Helper()
	if err := fs.MkdirAll("/data/aggregation", 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create("/data/aggregation/000003.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	w := record.NewWriter(f)
	for _, r := range records {
		if _, err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestRefusesDamage(t *testing.T) {
	b := &buffer{id: 1, name: name{"t", "p"}, method: rules.P50, frequency: 10}
	made := appendBuffer(nil, b)
	for _, c := range []struct {
		records []string
		want    string
	}{
		{[]string{}, "cannot be read"},
		{[]string{"other"}, `expected the format "shale aggregation 1", found "other"`},
		{[]string{format, string(appendFloat(append(appendID(nil, entryValue, 1), 2), 1))}, "is about buffer 1, which does not exist"},
		{[]string{format, string(made[:4])}, "cut off"},
		{[]string{format, string(made) + string(made)}, `buffer 1 of "p" is invalid`},
		{[]string{format, string(made) + "x\x01"}, `unknown kind 'x'`},
		{[]string{format, string(made) + "s\x01\x02\x03\x00\x00\x00\x00\x00\x00\x00\x00\x01"}, "cut off"},
		{[]string{format, string(made) + "s\x01\x02\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"}, "an interval of buffer 1 is invalid"},
	} {
		fs := vfs.NewMem()
		var records [][]byte
		for _, r := range c.records {
			records = append(records, []byte(r))
		}
		file(t, fs, records...)
		w := newWorld()
		_, err := Open(Options{FS: fs, Dir: "/data/aggregation", MaxBytes: 1 << 20, Sink: w, Now: func() int64 { return 0 }, Idle: true, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%q: error %v, want %s", c.records, err, c.want)
		}
	}
}

func FuzzReplay(f *testing.F) {
	b := &buffer{id: 1, name: name{"t", "p"}, method: rules.P50, frequency: 10}
	i := &interval{start: 10, count: 1, values: []float64{2}}
	text := appendInterval(appendBuffer(nil, b), b, i)
	f.Add(text)
	f.Add(appendID(appendID(append(text, "d\x01\x14"...), entryRetired, 1), entryRemoved, 1))
	f.Add(appendFloat(append(appendID(text, entryValue, 1), 0x28), 3))
	f.Fuzz(func(t *testing.T, text []byte) {
		a := &Aggregator{o: Options{MaxBytes: 1 << 20}, byName: map[name]*buffer{}, buffers: map[uint64]*buffer{}, due: map[int64][]uint64{}}
		if a.apply(text) != nil {
			return
		}
		// A snapshot says the same.
		again := &Aggregator{byName: map[name]*buffer{}, buffers: map[uint64]*buffer{}, due: map[int64][]uint64{}}
		if err := again.apply(a.snapshot()); err != nil {
			t.Fatal(err)
		}
		if len(again.buffers) != len(a.buffers) || again.bytes != a.bytes {
			t.Errorf("%d buffers of %d bytes became %d of %d", len(a.buffers), a.bytes, len(again.buffers), again.bytes)
		}
	})
}
