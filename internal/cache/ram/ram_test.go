package ram

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/cachetest"
)

func TestMain(m *testing.M) {
	// The library keeps a timer goroutine for the life of a cache.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/maypok86/otter/v2.(*cache[...]).periodicCleanUp"))
}

func mustNew(t *testing.T, bytes int64) *Cache {
	t.Helper()
	c, err := New(Options{MaxBytes: bytes})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestContract(t *testing.T) {
	cachetest.Run(t, func(t *testing.T) cache.Tier { return mustNew(t, 1<<20) })
}

func page(object string, off int64) cache.Key {
	return cache.Key{Object: object, Kind: cache.Page, Off: off}
}

func list(n int) cache.Key {
	return cache.Key{Object: "o", Kind: cache.List, Digest: cache.DigestOf([]byte(fmt.Sprint(n)))}
}

func TestCacheStaysInItsBudget(t *testing.T) {
	const budget = 1 << 20
	c := mustNew(t, budget)
	for i := range 1000 {
		if _, _, err := c.Get(context.Background(), page(fmt.Sprint(i), 0), func(context.Context) ([]byte, error) { return make([]byte, 10_000), nil }); err != nil {
			t.Fatal(err)
		}
	}
	c.pages.CleanUp()
	if got := c.pages.WeightedSize(); got > budget {
		t.Errorf("%d bytes in a cache of %d", got, budget)
	}
	if n := c.pages.EstimatedSize(); n < 50 {
		t.Errorf("only %d pages were kept", n)
	}
}

// TestListsOutliveScans: what was worked out from more pages than there is room for is still there for the
// next query.
func TestListsOutliveScans(t *testing.T) {
	const budget, pages = 1 << 20, 300
	c := mustNew(t, budget)
	fetch := func(n int) func(context.Context) ([]byte, error) {
		return func(context.Context) ([]byte, error) { return make([]byte, n), nil }
	}
	for range 2 {
		for i := range pages {
			if _, _, err := c.Get(context.Background(), page("o", int64(i)), fetch(10_000)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.Get(context.Background(), list(i), fetch(20)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.pages.CleanUp()
	c.lists.CleanUp()
	for i := range pages {
		if list, ok := c.Peek(list(i)); !ok || len(list) != 20 {
			t.Fatalf("list %d is gone", i)
		}
	}
	if got := c.pages.WeightedSize() + c.lists.WeightedSize(); got > budget {
		t.Errorf("%d bytes in a cache of %d", got, budget)
	}
	if _, ok := c.Peek(list(-1)); ok {
		t.Error("a list that was never made")
	}
}
