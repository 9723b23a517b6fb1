package ram

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/model"
)

// key is the address of a page: the object that holds it and its offset there. Objects are immutable, so an address
// means the same bytes for ever. A negative offset is that of a list: of what has been found out from many pages.
type key struct {
	object string
	offset int64
}

// listShare is the part of the memory that lists have for themselves. Among pages they would not last: a query that reads more
// pages than there is room for leaves each of them as often asked for as the list that it was read for, and so nothing gives way
// to the list.
const listShare = 16

// entryBytes is about what an entry costs beside its page.
const entryBytes = 160

// Options build a Cache.
type Options struct {
	// MaxBytes bounds the pages and what it costs to keep them. 0 or less keeps nothing.
	MaxBytes   int64
	Registerer prometheus.Registerer
}

// Cache holds pages. It is safe for concurrent use.
type Cache struct {
	pages, lists *otter.Cache[key, []byte]
	stats        *stats.Counter

	mu    sync.Mutex
	loads map[key]*load

	hits, misses prometheus.Counter
}

// load is a page that is on its way.
type load struct {
	done chan struct{}
	page []byte
	err  error
}

// New returns an empty cache.
func New(o Options) (*Cache, error) {
	c := &Cache{loads: make(map[key]*load), stats: stats.NewCounter()}
	lists := o.MaxBytes / listShare
	for _, part := range []struct {
		cache **otter.Cache[key, []byte]
		bytes int64
	}{{&c.pages, o.MaxBytes - lists}, {&c.lists, lists}} {
		var err error
		*part.cache, err = otter.New(&otter.Options[key, []byte]{
			MaximumWeight: uint64(max(part.bytes, 1)), // 1 keeps nothing; 0 is no weight
			Weigher: func(k key, page []byte) uint32 {
				return uint32(min(len(page)+len(k.object)+entryBytes, 1<<31))
			},
			StatsRecorder: c.stats,
		})
		if err != nil {
			return nil, fmt.Errorf("%w: page cache: %v", model.ErrInvalid, err)
		}
	}
	f := promauto.With(o.Registerer)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"tier": "ram"}})
	}
	c.hits = counter("shale_cache_hits_total", "Pages found in the cache.")
	c.misses = counter("shale_cache_misses_total", "Pages that had to be fetched from the next tier.")
	f.NewCounterFunc(prometheus.CounterOpts{
		Name: "shale_cache_evictions_total", Help: "Pages that left the cache for others.", ConstLabels: prometheus.Labels{"tier": "ram"},
	}, func() float64 { return float64(c.stats.Snapshot().Evictions) })
	gauge := func(name, help string, value func() float64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"tier": "ram"}}, value)
	}
	gauge("shale_cache_bytes", "Bytes in the cache.", func() float64 { return float64(c.pages.WeightedSize() + c.lists.WeightedSize()) })
	gauge("shale_cache_limit_bytes", "Bytes that the cache may hold.", func() float64 { return float64(max(o.MaxBytes, 0)) })
	return c, nil
}

// of returns where a page or a list is kept.
func (c *Cache) of(k key) *otter.Cache[key, []byte] {
	if k.offset < 0 {
		return c.lists
	}
	return c.pages
}

// Page returns a page, or a list, from the cache or else from fetch, which runs once for all who want the page at one time. The
// page must not be changed. An error is given to all who waited, and is not kept. hit says that fetch was not needed.
func (c *Cache) Page(ctx context.Context, object string, off int64, fetch func(context.Context) ([]byte, error)) (page []byte, hit bool, err error) {
	k := key{object, off}
	for {
		if page, ok := c.of(k).GetIfPresent(k); ok {
			c.hits.Inc()
			return page, true, nil
		}
		c.mu.Lock()
		l, waiting := c.loads[k]
		if !waiting {
			l = &load{done: make(chan struct{})}
			c.loads[k] = l
		}
		c.mu.Unlock()
		if !waiting {
			c.misses.Inc()
			c.run(ctx, k, l, fetch)
			return l.page, false, l.err
		}
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-l.done:
		}
		// That the other one's client went away is no reason to fail here.
		if l.err == nil || ctx.Err() != nil {
			c.hits.Inc()
			return l.page, true, l.err
		}
		if !cancelled(l.err) {
			return nil, false, l.err
		}
	}
}

// Kept returns a page if it is in the cache, which counts as a use of it; that it is not there counts as nothing.
func (c *Cache) Kept(object string, off int64) ([]byte, bool) {
	k := key{object, off}
	page, ok := c.of(k).GetIfPresent(k)
	if ok {
		c.hits.Inc()
	}
	return page, ok
}

// Has reports whether a page is in the cache. It does not count as a use of the page.
func (c *Cache) Has(object string, off int64) bool {
	k := key{object, off}
	_, ok := c.of(k).GetEntryQuietly(k)
	return ok
}

func (c *Cache) run(ctx context.Context, k key, l *load, fetch func(context.Context) ([]byte, error)) {
	defer func() {
		c.mu.Lock()
		delete(c.loads, k)
		c.mu.Unlock()
		close(l.done)
	}()
	l.err = fmt.Errorf("%w: page %s at %d: the load did not finish", model.ErrTransient, k.object, k.offset) // if fetch panics
	l.page, l.err = fetch(ctx)
	if l.err == nil {
		c.of(k).Set(k, l.page)
	}
}

func cancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
