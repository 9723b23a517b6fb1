package ssd

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/shaledb/shale/internal/cache/admit"
)

// TestIndexIsAMap compares the index with a map, under random changes.
func TestIndexIsAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x index
	want := map[uint64]entry{}
	hashes := make([]uint64, 5000)
	for i := range hashes {
		hashes[i] = r.Uint64()
	}
	for step := range 200_000 {
		h := hashes[r.IntN(len(hashes))]
		switch r.IntN(5) {
		case 0, 1:
			e := entry{tag: uint32(h), off: r.Uint32(), length: 1 + r.Uint32N(maxRecordBytes), slot: uint16(r.Uint32()), query: uint16(r.Uint32())}
			x.put(h, int(e.slot), e.off, e.length, e.query)
			want[h] = e
		case 2:
			e, ok := want[h]
			if _, removed := x.remove(h, int(e.slot), e.off); removed != ok {
				t.Fatalf("step %d: removed %t, expected %t", step, removed, ok)
			}
			delete(want, h)
		case 3:
			e, ok := want[h]
			if e.use(uint16(step)); ok {
				want[h] = e
			}
			if got, found := x.use(h, uint16(step)); found != ok || ok && got != e {
				t.Fatalf("step %d: used %+v, %t, expected %+v, %t", step, got, found, e, ok)
			}
		default:
			e, ok := want[h]
			if got, found := x.get(h); found != ok || got != e {
				t.Fatalf("step %d: got %+v, %t, expected %+v, %t", step, got, found, e, ok)
			}
		}
	}
	var bytes int64
	for _, e := range want {
		bytes += int64(e.bytes())
	}
	if x.entries.Load() != int64(len(want)) || x.bytes.Load() != bytes {
		t.Errorf("%d entries of %d bytes, expected %d of %d", x.entries.Load(), x.bytes.Load(), len(want), bytes)
	}
	x.clear()
	if x.entries.Load() != 0 || x.bytes.Load() != 0 || x.memory() != 0 {
		t.Errorf("after clear: %d entries, %d bytes, %d bytes of memory", x.entries.Load(), x.bytes.Load(), x.memory())
	}
}

// TestIndexMemory: an entry takes at most 24 bytes of the heap, whatever the number of entries.
func TestIndexMemory(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	r := rand.New(rand.NewPCG(3, 4))
	before := heap()
	var x index
	for n := range 2_000_000 {
		x.put(r.Uint64(), n%1000, uint32(n), 1000, 1)
		if n != 999_999 && n != 1_399_999 && n != 1_999_999 {
			continue
		}
		entries := x.entries.Load()
		per := float64(heap()-before) / float64(entries)
		t.Logf("%d entries: %.1f bytes each", entries, per)
		if per > 25 {
			t.Errorf("%d entries: %.1f bytes each, expected about 24", entries, per)
		}
	}
	runtime.KeepAlive(&x)
}

// TestIndexRemembersUses: what used returns restores the uses of another index with the same entries.
func TestIndexRemembersUses(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var a, b index
	hashes := make([]uint64, 1000)
	for i := range hashes {
		hashes[i] = r.Uint64()
		a.put(hashes[i], i%7, uint32(i), 10, 1)
		b.put(hashes[i], i%7, uint32(i), 10, 0)
		for q := range i % 5 {
			a.use(hashes[i], uint16(q+2))
		}
	}
	b.restore(a.used())
	for i, h := range hashes {
		got, _ := b.get(h)
		if want := min(i%5, admit.MostUses); got.uses() != want || got.bytes() != 10 {
			t.Fatalf("entry %d has %d uses and %d bytes, expected %d and 10", i, got.uses(), got.bytes(), want)
		}
	}
	if n := a.removeSlot(3); n != 143 || a.entries.Load() != 857 {
		t.Errorf("removed %d entries of a slot, %d are left", n, a.entries.Load())
	}
}

func BenchmarkIndexUse(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	var x index
	hashes := make([]uint64, 1<<20)
	for i := range hashes {
		hashes[i] = r.Uint64()
		x.put(hashes[i], 1, 1, 1000, 1)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		x.use(hashes[i&(len(hashes)-1)], uint16(i))
	}
}
