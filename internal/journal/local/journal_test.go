package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

const seed model.KeySeed = 0x5eed

// batch is a pure function of n.
func batch(n int) *model.Batch {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	b := &model.Batch{Tenant: fmt.Sprintf("tenant-%d", n%3), Signal: model.Metrics}
	for i := range 1 + r.IntN(20) {
		if n%10 == 0 && i%3 == 1 {
			b.Samples.AppendBlob(r.Int64(), model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{Count: r.Uint64()}), r.Int64())
			b.Exemplars.AppendBlob(r.Int64(), model.KindExemplar, model.AppendExemplar(nil, &model.Exemplar{Value: r.Uint64()}), 0)
		}
		b.AddSample(model.Key{Hi: r.Uint64(), Lo: uint64(n)}, r.Int64(), r.Uint64())
	}
	b.Labels.Append(0, model.LabelsOf("__name__", fmt.Sprintf("metric_%d", n)))
	return b
}

func number(b *model.Batch) int { return int(b.Keys[0].Lo) }

func encode(b *model.Batch) string { return string(journal.EncodeBatch(nil, b)) }

// applied notes what the journal applies.
type applied struct {
	mu   sync.Mutex
	seqs []uint64
	recs map[uint64]string
}

func (a *applied) apply(seq uint64, b *model.Batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recs == nil {
		a.recs = map[uint64]string{}
	}
	a.seqs = append(a.seqs, seq)
	a.recs[seq] = encode(b)
}

func (a *applied) check(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, seq := range a.seqs {
		if i > 0 && seq != a.seqs[i-1]+1 {
			t.Fatalf("%d was applied after %d", seq, a.seqs[i-1])
		}
	}
}

func options(fs vfs.FS) Options {
	return Options{FS: fs, Dir: "data/journal", Seed: seed, SegmentBytes: 2000}
}

func newFS(t testing.TB) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	if err := fs.MkdirAll("data", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syncDir(fs, ""); err != nil {
		t.Fatal(err)
	}
	return fs
}

