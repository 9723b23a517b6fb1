package ssd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/admit"
	"github.com/shaledb/shale/internal/model"
)

// by returns a query without a tenant.
func by(query uint64) cache.Asker { return cache.Asker{Query: query} }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testDir = "/ssd"

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

func testOptions(fs vfs.FS) Options {
	return Options{
		FS: fs, Dir: testDir, MaxBytes: MinBytes, Limits: Limits{WritesPerDay: 1000, FreshPercent: 25}, IndexBytes: 1 << 20, QueueBytes: 1 << 20,
		Now: newClock().Now, Registerer: prometheus.NewRegistry(),
	}
}

// newSmall returns a Store of a few small segments whose goroutine does not run: tests call what it would.
func newSmall(t testing.TB, o Options, slots int) *Store {
	t.Helper()
	s, err := newStore(o)
	if err != nil {
		t.Fatal(err)
	}
	s.segmentBytes, s.slots = 16<<10, make([]slot, slots)
	s.start()
	return s
}

func key(n int) cache.Key {
	return cache.Key{Object: fmt.Sprintf("data/%02d.part", n%7), Kind: cache.Stored, Off: int64(n)}
}

// value returns the value of a key, which is the same in every process.
func value(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 9))
	b := make([]byte, 1+r.IntN(1500))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// put has a value admitted and written.
func (s *Store) put(n int) {
	s.Offer(key(n), by(1), value(n))
	s.Offer(key(n), by(2), value(n))
	s.drain()
}

// check looks a value up, and fails if it is a wrong one.
func (s *Store) check(t testing.TB, n int) bool {
	t.Helper()
	got := s.Get(context.Background(), key(n), by(2))
	if got.From == cache.Nowhere {
		return false
	}
	if !bytes.Equal(got.Value, value(n)) {
		t.Fatalf("value %d: got %d wrong bytes", n, len(got.Value))
	}
	return true
}

func (s *Store) found(t testing.TB, values int) (n int) {
	for i := range values {
		if s.check(t, i) {
			n++
		}
	}
	return n
}

func TestSecondQueryIsWritten(t *testing.T) {
	s := newSmall(t, testOptions(vfs.NewMem()), 8)
	s.Offer(key(1), by(1), value(1))
	s.drain()
	if s.Get(context.Background(), key(1), by(1)).From != cache.Disk || s.index.entries.Load() != 0 || !s.Has(key(1)) {
		t.Error("a value that waits is not found, or is written")
	}
	s.Use(key(1), by(1))
	if s.drain(); s.index.entries.Load() != 0 {
		t.Error("the second touch of one query is written")
	}
	s.Use(key(1), by(2))
	if s.drain(); s.index.entries.Load() != 1 || !s.check(t, 1) || !s.Has(key(1)) {
		t.Error("the second query is not written")
	}
	if s.Has(key(2)) || s.check(t, 2) {
		t.Error("a value that was never offered is found")
	}
	if err := s.finish(); err != nil {
		t.Error(err)
	}
}

// TestWrongKey: a record of another key with the same hash in the index is a miss.
func TestWrongKey(t *testing.T) {
	s := newSmall(t, testOptions(vfs.NewMem()), 8)
	s.put(1)
	e, _ := s.index.get(key(1).Hash())
	s.index.put(key(2).Hash(), int(e.slot), e.off, e.length, 1)
	if s.Get(context.Background(), key(2), by(1)).From != cache.Nowhere {
		t.Error("the value of another key")
	}
	if n := testutil.ToFloat64(s.m.bad); n != 0 || !s.check(t, 1) {
		t.Errorf("%.0f damaged records", n)
	}
}

// TestReclaim: the log overwrites the oldest, keeps what queries use, within its size and its share of
// reinsertion.
func TestReclaim(t *testing.T) {
	s := newSmall(t, testOptions(vfs.NewMem()), 8)
	const values, hot = 2000, 10
	for n := range values {
		s.put(n)
		if n%10 == 0 {
			for i := range hot {
				s.Use(key(i), by(uint64(n+3)))
			}
		}
		if used := s.index.bytes.Load(); used > 8*s.segmentBytes {
			t.Fatalf("%d bytes in a tier of %d", used, 8*s.segmentBytes)
		}
	}
	if n := s.found(t, hot); n != hot {
		t.Errorf("%d of %d values that queries use are left", n, hot)
	}
	newest := 0
	for n := values - 50; n < values; n++ {
		if s.check(t, n) {
			newest++
		}
	}
	if newest != 50 {
		t.Errorf("%d of the 50 newest values are left", newest)
	}
	if n := s.found(t, values/2); n != hot {
		t.Errorf("%d of the older half of the values are left, expected the %d in use", n, hot)
	}
	if evicted, unread := testutil.ToFloat64(s.m.evicted), testutil.ToFloat64(s.m.unread); evicted != float64(values-s.index.entries.Load()) || unread != evicted {
		t.Errorf("%.0f evictions, %.0f of them unread; %d values are left of %d", evicted, unread, s.index.entries.Load(), values)
	}
	if n := testutil.ToFloat64(s.m.reinserted); n == 0 {
		t.Error("nothing was reinserted")
	}
}

