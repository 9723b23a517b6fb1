package ssd

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

var largeBytes = flag.Int64("large", 0, "bytes of the tier of TestLargeRestart; 0: the test is skipped")

// TestLargeRestart measures how long a large tier takes until it answers from its content, after its process
// was killed, with its files in the page cache of the kernel and without. docs/cache.md has the figures.
func TestLargeRestart(t *testing.T) {
	if *largeBytes == 0 {
		t.Skip("-large is not set")
	}
	const size = 16 << 10
	o := testOptions(vfs.Default)
	o.Dir, o.MaxBytes, o.Now = t.TempDir(), *largeBytes, time.Now
	o.IndexBytes, o.QueueBytes = 1<<30, 64<<20
	s, err := newStore(o)
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	// The log is written a bit more than once around, so that it has been reclaimed.
	records := int(*largeBytes/size) * 11 / 10
	numbered := func(n int) []byte {
		v := bytes.Repeat([]byte{byte(n)}, size)
		binary.LittleEndian.PutUint64(v, uint64(n))
		return v
	}
	for n := range records {
		s.write(write{offer: offer{key(n), numbered(n)}, hash: key(n).Hash(), query: 1})
	}
	before, order := s.index.entries.Load(), s.order()
	for _, cold := range []bool{false, true} {
		// What a killed process has written is in the page cache. Its lock goes with it.
		if err := s.lock.Close(); err != nil {
			t.Fatal(err)
		}
		for i := range s.slots {
			if f := s.slots[i].file.Load(); cold && f != nil {
				if err := f.Sync(); err != nil {
					t.Fatal(err)
				}
				if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
					t.Fatal(err)
				}
			}
			s.slots[i].forget()
		}
		o.Registerer = prometheus.NewRegistry()
		began := time.Now()
		if s, err = newStore(o); err != nil {
			t.Fatal(err)
		}
		s.start()
		took := time.Since(began)
		after := s.index.entries.Load()
		t.Logf("cold %t: %d of %d records of %.1f GB after %.2f s, %.1f bytes of memory each",
			cold, after, before, float64(s.index.bytes.Load())/1e9, took.Seconds(), float64(s.index.memory())/float64(after))
		if after < before*99/100 || !slices.Equal(s.order(), order) {
			t.Errorf("%d of %d records are left, in the order %v of %v", after, before, s.order(), order)
		}
		wrong := 0
		began = time.Now()
		const sample = 5000
		for i := range sample {
			n := records - 1 - i*(records/2)/sample
			if v := s.Get(context.Background(), key(n), by(2)).Value; !bytes.Equal(v, numbered(n)) {
				wrong++
			}
		}
		t.Logf("cold %t: %.0f µs for a hit", cold, float64(time.Since(began).Microseconds())/sample)
		if wrong > 0 {
			t.Errorf("%d of %d of the newest records are not found", wrong, sample)
		}
	}
	if err := s.finish(); err != nil {
		t.Error(err)
	}
}
