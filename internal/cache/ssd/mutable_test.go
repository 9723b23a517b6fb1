package ssd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache"
)

func itemKey(n int) cache.Key { return cache.Key{Kind: cache.Item, Object: fmt.Sprint("key", n)} }

// mutableRun is a tier whose owner knows what it has promised.
type mutableRun struct {
	t      *testing.T
	r      *rand.Rand
	fs     *vfs.MemFS
	s      *Store
	boot   string
	fail   atomic.Bool
	clock  *clock
	values map[int]string // that the owner would serve
	next   int
	hits   int
}

func (m *mutableRun) open() {
	o := testOptions(errorfs.Wrap(m.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if m.fail.Load() && (op.Kind == errorfs.OpFileWriteAt || op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate) {
			return syscall.ENOSPC
		}
		return nil
	})))
	o.Mutable, o.Boot, o.Now, o.Registerer = true, m.boot, m.clock.Now, prometheus.NewRegistry()
	m.s = newSmall(m.t, o, 8)
}

// kill ends the process: what it has written stays, what it has in memory does not.
func (m *mutableRun) kill() {
	for i := range m.s.slots {
		m.s.slots[i].forget()
	}
	if f := m.s.removed.file; f != nil {
		_ = f.Close()
	}
	if m.s.lock != nil {
		_ = m.s.lock.Close()
	}
	m.open()
}

// set gives a key another value, or none, as a server does, and reports whether it was told so.
func (m *mutableRun) set(n int, value string) bool {
	mark := m.s.Forget(itemKey(n).Hash())
	if m.r.IntN(4) == 0 {
		mark = m.s.Forget(itemKey(n).Hash()) // by another client, after one that was not told yet
	}
	if len(m.s.removed.pending) > 0 && m.r.IntN(20) == 0 {
		m.kill() // before anyone was told: the old value may be served on
		return false
	}
	if err := m.s.Record(mark); err != nil {
		m.t.Fatal(err)
	}
	if m.values[n] = value; value == "" {
		delete(m.values, n)
	}
	return true
}

func (m *mutableRun) step() {
	n := m.r.IntN(100)
	k := itemKey(n)
	switch p := m.r.IntN(1000); {
	case p < 300:
		m.next++
		value := fmt.Sprintf("%d of %s ", m.next, k.Object)
		for len(value) < 100+m.r.IntN(4000) {
			value += value
		}
		if m.set(n, value) && m.r.IntN(2) == 0 {
			m.s.Put(k, uint16(m.r.IntN(5)), []byte(value))
		}
	case p < 330:
		m.set(n, "")
	case p < 700:
		m.get(n)
	case p < 950:
		m.s.drain()
	case p < 960:
		if err := m.s.trimRemoved(); err != nil {
			m.t.Fatal(err)
		}
	case p < 961:
		if err := m.s.Clear(); err != nil {
			m.t.Fatal(err)
		}
		m.values = map[int]string{}
	case p < 970:
		m.s.save(m.s.o.Now())
	case p < 990:
		m.kill()
	case p < 995:
		if err := m.s.finish(); err != nil {
			m.t.Fatal(err)
		}
		m.boot += "x"
		m.open()
	default:
		if m.r.IntN(4) > 0 {
			m.s.removed.limit = 1
			return
		}
		m.fail.Store(true)
		told := m.set(n, "")
		m.fail.Store(false)
		if told && m.s.Has(itemKey(n)) {
			m.t.Fatal("a full disk keeps what was removed")
		}
		m.s.tick(m.clock.add(10 * time.Second)) // the folder was given up
		m.s.tick(m.clock.add(10 * time.Second)) // and has room again
	}
}

// get looks a key up. What the tier has is what the owner has promised.
func (m *mutableRun) get(n int) {
	found := m.s.Get(context.Background(), itemKey(n), by(uint64(m.r.IntN(5))))
	if found.From == cache.Nowhere {
		return
	}
	m.hits++
	if want, there := m.values[n]; !there || string(found.Value) != want {
		m.t.Fatalf("key %d is %.40q, expected %.40q", n, found.Value, want)
	}
}

// TestMutable runs random steps against a mutable tier: values that change, deletions, everything removed,
// processes that are killed and that end well, a full disk, files of removals that are written again. What it
// returns is never what was replaced or removed.
func TestMutable(t *testing.T) {
	seeds := 30
	if testing.Short() {
		seeds = 10
	}
	hits := 0
	for seed := range seeds {
		m := &mutableRun{
			t: t, r: rand.New(rand.NewPCG(uint64(seed), 5)), fs: vfs.NewMem(), boot: "b", clock: newClock(), values: map[int]string{},
		}
		m.open()
		for range 3000 {
			m.step()
		}
		for n := range 100 {
			m.get(n)
		}
		hits += m.hits
		if err := m.s.finish(); err != nil {
			t.Fatal(err)
		}
	}
	if hits < 100*seeds {
		t.Errorf("%d hits", hits)
	}
}

