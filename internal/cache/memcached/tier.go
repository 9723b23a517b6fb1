package memcached

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/memcache"
	"github.com/shaledb/shale/internal/memcache/meta"
	"github.com/shaledb/shale/internal/model"
)

const (
	// MaxValue bounds the values that are stored. The largest pages have less than a megabyte.
	MaxValue = 4 << 20
	// mostTTL is the longest time to live that memcached takes as a number of seconds.
	mostTTL = 30 * 24 * time.Hour
)

// Options build a Tier.
type Options struct {
	// Client defines the servers. The tier sets what it reads and where its metrics and log go.
	Client memcache.Options
	// Prefix begins each key. Seed is that of the bucket, so that two buckets may share servers.
	Prefix string
	Seed   model.KeySeed
	// TTL is how long a value may stay; 0: until the server needs the room.
	TTL time.Duration
	// Fresh makes the tier take pages of new blocks before a query asks for them.
	Fresh bool
	// QueueBytes bounds the memory of values that wait to be stored. What is being sent takes as much again
	// twice.
	QueueBytes int64

	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Tier is a [cache.Secondary] on memcached servers.
type Tier struct {
	o      Options
	prefix string
	common string // the prefix of what does not depend on the bucket
	most   int    // bytes of a value
	client *memcache.Client
	m      *metrics

	queue   chan fill
	queued  atomic.Int64 // bytes in queue and in the hands of its workers
	workers sync.WaitGroup
	stop    chan struct{}
	nextLog atomic.Int64 // when a damaged value may be logged, in nanoseconds
}

var _ cache.Secondary = (*Tier)(nil)

// Open opens the tier. Servers need not be there: the tier finds nothing until they are. Only options that
// make no sense are an error.
func Open(o Options) (*Tier, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Tier{
		o: o, most: int(min(MaxValue, o.QueueBytes/2)), prefix: fmt.Sprintf("%s:%s:%016x:", o.Prefix, frameVersion, uint64(o.Seed)),
		common: fmt.Sprintf("%s:%s:", o.Prefix, frameVersion),
		queue:  make(chan fill, queueLength), stop: make(chan struct{}),
	}
	if !meta.ValidKey([]byte(t.prefix)) || len(t.prefix) > mostPrefix {
		return nil, fmt.Errorf("%w: prefix of memcached keys %q: expected at most %d printable characters without spaces", model.ErrInvalid, o.Prefix, mostPrefix-len(t.prefix)+len(o.Prefix))
	}
	if o.TTL < 0 || o.TTL > mostTTL {
		return nil, fmt.Errorf("%w: time to live in memcached: %v is not between 0 and %v", model.ErrInvalid, o.TTL, mostTTL)
	}
	o.Client.MaxValue, o.Client.Registerer, o.Client.Logger = MaxValue+frameBytes+mostName, o.Registerer, o.Logger
	var err error
	if t.client, err = memcache.New(o.Client); err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	t.m = newMetrics(t)
	for range fillers {
		t.workers.Go(t.fill)
	}
	return t, nil
}

// mostPrefix bounds the prefix, so that a hash has room after it. mostName bounds a full name.
const mostPrefix, mostName = 150, 1 << 12

// Get is [cache.Secondary.Get].
func (t *Tier) Get(ctx context.Context, k cache.Key, by cache.Asker) cache.Found {
	var found [1]cache.Found
	t.GetMany(ctx, []cache.Key{k}, by, found[:])
	return found[0]
}

// GetMany is [cache.Secondary.GetMany].
func (t *Tier) GetMany(ctx context.Context, keys []cache.Key, _ cache.Asker, found []cache.Found) {
	l := lookups.Get().(*lookup)
	l.begin(t, keys)
	if l.round(ctx, t, found, time.Now().Add(t.client.Most())); len(l.claimed) > 0 {
		l.await(ctx, t, found)
	}
	l.end()
	hits := 0
	for _, f := range found {
		if f.From != cache.Nowhere {
			hits++
		}
	}
	t.m.hits.Add(float64(hits))
	t.m.misses.Add(float64(len(keys) - hits))
}

// damaged counts a value that is not what was stored.
func (t *Tier) damaged(key []byte, err error) {
	t.m.bad.Inc()
	now := time.Now().UnixNano()
	if next := t.nextLog.Load(); now >= next && t.nextLog.CompareAndSwap(next, now+int64(time.Minute)) {
		t.o.Logger.Warn("a value from memcached is damaged and is read from the bucket instead; further ones of the next minute are only counted",
			"key", string(key), "err", err)
	}
}

// Has is [cache.Secondary.Has]: what a server has is not known without asking it.
func (t *Tier) Has(cache.Key) bool { return false }

// Use is [cache.Secondary.Use]: servers count their own reads.
func (t *Tier) Use(cache.Key, cache.Asker) {}

// Servers returns what is known of each server.
func (t *Tier) Servers() []memcache.Status { return t.client.Status() }

// Close drops what waits to be stored, and ends all connections.
func (t *Tier) Close() error {
	close(t.stop)
	t.workers.Wait()
	t.client.Close()
	return nil
}