func open(t testing.TB, o Options) *Journal {
	t.Helper()
	j, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func start(t testing.TB, o Options) *Journal {
	t.Helper()
	j := open(t, o)
	if err := j.Start(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func mustAppend(t testing.TB, j *Journal, b *model.Batch) {
	t.Helper()
	if err := j.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// replayed returns the records from a sequence number on, and checks that they follow each other.
func replayed(t testing.TB, fs vfs.FS, from uint64) (first uint64, recs []string) {
	t.Helper()
	first, recs, err := tryReplay(fs, from)
	if err != nil {
		t.Fatal(err)
	}
	return first, recs
}

func tryReplay(fs vfs.FS, from uint64) (first uint64, recs []string, err error) {
	j, err := Open(options(fs))
	if err != nil {
		return 0, nil, err
	}
	err = j.Replay(context.Background(), from, func(seq uint64, b *model.Batch) error {
		if len(recs) == 0 {
			first = seq
		}
		if seq != first+uint64(len(recs)) {
			return fmt.Errorf("record %d at place %d after %d", seq, len(recs), first)
		}
		recs = append(recs, encode(b))
		return nil
	})
	if err == nil && len(recs) > 0 && j.LastSeq() != first+uint64(len(recs))-1 {
		err = fmt.Errorf("LastSeq is %d after %d records from %d", j.LastSeq(), len(recs), first)
	}
	return first, recs, err
}

func TestAppendReplay(t *testing.T) {
	fs := newFS(t)
	var a applied
	o := options(fs)
	o.Apply, o.Registerer = a.apply, prometheus.NewPedanticRegistry()
	var want []string
	for run := range 4 {
		if run > 0 {
			o.Registerer = nil
		}
		j := start(t, o)
		for i := range 30 {
			b := batch(run*100 + i)
			want = append(want, encode(b))
			mustAppend(t, j, b)
			if got := a.recs[uint64(len(want))]; got != want[len(want)-1] {
				t.Fatalf("record %d was not applied when Append returned", len(want))
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := j.Append(context.Background(), batch(0)); !errors.Is(err, model.ErrClosed) {
			t.Fatalf("append after close: %v", err)
		}
	}
	a.check(t)
	first, got := replayed(t, fs, 1)
	if diff := cmp.Diff(want, got); diff != "" || first != 1 {
		t.Fatalf("replay from %d differs: %s", first, diff)
	}
	for from := uint64(1); from < 125; from += 7 {
		_, got := replayed(t, fs, from)
		if diff := cmp.Diff(want[min(int(from)-1, len(want)):], got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("replay from %d: %s", from, diff)
		}
	}
	if err := Check(context.Background(), fs, o.Dir); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentAppend(t *testing.T) {
	fs := newFS(t)
	var a applied
	o := options(fs)
	o.Apply, o.MaxQueueBytes, o.SegmentBytes = a.apply, 3000, 20000
	j := start(t, o)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 50 {
				if err := j.Append(context.Background(), batch(w*1000+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	a.check(t)
	_, got := replayed(t, fs, 1)
	if len(got) != 16*50 {
		t.Fatalf("%d records", len(got))
	}
	order := map[int]int{}
	for i, rec := range got {
		if a.recs[uint64(i)+1] != rec {
			t.Fatalf("record %d is not what was applied", i+1)
		}
		var b model.Batch
		if err := journal.DecodeBatch([]byte(rec), &b); err != nil {
			t.Fatal(err)
		}
		w, n := number(&b)/1000, number(&b)%1000
		if order[w] != n {
			t.Fatalf("appender %d: batch %d came when %d was expected", w, n, order[w])
		}
		order[w]++
	}
}

func TestTruncate(t *testing.T) {
	fs := newFS(t)
	j := start(t, options(fs))
	for i := range 100 {
		mustAppend(t, j, batch(i))
	}
	before := j.Bytes()
	if err := j.Truncate(50); err != nil {
		t.Fatal(err)
	}
	if j.Bytes() >= before*3/4 {
		t.Fatalf("%d of %d bytes are left", j.Bytes(), before)
	}
	if _, got := replayed(t, fs, 51); len(got) != 50 {
		t.Fatalf("%d records", len(got))
	}
	if _, _, err := tryReplay(fs, 2); !errors.Is(err, model.ErrCorrupt) {
		t.Fatalf("replay of truncated records: %v", err)
	}
	if err := j.Truncate(1000); err != nil {
		t.Fatal(err)
	}
	if names, _ := fs.List("data/journal"); len(names) != 1 {
		t.Fatalf("%v are left", names)
	}
	mustAppend(t, j, batch(100))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = start(t, options(fs))
	mustAppend(t, j, batch(101))
	if j.LastSeq() != 102 {
		t.Fatalf("the last record is %d", j.LastSeq())
	}
	if _, got := replayed(t, fs, 101); len(got) != 2 {
		t.Fatalf("%d records", len(got))
	}
}

// TestTruncateWhileAppending has the head cover what it was given, while the journal goes on.
func TestTruncateWhileAppending(t *testing.T) {
	fs := newFS(t)
	o := options(fs)
	o.Registerer = prometheus.NewPedanticRegistry()
	var last atomic.Uint64
	o.Apply = func(seq uint64, _ *model.Batch) { last.Store(seq) }
	j := start(t, o)
	var appenders, truncater sync.WaitGroup
	stop := make(chan struct{})
	truncater.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if seq := last.Load(); seq > 20 {
				if err := j.Truncate(seq - 20); err != nil {
					t.Error(err)
				}
			}
			_, _ = j.Bytes(), j.LastSeq()
		}
	})
	for w := range 4 {
		appenders.Go(func() {
			for i := range 100 {
				mustAppend(t, j, batch(w*1000+i))
			}
		})
	}
	appenders.Wait()
	close(stop)
	truncater.Wait()
	if err := j.Truncate(380); err != nil { // it may have been slower than the appenders
		t.Error(err)
	}
	j.Close()
	if _, got := replayed(t, fs, 381); len(got) != 20 {
		t.Fatalf("%d records", len(got))
	}
	if names := segmentsOf(t, fs); len(names) > 20 {
		t.Fatalf("%d segments are left", len(names))
	}
}

// TestStartBeyond has a journal that lacks records which are in durable parts.
func TestStartBeyond(t *testing.T) {
	fs := newFS(t)
	j := start(t, options(fs))
	for i := range 10 {
		mustAppend(t, j, batch(i))
	}
	j.Close()
	for range 3 {
		j = open(t, options(fs))
		if err := j.Start(21); err != nil {
			t.Fatal(err)
		}
		j.Close()
	}
	j = start(t, options(fs))
	mustAppend(t, j, batch(20))
	j.Close()
	if j.LastSeq() != 21 {
		t.Fatalf("the last record is %d", j.LastSeq())
	}
	if first, got := replayed(t, fs, 21); first != 21 || len(got) != 1 {
		t.Fatalf("%d records from %d", len(got), first)
	}
	if _, _, err := tryReplay(fs, 5); !errors.Is(err, model.ErrCorrupt) {
		t.Fatalf("replay over the gap: %v", err)
	}
	if err := Check(context.Background(), fs, "data/journal"); err != nil {
		t.Fatal(err)
	}
}

func TestSeedMismatch(t *testing.T) {
	fs := newFS(t)
	start(t, options(fs)).Close()
	o := options(fs)
	o.Seed++
	if _, err := Open(o); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "seed") {
		t.Fatal(err)
	}
}

// TestQueueFull has appenders wait for room while Apply stands still: a batch holds its room until it has
// been applied.
func TestQueueFull(t *testing.T) {
	fs := newFS(t)
	o := options(fs)
	o.MaxQueueBytes = int64(journal.SizeHint(batch(0)) + journal.SizeHint(batch(1)))
	release, applying := make(chan struct{}), make(chan struct{}, 10)
	o.Apply = func(uint64, *model.Batch) { applying <- struct{}{}; <-release }
	j := start(t, o)
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			if err := j.Append(context.Background(), batch(i)); err != nil {
				t.Error(err)
			}
		})
	}
	<-applying
	for j.held.Load() < o.MaxQueueBytes { // the second has taken its place
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := j.Append(ctx, batch(99)); !errors.Is(err, model.ErrTransient) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("append to a full queue: %v", err)
	}
	close(release)
	wg.Wait()
	if held := j.held.Load(); held != 0 {
		t.Errorf("%d bytes are held by nobody", held)
	}
	mustAppend(t, j, batch(2))
	j.Close()
	if _, got := replayed(t, fs, 1); len(got) != 3 || slices.Contains(got, encode(batch(99))) {
		t.Fatalf("%d records", len(got))
	}
}

func TestAppendAllocates(t *testing.T) {
	o := options(vfs.NewMem())
	if err := o.FS.MkdirAll("data", 0o755); err != nil {
		t.Fatal(err)
	}
	o.SegmentBytes = 1 << 30
	j := start(t, o)
	b := batch(1)
	alloctest.AtMost(t, 1, 200, func() { mustAppend(t, j, b) })
}
