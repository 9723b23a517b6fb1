package ram

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/model"
)

// listShare is the share of the memory that derived values have for themselves. Among pages they would not
// last: a query that reads more pages than there is room for leaves each of them as often used as the list
// that it was read for, so nothing gives way to the list.
const listShare = 16

// EntryBytes is about the cost of an entry besides its value and the name of its object.
const EntryBytes = 192

// Options build a Cache.
type Options struct {
	// MaxBytes bounds the pages and what it costs to keep them. 0 or less keeps nothing.
	MaxBytes int64
	// Account is told what enters and leaves; nil: nothing is told.
	Account    *ledger.Tier
	Registerer prometheus.Registerer
}

// Cache is a [cache.Tier] in memory.
//
// It has a single flight of its own. That of otter, and that of x/sync, give the error of the one that loads
// to all that wait, so that a client that goes away would fail the queries of others.
type Cache struct {
	pages, lists *otter.Cache[cache.Key, *entry]
	stats        *stats.Counter
	account      *ledger.Tier

	mu    sync.Mutex
	loads map[cache.Key]*load

	hits, misses, unread prometheus.Counter
}

// entry is a value in the cache.
type entry struct {
	value []byte
	born  time.Time
	read  atomic.Bool // by another use than that which it was loaded for
}

// take returns the value and notes that it is used.
func (e *entry) take() []byte {
	if !e.read.Load() {
		e.read.Store(true)
	}
	return e.value
}

// load is a value that is on its way.
type load struct {
	done  chan struct{}
	value []byte
	err   error
}

// New returns an empty cache.
func New(o Options) (*Cache, error) {
	c := &Cache{loads: make(map[cache.Key]*load), stats: stats.NewCounter(), account: o.Account}
	lists := o.MaxBytes / listShare
	for _, half := range []struct {
		dst   **otter.Cache[cache.Key, *entry]
		bytes int64
	}{{&c.pages, o.MaxBytes - lists}, {&c.lists, lists}} {
		var err error
		*half.dst, err = Eviction[cache.Key, *entry]{
			MaxBytes: half.bytes, Stats: c.stats, Left: c.left,
			Weigh: func(k cache.Key, e *entry) uint32 { return uint32(min(weight(k, e), 1<<31)) },
		}.New()
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
	c.unread = counter("shale_cache_evictions_unread_total", "Pages that were evicted without being used by any query since they entered the cache.")
	f.NewCounterFunc(prometheus.CounterOpts{
		Name: "shale_cache_evictions_total", Help: "Pages that were evicted to make room for others.", ConstLabels: prometheus.Labels{"tier": "ram"},
	}, func() float64 { return float64(c.stats.Snapshot().Evictions) })
	gauge := func(name, help string, value func() float64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"tier": "ram"}}, value)
	}
	gauge("shale_cache_bytes", "Bytes in the cache.", func() float64 { return float64(c.pages.WeightedSize() + c.lists.WeightedSize()) })
	gauge("shale_cache_limit_bytes", "Bytes that the cache may hold.", func() float64 { return float64(max(o.MaxBytes, 0)) })
	o.Account.Describe(func() ledger.State {
		return ledger.State{Bytes: int64(c.pages.WeightedSize()), LimitBytes: o.MaxBytes - lists, Entries: int64(c.pages.EstimatedSize())}
	})
	return c, nil
}

// weight is the bytes that an entry takes.
func weight(k cache.Key, e *entry) int { return len(e.value) + len(k.Object) + EntryBytes }

// left notes that an entry has left the cache.
func (c *Cache) left(k cache.Key, e *entry, evicted bool) {
	if !evicted || k.Kind.Derived() {
		return
	}
	read := e.read.Load()
	if !read {
		c.unread.Inc()
	}
	c.account.Evicted(int64(weight(k, e)), read, time.Since(e.born))
}

// half returns where a value is kept.
func (c *Cache) half(k cache.Key) *otter.Cache[cache.Key, *entry] {
	if k.Kind.Derived() {
		return c.lists
	}
	return c.pages
}

// Get is [cache.Tier.Get].
func (c *Cache) Get(ctx context.Context, k cache.Key, fetch func(context.Context) ([]byte, error)) (value []byte, hit bool, err error) {
	for {
		if value, ok := c.Peek(k); ok {
			return value, true, nil
		}
		c.mu.Lock()
		l, waiting := c.loads[k]
		if !waiting {
			// The load may have ended in between.
			if value, ok := c.Peek(k); ok {
				c.mu.Unlock()
				return value, true, nil
			}
			l = &load{done: make(chan struct{})}
			c.loads[k] = l
		}
		c.mu.Unlock()
		if !waiting {
			c.misses.Inc()
			c.run(ctx, k, l, fetch)
			return l.value, false, l.err
		}
		model.ProcessorOf(ctx).Leave()
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-l.done:
		}
		if l.err == nil || ctx.Err() != nil {
			c.hits.Inc()
			return l.value, true, l.err
		}
		// The client of the loading request went away, or its budget is spent; this request loads instead.
		if !cancelled(l.err) && !errors.Is(l.err, model.ErrLimit) {
			return nil, false, l.err
		}
	}
}

// Peek is [cache.Tier.Peek]. That a value is not there counts neither as a hit nor as a miss.
func (c *Cache) Peek(k cache.Key) ([]byte, bool) {
	e, ok := c.half(k).GetIfPresent(k)
	if !ok {
		return nil, false
	}
	c.hits.Inc()
	return e.take(), true
}

// Has is [cache.Tier.Has].
func (c *Cache) Has(k cache.Key) bool {
	_, ok := c.half(k).GetEntryQuietly(k)
	return ok
}

// Close is [cache.Tier.Close].
func (c *Cache) Close() error {
	c.pages.InvalidateAll()
	c.lists.InvalidateAll()
	return nil
}

func (c *Cache) run(ctx context.Context, k cache.Key, l *load, fetch func(context.Context) ([]byte, error)) {
	returned := false
	defer func() {
		if !returned { // fetch has panicked
			l.err = fmt.Errorf("%w: %s: the load did not finish", model.ErrTransient, k)
		}
		c.mu.Lock()
		delete(c.loads, k)
		c.mu.Unlock()
		close(l.done)
	}()
	l.value, l.err = fetch(ctx)
	returned = true
	if l.err == nil {
		c.half(k).Set(k, &entry{value: l.value, born: time.Now()})
		if !k.Kind.Derived() {
			c.account.Admitted()
		}
	}
}

func cancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