// TestReinsertionIsBounded: a tier that is all in use still takes new values.
func TestReinsertionIsBounded(t *testing.T) {
	s := newSmall(t, testOptions(vfs.NewMem()), 8)
	for n := range 1000 {
		s.put(n)
		for i := range n {
			s.Use(key(i), by(uint64(n+5)))
		}
	}
	written, reinserted := testutil.ToFloat64(s.m.written), testutil.ToFloat64(s.m.reinserted)
	if reinserted > written*admit.MostReinserted/100 || reinserted < written/5 {
		t.Errorf("%.0f bytes were reinserted, of %.0f", reinserted, written)
	}
	if !s.check(t, 999) {
		t.Error("the newest value is not there")
	}
}

// TestRestart: content, order of eviction, uses, hashes and budget outlive a restart. A kill loses only what
// is in the snapshot.
func TestRestart(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprintf("kill %t", kill), func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			o := testOptions(fs)
			s := newSmall(t, o, 8)
			for n := range 300 {
				s.put(n)
			}
			s.Offer(key(1000), by(1), value(1000))
			before := s.found(t, 300)
			order := s.order()
			if kill {
				// What a process has written is there after its end, but not what it has not closed.
				o.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
			} else if err := s.finish(); err != nil {
				t.Fatal(err)
			}
			o.Registerer = prometheus.NewRegistry()
			again := newSmall(t, o, 8)
			if after := again.found(t, 300); after != before {
				t.Errorf("%d values after the restart, expected %d", after, before)
			}
			if got := again.order(); fmt.Sprint(got) != fmt.Sprint(order) {
				t.Errorf("the order of eviction is %v, expected %v", got, order)
			}
			if !kill && again.budget.left.Load() != s.budget.left.Load() {
				t.Errorf("%d bytes of the budget are left, expected %d", again.budget.left.Load(), s.budget.left.Load())
			}
			for n := 300; n < 600; n++ {
				again.put(n)
			}
			if !again.check(t, 599) || again.check(t, 0) {
				t.Error("the log does not go on")
			}
		})
	}
}

// order returns the generations of all segments that hold something, in the order of eviction.
func (s *Store) order() (generations []uint64) {
	for _, at := range s.sealed {
		generations = append(generations, s.slots[at].generation.Load())
	}
	return append(generations, s.slots[s.open].generation.Load())
}

// TestSnapshotKeepsUses: after a restart, what queries used before is reinserted, and what one query wanted
// is admitted by the next.
func TestSnapshotKeepsUses(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.QueueBytes = 4 << 10 // so that few values wait
	s := newSmall(t, o, 8)
	for n := range 100 {
		s.put(n)
	}
	s.Use(key(0), by(7))
	for n := 1000; n < 1050; n++ {
		s.Offer(key(n), by(1), value(n))
	}
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	o.Registerer, o.QueueBytes = prometheus.NewRegistry(), 1<<20
	s = newSmall(t, o, 8)
	if e, ok := s.index.get(key(0).Hash()); !ok || e.uses() != 1 {
		t.Errorf("uses of a value after a restart: %d, %t", e.uses(), ok)
	}
	for n := 1000; n < 1050; n++ {
		s.Offer(key(n), by(2), value(n))
	}
	s.drain()
	written := 0
	for n := 1000; n < 1050; n++ {
		if _, ok := s.index.get(key(n).Hash()); ok {
			written++
		}
	}
	if written < 40 {
		t.Errorf("%d of 50 values were admitted by the hashes that were kept", written)
	}
}

// TestOtherSize: a tier whose segments have another size begins empty, without the old files.
func TestOtherSize(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	s := newSmall(t, o, 8)
	for n := range 100 {
		s.put(n)
	}
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	o.Registerer = prometheus.NewRegistry()
	other, err := newStore(o)
	if err != nil {
		t.Fatal(err)
	}
	other.segmentBytes, other.slots = 32<<10, make([]slot, 4)
	other.start()
	if n := other.found(t, 100); n != 0 || !other.health.writable() {
		t.Errorf("%d values of a tier with other segments", n)
	}
	names, err := fs.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, ok := slotOf(name); ok {
			t.Errorf("%s is left", name)
		}
	}
}

