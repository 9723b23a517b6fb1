package head

import (
	"context"
	"sync"
	"testing"

	"github.com/shaledb/shale/internal/cache"
)

// cacheOf keeps all pages.
type cacheOf struct{ pages sync.Map }

func (c *cacheOf) Get(ctx context.Context, k cache.Key, fetch func(context.Context) ([]byte, error)) ([]byte, bool, error) {
	if p, ok := c.Peek(k); ok {
		return p, true, nil
	}
	p, err := fetch(ctx)
	if err == nil {
		c.pages.Store(k, p)
	}
	return p, false, err
}

func (c *cacheOf) Peek(k cache.Key) ([]byte, bool) {
	p, ok := c.pages.Load(k)
	if !ok {
		return nil, false
	}
	return p.([]byte), true
}

func (c *cacheOf) Has(k cache.Key) bool {
	_, ok := c.Peek(k)
	return ok
}

// TestCachedPages: a query that asks again reads no page of a part, and says so.
func TestCachedPages(t *testing.T) {
	r := newRig(t, nil)
	r.push("a", 0, 500, r.now, 1)
	r.must(r.head.Flush(context.Background()))
	src, ctx := r.head.Source(&cacheOf{}), context.Background()
	var read [2]int64
	for i := range read {
		req := everything("a")
		cs, err := src.Select(ctx, req)
		r.must(err)
		n := 0
		for cs[0].Next(ctx) {
			n++
		}
		r.must(cs[0].Err())
		r.must(cs[0].Close())
		if n != 500 {
			t.Errorf("%d series", n)
		}
		if read[i] = req.Cost.PagesDisk.Load(); i == 1 && (read[1] != 0 || req.Cost.PagesRAM.Load() < read[0]) {
			t.Errorf("%d pages of the disk and then %d, %d of the cache", read[0], read[1], req.Cost.PagesRAM.Load())
		}
	}
	if read[0] == 0 {
		t.Error("no page was read")
	}
	values := 0
	req := everything("a")
	r.must(src.LabelValues(ctx, req, "i", func([]byte) error { values++; return nil }))
	if values != 500 {
		t.Errorf("%d values", values)
	}
}
