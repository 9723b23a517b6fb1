package cachetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
)

var key = cache.Key{Object: "o", Kind: cache.Page, Off: 7}

// Run tests a tier. open returns an empty one that has room for a megabyte.
func Run(t *testing.T, open func(t *testing.T) cache.Tier) {
	for name, test := range map[string]func(*testing.T, cache.Tier){
		"loads once":       loadsOnce,
		"keys are apart":   keysApart,
		"peek":             peek,
		"errors":           errorsAreNotKept,
		"cancelled loader": cancelledLoader,
		"limited loader":   limitedLoader,
		"cancelled waiter": cancelledWaiter,
		"panic":            panics,
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

func give(value string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(value), nil }
}

// block returns a load that tells that it has begun, and gives a value when it may end, or its context has
// ended.
func block(begun chan<- struct{}, end <-chan struct{}) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		close(begun)
		select {
		case <-end:
			return []byte("value"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func loadsOnce(t *testing.T, tier cache.Tier) {
	var loads atomic.Int32
	begun, end := make(chan struct{}), make(chan struct{})
	load := block(begun, end)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			value, _, err := tier.Get(context.Background(), key, func(ctx context.Context) ([]byte, error) {
				loads.Add(1)
				return load(ctx)
			})
			if err != nil || string(value) != "value" {
				t.Errorf("%q, %v", value, err)
			}
		})
	}
	<-begun
	close(end)
	all.Wait()
	if n := loads.Load(); n != 1 {
		t.Errorf("%d loads", n)
	}
}

func keysApart(t *testing.T, tier cache.Tier) {
	keys := []cache.Key{key, {Object: "p", Kind: cache.Page, Off: 7}, {Object: "o", Kind: cache.Tail, Off: 7}, {Object: "o", Kind: cache.Page, Off: 8},
		{Object: "o", Kind: cache.List, Digest: cache.DigestOf([]byte("a"))}, {Object: "o", Kind: cache.List, Digest: cache.DigestOf([]byte("b"))},
		{Object: "o", Kind: cache.Verdicts, Off: 7, Digest: cache.DigestOf([]byte("a"))}}
	for range 2 {
		for i, k := range keys {
			value, _, err := tier.Get(context.Background(), k, give(fmt.Sprint(i)))
			if err != nil || string(value) != fmt.Sprint(i) {
				t.Errorf("%s: %q, %v", k, value, err)
			}
		}
	}
}

// peek allows that a tier has lost the value, but not that it gives another, or says so in two ways.
func peek(t *testing.T, tier cache.Tier) {
	if _, ok := tier.Peek(key); ok || tier.Has(key) {
		t.Error("an empty tier has a value")
	}
	if _, hit, err := tier.Get(context.Background(), key, give("value")); hit || err != nil {
		t.Errorf("hit: %t, %v", hit, err)
	}
	if value, ok := tier.Peek(key); ok && string(value) != "value" || ok != tier.Has(key) {
		t.Errorf("peek: %q, %t; has: %t", value, ok, tier.Has(key))
	}
}

func errorsAreNotKept(t *testing.T, tier cache.Tier) {
	away := errors.New("away")
	if _, _, err := tier.Get(context.Background(), key, func(context.Context) ([]byte, error) { return nil, away }); !errors.Is(err, away) {
		t.Error(err)
	}
	if value, hit, err := tier.Get(context.Background(), key, give("value")); err != nil || hit || string(value) != "value" {
		t.Errorf("%q, hit: %t, %v", value, hit, err)
	}
}

func cancelledLoader(t *testing.T, tier cache.Tier) {
	ctx, cancel := context.WithCancel(context.Background())
	begun := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		if _, _, err := tier.Get(ctx, key, block(begun, nil)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	<-begun
	waiting := make(chan struct{})
	both.Go(func() {
		close(waiting)
		if value, _, err := tier.Get(context.Background(), key, give("other")); err != nil || string(value) != "other" {
			t.Errorf("%q, %v", value, err)
		}
	})
	<-waiting
	cancel()
	both.Wait()
}

// limitedLoader: a query that has reached a limit does not fail the others.
func limitedLoader(t *testing.T, tier cache.Tier) {
	begun, end := make(chan struct{}), make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		_, _, err := tier.Get(context.Background(), key, func(context.Context) ([]byte, error) {
			close(begun)
			<-end
			return nil, model.ErrLimit
		})
		if !errors.Is(err, model.ErrLimit) {
			t.Error(err)
		}
	})
	<-begun
	waiting := make(chan struct{})
	both.Go(func() {
		close(waiting)
		if value, _, err := tier.Get(context.Background(), key, give("other")); err != nil || string(value) != "other" {
			t.Errorf("%q, %v", value, err)
		}
	})
	<-waiting
	close(end)
	both.Wait()
}

func cancelledWaiter(t *testing.T, tier cache.Tier) {
	begun, end := make(chan struct{}), make(chan struct{})
	var loader sync.WaitGroup
	loader.Go(func() {
		if value, _, err := tier.Get(context.Background(), key, block(begun, end)); err != nil || string(value) != "value" {
			t.Errorf("%q, %v", value, err)
		}
	})
	<-begun
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := tier.Get(ctx, key, give("other")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(end)
	loader.Wait()
}

func panics(t *testing.T, tier cache.Tier) {
	begun, end := make(chan struct{}), make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		defer func() {
			if recover() == nil {
				t.Error("the loader did not panic")
			}
		}()
		_, _, _ = tier.Get(context.Background(), key, func(context.Context) ([]byte, error) {
			close(begun)
			<-end
			panic("load")
		})
	})
	<-begun
	both.Go(func() {
		// Either it waited, or it came after the loader was gone.
		if value, _, err := tier.Get(context.Background(), key, give("value")); err != nil && !errors.Is(err, model.ErrTransient) || err == nil && string(value) != "value" {
			t.Errorf("%q, %v", value, err)
		}
	})
	close(end)
	both.Wait()
	if value, _, err := tier.Get(context.Background(), key, give("value")); err != nil || string(value) != "value" {
		t.Errorf("%q, %v", value, err)
	}
}
