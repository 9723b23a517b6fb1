package cachetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/cache"
)

// RunSecondary tests a tier after memory. open returns an empty one that has room for a megabyte.
func RunSecondary(t *testing.T, open func(t *testing.T) cache.Secondary) {
	for name, test := range map[string]func(*testing.T, cache.Secondary){
		"what two queries want": wantedTwice,
		"many at once":          manyAtOnce,
		"a query that ends":     endedQuery,
		"many queries":          manyQueries,
		"a new block":           freshBlock,
	} {
		t.Run(name, func(t *testing.T) {
			tier := open(t)
			test(t, tier)
			if err := tier.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func stored(n int) cache.Key {
	return cache.Key{Object: fmt.Sprintf("data/%d.part", n%3), Kind: cache.Stored, Off: int64(n), Digest: cache.DigestOf([]byte("object"))}
}

func storedValue(n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "value %d,", n), 1+n%50) }

// offer has two queries offer values, and waits until the tier has them: it may take its time to store them.
func offer(t *testing.T, tier cache.Secondary, values int) {
	t.Helper()
	for n := range values {
		for query := range uint64(2) {
			tier.Offer(stored(n), cache.Asker{Query: query + 1}, storedValue(n))
		}
	}
	for n := range values {
		for end := time.Now().Add(20 * time.Second); tier.Get(context.Background(), stored(n), cache.Asker{Query: 3}).From == cache.Nowhere; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("value %d is not there 20 s after two queries have offered it", n)
			}
		}
	}
}

func wantedTwice(t *testing.T, tier cache.Secondary) {
	if f := tier.Get(context.Background(), stored(0), cache.Asker{Query: 1}); f.From != cache.Nowhere || f.Value != nil || tier.Has(stored(0)) {
		t.Errorf("an empty tier has %q", f.Value)
	}
	offer(t, tier, 100)
	for n := range 100 {
		tier.Use(stored(n), cache.Asker{Query: 4})
		if f := tier.Get(context.Background(), stored(n), cache.Asker{Query: 5}); f.From == cache.Nowhere || !bytes.Equal(f.Value, storedValue(n)) {
			t.Errorf("value %d: %q", n, f.Value)
		}
	}
	for _, k := range []cache.Key{{Object: "data/0.part", Kind: cache.Stored}, {Object: "data/0.part", Kind: cache.End, Digest: stored(0).Digest}, {Object: "data/00.part", Kind: cache.Stored, Digest: stored(0).Digest}} {
		if f := tier.Get(context.Background(), k, cache.Asker{Query: 5}); f.From != cache.Nowhere {
			t.Errorf("%v has the value of another key: %q", k, f.Value)
		}
	}
}

func manyAtOnce(t *testing.T, tier cache.Secondary) {
	offer(t, tier, 20)
	var keys []cache.Key
	var numbers []int
	for n := range 60 {
		numbers = append(numbers, n*7%60)
		keys = append(keys, stored(n*7%60))
	}
	found := make([]cache.Found, len(keys))
	tier.GetMany(context.Background(), keys, cache.Asker{Query: 6}, found)
	for i, f := range found {
		if n := numbers[i]; n < 20 && !bytes.Equal(f.Value, storedValue(n)) || n >= 20 && f.From != cache.Nowhere || (f.From == cache.Nowhere) != (f.Value == nil) {
			t.Errorf("value %d: %q from %d", n, f.Value, f.From)
		}
	}
	tier.GetMany(context.Background(), nil, cache.Asker{Query: 6}, nil)
}

func endedQuery(t *testing.T, tier cache.Secondary) {
	offer(t, tier, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for n := range 2 {
		if f := tier.Get(ctx, stored(n), cache.Asker{Query: 6}); f.From != cache.Nowhere && (n != 0 || !bytes.Equal(f.Value, storedValue(0))) {
			t.Errorf("value %d: %q", n, f.Value)
		}
	}
}

func manyQueries(t *testing.T, tier cache.Secondary) {
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			by := cache.Asker{Query: uint64(w + 1)}
			for i := range 200 {
				n := (i*7 + w) % 50
				if f := tier.Get(context.Background(), stored(n), by); f.From == cache.Nowhere {
					tier.Offer(stored(n), by, storedValue(n))
				} else if !bytes.Equal(f.Value, storedValue(n)) {
					t.Errorf("value %d: %q", n, f.Value)
				}
				tier.Has(stored(n))
				tier.Use(stored(n), by)
			}
		})
	}
	all.Wait()
}

// freshBlock: what a tier takes of a new block, the first query finds.
func freshBlock(t *testing.T, tier cache.Secondary) {
	taken := 0
	for n := range 50 {
		if tier.Fresh(context.Background(), stored(n), storedValue(n)) {
			taken++
		}
	}
	if taken != 50 {
		t.Errorf("%d of 50 values are taken", taken)
	}
	for n := range taken {
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			if f := tier.Get(context.Background(), stored(n), cache.Asker{Query: 1}); bytes.Equal(f.Value, storedValue(n)) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("value %d is not there 20 s after the tier has taken it", n)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tier.Fresh(ctx, stored(50), storedValue(50)) // returns
}
