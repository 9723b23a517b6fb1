package ssd

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/cache"
)

// benchmarkOptions are of a tier in a folder of the machine.
func benchmarkOptions(b *testing.B, bytes int64) Options {
	o := testOptions(vfs.Default)
	o.Dir, o.MaxBytes, o.Now = b.TempDir(), bytes, time.Now
	o.IndexBytes, o.QueueBytes = 64<<20, 64<<20
	return o
}

// filled returns a tier with values of one size, and their keys.
func filled(b *testing.B, size, values int) (*Store, []cache.Key) {
	s, err := newStore(benchmarkOptions(b, 256<<20))
	if err != nil {
		b.Fatal(err)
	}
	s.start()
	v := make([]byte, size)
	for i := range v {
		v[i] = byte(rand.Uint32())
	}
	keys := make([]cache.Key, values)
	for i := range keys {
		keys[i] = key(i)
		s.write(write{offer: offer{keys[i], v}, hash: keys[i].Hash(), query: 1})
	}
	b.Cleanup(func() {
		if err := s.finish(); err != nil {
			b.Error(err)
		}
	})
	return s, keys
}

// BenchmarkHit measures hits whose bytes are in the page cache of the kernel.
func BenchmarkHit(b *testing.B) {
	for _, parallel := range []bool{false, true} {
		name := map[bool]string{false: "one", true: "parallel"}[parallel]
		b.Run(name, func(b *testing.B) {
			s, keys := filled(b, 32<<10, 1000)
			b.SetBytes(32 << 10)
			b.ReportAllocs()
			b.ResetTimer()
			if !parallel {
				for i := range b.N {
					if s.Get(context.Background(), keys[i%len(keys)], by(3)).From == cache.Nowhere {
						b.Fatal("miss")
					}
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					s.Get(context.Background(), keys[i%len(keys)], by(3))
				}
			})
		})
	}
}

// BenchmarkMiss measures what the tier costs a query whose page it does not have.
func BenchmarkMiss(b *testing.B) {
	s, _ := filled(b, 32<<10, 1000)
	missing := make([]cache.Key, 1024)
	for i := range missing {
		missing[i] = key(1_000_000 + i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		s.Get(context.Background(), missing[i&1023], by(3))
	}
}

// BenchmarkWrite measures values of 32 KiB from the queue to the disk, with reclaim, footers and syncs.
func BenchmarkWrite(b *testing.B) {
	s, _ := filled(b, 32<<10, 0)
	v := make([]byte, 32<<10)
	for i := range v {
		v[i] = byte(rand.Uint32())
	}
	s.budget.daily = 1 << 60
	s.budget.left.Store(1 << 60)
	b.SetBytes(int64(len(v)))
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		k := key(i)
		s.write(write{offer: offer{k, v}, hash: k.Hash(), query: 1})
	}
}

// TestHitAllocatesThePage: a hit allocates nothing but the record, and a miss nothing.
func TestHitAllocatesThePage(t *testing.T) {
	s := newSmall(t, testOptions(vfs.NewMem()), 8)
	s.put(1)
	hit, miss := key(1), key(2)
	for want, k := range map[float64]cache.Key{1: hit, 0: miss} {
		if n := testing.AllocsPerRun(100, func() { s.Get(context.Background(), k, by(2)) }); n != want {
			t.Errorf("%.0f allocations, expected %.0f", n, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { s.Use(hit, by(2)); s.Has(miss) }); n != 0 {
		t.Errorf("%.0f allocations of Use and Has", n)
	}
}
