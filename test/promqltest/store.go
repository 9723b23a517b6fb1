package promqltest

import (
	"context"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/test/objectstores"
	"github.com/shaledb/shale/test/tiertest"
)

// Store is the real engine on a file system in memory, without retention, limit on the age of samples, or
// background work.
type Store struct {
	*app.Engine
	mem   *vfs.MemFS
	place objectstores.Place
	set   *tiertest.Set
	now   atomic.Int64
}

// keySeed is in the bucket from the start, as docs/format-bucket.md describes it. It decides the order of
// series, so that a failure can be repeated.
func keySeed() []byte {
	body := `{"version":1,"seed":"0000000000005eed"}` + "\n"
	sum := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
	return fmt.Appendf(nil, "crc32c %08x\n%s", sum, body)
}

// OpenStore makes an empty store, whose bucket is a folder.
func OpenStore(t testing.TB) *Store {
	t.Helper()
	return OpenStoreAt(t, new(objectstores.Places).New(), new(tiertest.Tiers).New())
}

// OpenStoreAt makes an empty store with an empty bucket and empty caches.
func OpenStoreAt(t testing.TB, place objectstores.Place, caches *tiertest.Set) *Store {
	t.Helper()
	s := &Store{mem: vfs.NewMem(), place: place, set: caches}
	// Samples of the test files begin in 1970, and some are in the future.
	s.now.Store(1 << 62)
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) open() error {
	b, err := s.place.Open(s.mem)
	if err != nil {
		return err
	}
	if _, err := b.PutIfAbsent(context.Background(), "seed", keySeed()); err != nil {
		return err
	}
	s.Engine, err = app.OpenEngine(context.Background(), app.EngineOptions{
		FS: s.mem, DataDir: "/data", Bucket: b, Node: "test", MemoryBytes: s.set.Memory(32 << 20), Idle: true,
		Now: s.now.Load, SSD: s.set.SSD(s.mem), Memcached: s.set.Memcached(), Registerer: s.set.Start(),
	})
	return err
}

// Merge ships everything, advances the clock by two days, and merges what is due then.
func (s *Store) Merge() error {
	if err := s.Ship(); err != nil {
		return err
	}
	s.now.Add(int64(48 * time.Hour))
	return s.Compact(context.Background())
}

// Restart closes the engine and reopens it on the same files.
func (s *Store) Restart() error {
	if err := s.Close(); err != nil {
		return err
	}
	return s.open()
}
