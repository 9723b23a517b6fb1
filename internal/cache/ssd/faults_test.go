package ssd

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// faulty is a tier whose disk fails as a test wants.
type faulty struct {
	*Store
	clock  *clock
	mem    *vfs.MemFS
	reads  atomic.Pointer[func() error]
	writes atomic.Pointer[func() error]
}

func newFaulty(t *testing.T) *faulty {
	f := &faulty{clock: newClock(), mem: vfs.NewMem()}
	o := testOptions(errorfs.Wrap(f.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		fault := f.writes.Load()
		switch op.Kind {
		case errorfs.OpFileReadAt:
			fault = f.reads.Load()
		case errorfs.OpFileWriteAt, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpCreate, errorfs.OpRename, errorfs.OpRemove, errorfs.OpOpen, errorfs.OpFilePreallocate:
		default:
			return nil
		}
		if fault == nil {
			return nil
		}
		return (*fault)()
	})))
	o.Now = f.clock.Now
	f.Store = newSmall(t, o, 8)
	for n := range 80 {
		f.put(n)
	}
	if n := f.found(t, 80); n != 80 {
		t.Fatalf("%d of 80 values", n)
	}
	return f
}

func failWith(err error) *func() error {
	f := func() error { return err }
	return &f
}

func (f *faulty) causes() string {
	var list []string
	for _, c := range causes() {
		if f.health.has(c) {
			list = append(list, c.String())
		}
	}
	return strings.Join(list, ",")
}

func (f *faulty) pass(d time.Duration) {
	for ; d > 0; d -= tickEvery {
		f.tick(f.clock.add(tickEvery))
	}
}

func (f *faulty) expect(t *testing.T, causes string, reads bool) {
	t.Helper()
	if got := f.found(t, 80) > 0; got != reads {
		t.Errorf("reads: %t, expected %t", got, reads)
	}
	if got := f.causes(); got != causes {
		t.Errorf("out because of %q, expected %q", got, causes)
	}
}

// TestFailedWrites: a disk that cannot be written takes the tier out for writes only, until it can.
func TestFailedWrites(t *testing.T) {
	for cause, err := range map[string]error{"full": syscall.ENOSPC, "unwritable": syscall.EROFS} {
		t.Run(cause, func(t *testing.T) {
			f := newFaulty(t)
			f.writes.Store(failWith(err))
			f.put(100)
			f.expect(t, cause, true)
			f.pass(time.Minute)
			f.expect(t, cause, true)
			f.put(101)
			if n := testutil.ToFloat64(f.m.refusals[refusedOut]); n < 1 {
				t.Error("values are not refused")
			}
			f.writes.Store(nil)
			f.pass(tickEvery)
			f.expect(t, "", true)
			f.put(102)
			if !f.check(t, 102) || f.found(t, 80) != 80 {
				t.Error("the tier has not recovered")
			}
		})
	}
}

// TestFailedReads: reads that fail are misses; several in a row take the tier out until reads succeed.
func TestFailedReads(t *testing.T) {
	f := newFaulty(t)
	f.reads.Store(failWith(syscall.EIO))
	if f.check(t, 0) {
		t.Error("a failed read is a hit")
	}
	f.expect(t, "failing", false)
	f.pass(5 * time.Minute)
	f.expect(t, "failing", false)
	f.reads.Store(nil)
	f.pass(goodReads * tickEvery)
	f.expect(t, "", true)
	if n, lost := f.found(t, 80), testutil.ToFloat64(f.m.bad); n+int(lost) != 80 || lost > failedReads {
		t.Errorf("%d values are left, %.0f were lost", n, lost)
	}
}

// TestSlowDisk: when half of the reads of 30 minutes are slow, the tier is out until they are fast.
func TestSlowDisk(t *testing.T) {
	f := newFaulty(t)
	for range 60 {
		for range 10 {
			f.health.observe(20*time.Millisecond, nil)
		}
		f.pass(time.Minute)
	}
	f.expect(t, "", true)
	minutes := 0
	for ; minutes < 2*slowWindow && f.causes() == ""; minutes++ {
		for range 10 {
			f.health.observe(60*time.Millisecond, nil)
		}
		f.pass(time.Minute)
	}
	if minutes < slowWindow/2-1 || minutes > slowWindow*3/4 {
		t.Errorf("the disk counts as slow after %d minutes", minutes)
	}
	f.expect(t, "slow", false)
	slowly := func() error { time.Sleep(slowRead + 5*time.Millisecond); return nil }
	f.reads.Store(&slowly)
	f.pass((probeReads + 1) * tickEvery)
	f.expect(t, "slow", false)
	f.reads.Store(nil)
	f.pass(2 * probeReads * tickEvery)
	f.expect(t, "", true)
}

// TestRemoved: a folder that is removed takes the content with it, and is created again.
func TestRemoved(t *testing.T) {
	f := newFaulty(t)
	if err := f.mem.RemoveAll(testDir); err != nil {
		t.Fatal(err)
	}
	f.writes.Store(failWith(syscall.EIO))
	f.pass(tickEvery)
	f.put(100)
	f.writes.Store(nil)
	f.pass(tickEvery)
	f.put(101)
	if f.causes() != "" || !f.check(t, 101) || f.found(t, 80) != 0 {
		t.Errorf("out because of %q", f.causes())
	}
}

// TestUnusableFolder: a folder that cannot be opened does not keep the server from starting.
func TestUnusableFolder(t *testing.T) {
	f := &faulty{clock: newClock(), mem: vfs.NewMem()}
	if err := f.mem.MkdirAll(testDir, 0o755); err != nil {
		t.Fatal(err)
	}
	held, err := f.mem.Lock(testDir + "/" + lockName)
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions(f.mem)
	o.Now = f.clock.Now
	f.Store = newSmall(t, o, 8)
	f.put(1)
	f.pass(time.Minute)
	if got := f.causes(); got != "missing" || f.check(t, 1) {
		t.Errorf("out because of %q", got)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	f.pass(tickEvery)
	f.put(1)
	f.expect(t, "", true)
}

// TestReserve: the tier gives its files back while the file system has less room than its reserve.
func TestReserve(t *testing.T) {
	f := newFaulty(t)
	usage := func(avail uint64) { f.mem.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 1 << 30, AvailBytes: avail}) }
	usage(500 << 20)
	f.pass(tickEvery)
	f.expect(t, "", true)
	usage(20 << 20)
	f.pass(tickEvery)
	names, err := f.mem.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	segments := 0
	for _, name := range names {
		if _, ok := slotOf(name); ok {
			segments++
		}
	}
	if segments != 1 {
		t.Errorf("%d segments are left, expected the one that is open", segments)
	}
	if got := f.causes(); got != "full" {
		t.Errorf("out because of %q", got)
	}
	f.put(100)
	usage(500 << 20)
	f.pass(tickEvery)
	for n := 200; n < 300; n++ {
		f.put(n)
	}
	f.expect(t, "", true)
	if !f.check(t, 299) || f.check(t, 100) {
		t.Error("the tier has not recovered")
	}
}

// TestGrowthStops: without room for a further file, the log goes on in the files that it has.
func TestGrowthStops(t *testing.T) {
	f := newFaulty(t)
	f.mem.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 1 << 30, AvailBytes: 1<<30/100*reservePercent + 1})
	for n := 200; n < 600; n++ {
		f.put(n)
	}
	files := 0
	for i := range f.slots {
		if f.slots[i].file.Load() != nil {
			files++
		}
	}
	if files == 8 || !f.check(t, 599) || f.causes() != "" {
		t.Errorf("%d files, out because of %q", files, f.causes())
	}
}
