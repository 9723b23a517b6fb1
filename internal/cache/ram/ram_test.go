package ram

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
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

func TestGetFetchesOnce(t *testing.T) {
	c := mustNew(t, 1<<20)
	var fetches atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			page, _, err := c.Page(context.Background(), "o", 7, func(context.Context) ([]byte, error) {
				fetches.Add(1)
				time.Sleep(5 * time.Millisecond)
				return []byte("page"), nil
			})
			if err != nil || string(page) != "page" {
				t.Errorf("%q, %v", page, err)
			}
		})
	}
	wg.Wait()
	if n := fetches.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
	if _, hit, _ := c.Page(context.Background(), "o", 7, nil); !hit {
		t.Error("the page is not in the cache")
	}
}

func TestErrorsAreNotKept(t *testing.T) {
	c := mustNew(t, 1<<20)
	ctx := context.Background()
	away := errors.New("away")
	if _, _, err := c.Page(ctx, "o", 1, func(context.Context) ([]byte, error) { return nil, away }); !errors.Is(err, away) {
		t.Error(err)
	}
	if p, hit, err := c.Page(ctx, "o", 1, func(context.Context) ([]byte, error) { return []byte{1}, nil }); err != nil || hit || len(p) != 1 {
		t.Error(p, hit, err)
	}
}

// One whose client went away must not fail the others that wait for the same page.
func TestCancelledLeader(t *testing.T) {
	c := mustNew(t, 1<<20)
	leading := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := c.Page(ctx, "o", 1, func(ctx context.Context) ([]byte, error) {
			close(leading)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	<-leading
	wg.Go(func() {
		p, _, err := c.Page(context.Background(), "o", 1, func(context.Context) ([]byte, error) { return []byte{2}, nil })
		if err != nil || p[0] != 2 {
			t.Error(p, err)
		}
	})
	time.Sleep(5 * time.Millisecond)
	cancel()
	wg.Wait()
}

func TestCacheStaysInItsBudget(t *testing.T) {
	const budget = 1 << 20
	c := mustNew(t, budget)
	for i := range 1000 {
		if _, _, err := c.Page(context.Background(), fmt.Sprint(i), 0, func(context.Context) ([]byte, error) { return make([]byte, 10_000), nil }); err != nil {
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

// TestListsOutliveScans: what was found out from more pages than there is room for is still there when it is asked for again.
func TestListsOutliveScans(t *testing.T) {
	const budget, pages = 1 << 20, 300
	c := mustNew(t, budget)
	fetch := func(n int) func(context.Context) ([]byte, error) {
		return func(context.Context) ([]byte, error) { return make([]byte, n), nil }
	}
	for range 2 {
		for i := range pages {
			if _, _, err := c.Page(context.Background(), "o", int64(i), fetch(10_000)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.Page(context.Background(), fmt.Sprint("o ", i), -1, fetch(20)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.pages.CleanUp()
	c.lists.CleanUp()
	for i := range pages {
		if list, ok := c.Kept(fmt.Sprint("o ", i), -1); !ok || len(list) != 20 {
			t.Fatalf("list %d is gone", i)
		}
	}
	if got := c.pages.WeightedSize() + c.lists.WeightedSize(); got > budget {
		t.Errorf("%d bytes in a cache of %d", got, budget)
	}
	if _, ok := c.Kept("o ", -1); ok {
		t.Error("a list that nobody made")
	}
}
