package evict

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/model"
)

func TestMain(m *testing.M) {
	// The library of the tier in memory keeps a timer goroutine for the life of a cache.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/maypok86/otter/v2.(*cache[...]).periodicCleanUp"))
}

// TestBounded: after any request, the values in a cache fit its capacity, and it has what it says that it
// has.
func TestBounded(t *testing.T) {
	const keys, capacity = 400, 20_000
	rng := rand.New(rand.NewPCG(1, 2))
	sizes := make([]uint32, keys)
	for i := range sizes {
		sizes[i] = uint32(rng.IntN(600))
	}
	sizes[7] = capacity + 1
	var order []uint32
	for range 5000 {
		order = append(order, uint32(min(rng.IntN(keys), rng.IntN(keys))))
	}
	next, last := make([]uint32, len(order)), slices.Repeat([]uint32{Never}, keys)
	for i := len(order) - 1; i >= 0; i-- {
		next[i], last[order[i]] = last[order[i]], uint32(i)
	}
	for _, policy := range Names() {
		t.Run(policy, func(t *testing.T) {
			c, err := New(policy, Input{Sizes: sizes, Capacity: capacity, Queue: 0.05, Next: next})
			if err != nil {
				t.Fatal(err)
			}
			for i, key := range order {
				if o, ok := c.(Oracle); ok {
					o.Follow(i, key)
				}
				had := c.Has(key)
				if got := c.Get(key, uint32(i/2)); got != had {
					t.Fatalf("request %d: has %t, get %t", i, had, got)
				}
				if !had {
					c.Put(key, uint32(i/2), i%7 == 0)
				}
				if i%50 == 0 {
					if bytes := content(c, sizes); bytes > capacity {
						t.Fatalf("request %d: %d bytes of %d", i, bytes, capacity)
					}
				}
			}
			l := c.Counted()
			if bytes := content(c, sizes); bytes < capacity/3 || c.Has(7) {
				t.Errorf("%d bytes of %d are used at the end; the value that is too large is kept: %t", bytes, capacity, c.Has(7))
			}
			if l.Evicted == 0 || l.Unread > l.Evicted || l.Written <= 0 {
				t.Errorf("ledger: %+v", fmt.Sprint(l.Evicted, l.Unread, l.Written))
			}
		})
	}
}

func content(c Cache, sizes []uint32) (bytes int64) {
	for key, size := range sizes {
		if c.Has(uint32(key)) {
			bytes += int64(size)
		}
	}
	return bytes
}

// TestScan: what one query reads does not replace what others share.
func TestScan(t *testing.T) {
	const keys, capacity = 10_000, 100_000
	sizes := slices.Repeat([]uint32{100}, keys)
	c := newFlash(Input{Sizes: sizes, Capacity: capacity, Queue: 0.02})
	query := uint32(0)
	read := func(key uint32) bool {
		hit := c.Get(key, query)
		if !hit {
			c.Put(key, query, false)
		}
		return hit
	}
	for range 3 {
		for key := range uint32(500) {
			query++
			read(key)
			query++
			read(key)
		}
	}
	query++
	for range 3 { // three touches of each page by one query
		for key := uint32(1000); key < keys; key++ {
			read(key)
		}
	}
	query++
	kept := 0
	for key := range uint32(500) {
		if read(key) {
			kept++
		}
	}
	if kept < 490 {
		t.Errorf("a scan of %d values left %d of 500 shared ones", keys-1000, kept)
	}
}

func TestUnknownPolicy(t *testing.T) {
	if _, err := New("mru", Input{}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// TestResizeKeepsHashes: Shale's tier on disk knows what has left its queue after a change of its size.
func TestResizeKeepsHashes(t *testing.T) {
	const keys = 200
	sizes := make([]uint32, keys)
	for i := range sizes {
		sizes[i] = 1000
	}
	in := Input{Sizes: sizes, Capacity: 1 << 20, Queue: 0.01, Ghosts: 8 * keys}
	c := newFlash(in)
	for key := range uint32(keys) {
		c.Put(key, 1, false)
	}
	in.Capacity /= 2
	in.Keep = func(h uint64) bool { return h>>16&1 == 0 }
	c.Resize(in)
	for key := range uint32(keys) {
		if c.Put(key, 2, false); c.onDisk[key] != in.Keep(hash(key)) {
			t.Errorf("key %d: on disk: %t", key, c.onDisk[key])
		}
	}
}