// TestMachine: what was not closed before the machine started again is not kept, since removals of its last
// moments may be lost. What was closed is.
func TestMachine(t *testing.T) {
	m := &mutableRun{t: t, r: rand.New(rand.NewPCG(1, 5)), fs: vfs.NewMem(), boot: "first", clock: newClock(), values: map[int]string{}}
	m.open()
	write := func() {
		m.s.Put(itemKey(1), 1, []byte("value"))
		m.s.drain()
	}
	has := func() bool { return m.s.Has(itemKey(1)) }
	write()
	if m.kill(); !has() {
		t.Error("a killed process loses what it has written")
	}
	m.boot = "second"
	if m.kill(); has() {
		t.Error("after a crash of the machine, the tier is not empty")
	}
	write()
	if err := m.s.finish(); err != nil {
		t.Fatal(err)
	}
	m.boot = "third"
	if m.open(); !has() {
		t.Error("a tier that was closed is empty")
	}
	m.boot = ""
	if m.kill(); has() {
		t.Error("without a name of the start, a killed process is taken for a crash of the machine")
	}
}

// TestClearAt: what was to be removed while no process was there is removed.
func TestClearAt(t *testing.T) {
	m := &mutableRun{t: t, r: rand.New(rand.NewPCG(1, 5)), fs: vfs.NewMem(), boot: "b", clock: newClock(), values: map[int]string{}}
	m.open()
	put := func(n int) {
		m.s.Put(itemKey(n), 1, []byte("value"))
		m.s.drain()
	}
	put(1)
	at := uint32(m.clock.Now().Unix()) + 100
	if err := m.s.ClearAt(at); err != nil {
		t.Fatal(err)
	}
	if m.kill(); m.s.ClearsAt() != at || !m.s.Has(itemKey(1)) {
		t.Errorf("before its time: %d, %v", m.s.ClearsAt(), m.s.Has(itemKey(1)))
	}
	m.clock.add(200 * time.Second)
	if m.kill(); m.s.ClearsAt() != 0 || m.s.Has(itemKey(1)) {
		t.Errorf("after its time: %d, %v", m.s.ClearsAt(), m.s.Has(itemKey(1)))
	}
	put(2)
	if m.kill(); !m.s.Has(itemKey(2)) || m.s.Has(itemKey(1)) {
		t.Error("what was written after it is gone")
	}
}

// TestMissing: while its folder is away, a tier does not learn what is removed. It begins empty.
func TestMissing(t *testing.T) {
	m := &mutableRun{t: t, r: rand.New(rand.NewPCG(1, 5)), fs: vfs.NewMem(), boot: "b", clock: newClock(), values: map[int]string{}}
	m.open()
	m.s.Put(itemKey(1), 1, []byte("value"))
	m.s.drain()
	if err := m.fs.Remove(m.fs.PathJoin(testDir, lockName)); err != nil {
		t.Fatal(err)
	}
	m.s.tick(m.clock.Now())
	if !m.s.health.writable() || m.s.Has(itemKey(1)) {
		t.Errorf("writable %v, has %v", m.s.health.writable(), m.s.Has(itemKey(1)))
	}
}

// TestEach: all items are handed out, whole.
func TestEach(t *testing.T) {
	m := &mutableRun{t: t, r: rand.New(rand.NewPCG(1, 5)), fs: vfs.NewMem(), boot: "b", clock: newClock(), values: map[int]string{}}
	m.open()
	for n := range 100 {
		m.s.Put(itemKey(n), 1, fmt.Appendf(nil, "value %d", n))
		m.s.drain()
	}
	m.set(7, "")
	seen := map[string]string{}
	if err := m.s.Each(func(key string, value []byte) (bool, error) {
		seen[key] = string(value)
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 99 || seen["key8"] != "value 8" || seen["key7"] != "" {
		t.Errorf("%d items, %q, %q", len(seen), seen["key8"], seen["key7"])
	}
}

// FuzzRemoved: a file of removals may have any content.
func FuzzRemoved(f *testing.F) {
	f.Add((&Removal{1, 2, 3}).append(nil))
	f.Add((&Removal{1, 2, removedAll}).append((&Removal{7, 0, removedLater}).append(nil)))
	f.Add([]byte("too short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseRemoved(b)
		if err == nil && len(list) != len(b)/removedBytes {
			t.Errorf("%d removals in %d bytes", len(list), len(b))
		}
	})
}
