package ssd

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"
)

// TestModel runs random steps against a tier: values that are offered and looked up, restarts, power cuts in
// the middle of a step, and flipped bits. What it returns is always the value of the key, and it goes on.
func TestModel(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	hits, cuts := 0, 0
	for seed := range seeds {
		m := &modelRun{t: t, r: rand.New(rand.NewPCG(uint64(seed), 3)), fs: vfs.NewCrashableMem()}
		m.open()
		for range 1500 {
			m.step()
		}
		m.s.drain()
		for n := range 20 {
			m.s.put(5000 + n)
		}
		if n := m.s.index.entries.Load(); n < 20 || !m.s.check(t, 5019) {
			t.Errorf("seed %d: the tier does not go on: %d entries", seed, n)
		}
		m.hits += m.s.found(t, 400)
		hits, cuts = hits+m.hits, cuts+m.cuts
		if err := m.s.finish(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if hits < 40*seeds || cuts < seeds {
		t.Errorf("%d hits and %d power cuts", hits, cuts)
	}
}

type modelRun struct {
	t          *testing.T
	r          *rand.Rand
	fs         *vfs.MemFS
	s          *Store
	hits, cuts int
	// cutIn is the number of changes of files until the power is cut; 0: it is not.
	cutIn int
	cut   *vfs.MemFS
}

func (m *modelRun) open() {
	m.cutIn, m.cut = 0, nil
	fs := m.fs
	o := testOptions(errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileWriteAt, errorfs.OpFileWrite, errorfs.OpFileSyncData, errorfs.OpFileSync, errorfs.OpCreate, errorfs.OpRename, errorfs.OpRemove:
		default:
			return nil
		}
		if m.cutIn > 0 {
			if m.cutIn--; m.cutIn == 0 {
				m.cut = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: m.r.IntN(101), RNG: m.r})
			}
		}
		return nil
	})))
	o.Registerer = prometheus.NewRegistry()
	m.s = newSmall(m.t, o, 8)
	if !m.s.health.writable() {
		m.t.Fatal("the tier is out")
	}
}

func (m *modelRun) step() {
	n, query := m.r.IntN(400), uint64(m.r.IntN(5))
	switch p := m.r.IntN(1000); {
	case p < 400:
		m.s.Offer(key(n), by(query), value(n))
	case p < 600:
		if m.s.check(m.t, n) {
			m.hits++
		}
	case p < 700:
		m.s.Use(key(n), by(query))
	case p < 970:
		m.s.drain()
	case p < 975:
		m.s.save(m.s.o.Now())
	case p < 980:
		m.flip()
	case p < 985:
		if err := m.s.finish(); err != nil {
			m.t.Fatal(err)
		}
		m.open()
	default:
		m.cutIn = 1 + m.r.IntN(20)
	}
	if m.cut != nil {
		m.cuts++
		m.fs = m.cut
		m.open()
	}
}

// flip changes one bit of a file.
func (m *modelRun) flip() {
	names, err := m.fs.List(testDir)
	if err != nil || len(names) == 0 {
		m.t.Fatal(names, err)
	}
	path := testDir + "/" + names[m.r.IntN(len(names))]
	info, err := m.fs.Stat(path)
	if err != nil {
		m.t.Fatal(err)
	}
	if info.Size() == 0 {
		return
	}
	f, err := m.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		m.t.Fatal(err)
	}
	b, off := make([]byte, 1), m.r.Int64N(info.Size())
	if _, err := f.ReadAt(b, off); err != nil {
		m.t.Fatal(err)
	}
	b[0] ^= 1 << m.r.IntN(8)
	if _, err := f.WriteAt(b, off); err != nil {
		m.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		m.t.Fatal(err)
	}
}

// FuzzRecord: what is accepted as a record is written as it was read, and belongs to one generation.
func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, 3, 9, appendKey(nil, key(1)), value(1)), uint64(3))
	f.Add(appendRecord(nil, 3, 9, nil, nil), uint64(3))
	f.Add([]byte("short"), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, generation uint64) {
		hash, key, value, err := parseRecord(b, generation)
		if err != nil {
			return
		}
		if got := appendRecord(nil, generation, hash, key, value); string(got) != string(b) && b[10] == 0 && b[11] == 0 {
			t.Errorf("%x is read as a record that is written as %x", b, got)
		}
		if _, _, _, err := parseRecord(b, generation+1); err == nil {
			t.Error("a record of another generation is accepted")
		}
	})
}

// FuzzFooter: a footer that is accepted names only records within the segment.
func FuzzFooter(f *testing.F) {
	f.Add(appendFooter(nil, 7, []located{{1, headerBytes, 100}, {2, 128, 200}}), uint64(7))
	f.Add(appendFooter(nil, 1, nil), uint64(1))
	f.Add([]byte{}, uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, generation uint64) {
		const segment = 1 << 16
		entries, err := parseFooter(b, segment, generation)
		if err != nil {
			return
		}
		for _, e := range entries {
			if uint64(e.off)+uint64(e.n) > segment {
				t.Errorf("a record of %d bytes at %d of a segment of %d", e.n, e.off, segment)
			}
		}
		if got := appendFooter(nil, generation, entries); string(got) != string(b) {
			t.Errorf("%x is read as a footer that is written as %x", b, got)
		}
	})
}

// FuzzSnapshot: a snapshot that is accepted is written as it was read.
func FuzzSnapshot(f *testing.F) {
	sn := snapshot{at: newClock().Now(), left: -5, used: []uint64{1, 2}, ghosts: []uint64{3}}
	f.Add(sn.append(nil))
	f.Add((&snapshot{at: newClock().Now()}).append(nil))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		sn, err := parseSnapshot(b)
		if err != nil {
			return
		}
		if got := sn.append(nil); string(got) != string(b) {
			t.Errorf("%x is read as a snapshot that is written as %x", b, got)
		}
	})
}

// FuzzOpen: whatever is in a segment file, the tier opens, and returns no wrong value.
func FuzzOpen(f *testing.F) {
	fs := vfs.NewMem()
	s := newSmall(f, testOptions(fs), 8)
	for n := range 40 {
		s.put(n)
	}
	if err := s.finish(); err != nil {
		f.Fatal(err)
	}
	for _, slot := range []int{0, 1} {
		b := make([]byte, 16<<10)
		file, err := fs.Open(testDir + "/" + segmentName(slot))
		if err != nil {
			f.Fatal(err)
		}
		n, _ := file.ReadAt(b, 0) // the open segment is shorter
		if err := file.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(b[:n])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		fs := vfs.NewMem()
		if err := fs.MkdirAll(testDir, 0o755); err != nil {
			t.Fatal(err)
		}
		file, err := fs.Create(testDir+"/"+segmentName(0), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(append([]byte(nil), b...)); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		s := newSmall(t, testOptions(fs), 4)
		s.found(t, 40)
		s.put(41)
		if !s.check(t, 41) {
			t.Error("a value that was just written is not found")
		}
		if err := s.finish(); err != nil {
			t.Error(err)
		}
	})
}