func TestWriteBudget(t *testing.T) {
	c := newClock()
	o := testOptions(vfs.NewMem())
	o.Now = c.Now
	s := newSmall(t, o, 8)
	s.budget.daily = 24_000
	s.budget.left.Store(24_000)
	for n := range 200 {
		s.put(n)
	}
	written := func() int64 { return int64(testutil.ToFloat64(s.m.admitted)) }
	atOnce := written()
	if n := s.index.bytes.Load(); n > 24_000 || n < 22_000 {
		t.Errorf("%d bytes were written at once, of 24000 a day", n)
	}
	if n := testutil.ToFloat64(s.m.refusals[refusedBudget]); n != float64(200-atOnce) {
		t.Errorf("%.0f values were refused, expected %d", n, 200-atOnce)
	}
	for hour := range 10 {
		c.add(time.Hour)
		before := s.index.bytes.Load()
		for n := range 20 {
			s.put(1000 + hour*20 + n)
		}
		if n := s.index.bytes.Load() - before; n > 3000 {
			t.Errorf("%d bytes were written in an hour, of 1000", n)
		}
	}
	if n := written() - atOnce; n < 5 {
		t.Errorf("%d values were written in 10 hours", n)
	}
}

// TestBounds: values that wait, values to write and entries stay within their bounds.
func TestBounds(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.QueueBytes, o.IndexBytes = 64<<10, 50*knownBytes
	s := newSmall(t, o, 64)
	for n := range 2000 {
		s.Offer(key(n), by(1), value(n))
		s.Offer(key(n), by(2), value(n))
		if waits, queued := s.filter.Bytes(), s.queued.Load(); waits+queued > o.QueueBytes {
			t.Fatalf("%d and %d bytes wait, of at most %d", waits, queued, o.QueueBytes)
		}
		if n%5 == 0 {
			s.drain()
		}
		if n := s.index.entries.Load(); n > 51 {
			t.Fatalf("%d entries, of at most 50", n)
		}
	}
	if s.drain(); s.queued.Load() != 0 {
		t.Errorf("%d bytes are queued after all were written", s.queued.Load())
	}
	// What found no room in the queue is written when the next query reads it.
	again := newSmall(t, testOptions(vfs.NewMem()), 8)
	again.maxQueued = 1
	again.put(1)
	again.maxQueued = 1 << 20
	if again.Offer(key(1), by(2), value(1)); len(again.queue) != 0 || testutil.ToFloat64(again.m.refusals[refusedQueue]) != 1 {
		t.Error("a value is written that found no room, or for the same query")
	}
	if again.Offer(key(1), by(3), value(1)); len(again.queue) != 1 {
		t.Error("a value that found no room is not written for the next query")
	}
	s.Offer(key(1), by(1), make([]byte, s.largestValue()+1))
	s.Offer(cache.Key{Object: string(make([]byte, maxKeyBytes))}, by(1), value(1))
	if n := testutil.ToFloat64(s.m.refusals[refusedSize]); n != 2 {
		t.Errorf("%.0f values were refused for their size, expected 2", n)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	small, never := testOptions(vfs.NewMem()), testOptions(vfs.NewMem())
	small.MaxBytes, never.Limits.WritesPerDay = MinBytes-1, 0
	for _, o := range []Options{small, never} {
		if _, err := Open(o); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("got %v, expected an error of class invalid", err)
		}
	}
}

// TestConcurrency has queries and the goroutine that writes at work at once, on a small log that is
// overwritten many times.
func TestConcurrency(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Now = time.Now
	s := newSmall(t, o, 4)
	s.done.Go(s.run)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range 3000 {
				n, query := r.IntN(400), uint64(w*10_000+i)
				if got := s.Get(context.Background(), key(n), by(query)); got.From == cache.Nowhere {
					s.Offer(key(n), by(query), value(n))
				} else if !bytes.Equal(got.Value, value(n)) {
					t.Errorf("value %d is wrong", n)
				}
				s.Use(key(r.IntN(400)), by(query))
				s.Has(key(n))
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if hits := testutil.ToFloat64(s.m.hits); hits == 0 || testutil.ToFloat64(s.m.evicted) == 0 {
		t.Errorf("%.0f hits, %.0f evictions", hits, testutil.ToFloat64(s.m.evicted))
	}
	if n := testutil.ToFloat64(s.m.bad); n != 0 {
		t.Errorf("%.0f records count as damaged", n)
	}
}
