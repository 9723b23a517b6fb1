package replay

import (
	"context"

	"github.com/shaledb/shale/internal/plan/evict"
	"github.com/shaledb/shale/internal/plan/trace"
)

// Case is a cache to run a trace through.
type Case struct {
	Policy string
	// Bytes is the capacity in the units of the trace, without its scale.
	Bytes int64
	// Queue is the share of the capacity that the queue of Shale's tier on disk has.
	Queue float64
	// DelayMs is the time from a request to the bucket until the cache has the value.
	DelayMs int64
	// Shared says that requests for a value that is on its way wait for it. Otherwise, each one is a request
	// to the bucket.
	Shared bool
}

// Counts are the figures of a run, in the units of the trace.
type Counts struct {
	Reads, ReadBytes int64
	// Hits found their value in the cache, and Waits a fetch of it that was under way.
	Hits, Waits, HitBytes int64
	// First counts the first reads of a key by a query, and FirstHits those of them that were hits.
	First, FirstHits int64
	// Gets and GetBytes are requests to the bucket. PeakGets is the most of them in a minute.
	Gets, GetBytes, PeakGets int64
	// PeakBytes is the most bytes that the cache sent in a minute, and PeakHits the most hits.
	PeakBytes, PeakHits int64
	Evicted, Unread     int64
	EvictedBytes        int64
	// PeakEvicted is the most bytes evicted in an hour, and PeakUnread the most unread evictions.
	PeakEvicted, PeakUnread int64
	Written, Refused        int64
}

// fetch is a value that is on its way.
type fetch struct {
	key, query uint32
	due        int64
}

// run is a case under way.
type run struct {
	Case
	t       *trace.Trace
	cache   evict.Cache
	counts  Counts
	flight  []fetch // in the order of due, from first on
	first   int
	fetches []uint16 // by key: fetches under way
	minute  peaks
	hour    peaks
}

// peaks finds the most of some counters between two ends of an interval.
type peaks struct {
	length, now int64
	before      Counts
}

// blockRequests is the number of requests between two looks at the context.
const blockRequests = 1 << 16

// Run runs the trace through a cache. Next is needed for the optimum alone; see [NextRequests]. Progress is
// called with the number of requests that were done since the last call.
func Run(ctx context.Context, t *trace.Trace, c Case, next []uint32, progress func(requests int)) (Counts, error) {
	cache, err := evict.New(c.Policy, evict.Input{Sizes: t.Sizes, Capacity: c.Bytes, Queue: c.Queue, Next: next})
	if err != nil {
		return Counts{}, err
	}
	r := &run{Case: c, t: t, cache: cache, fetches: make([]uint16, len(t.Sizes)), minute: peaks{length: 60_000}, hour: peaks{length: 3_600_000}}
	oracle, _ := cache.(evict.Oracle)
	measuring := false
	for i := range t.Requests {
		q := &t.Requests[i]
		if i%blockRequests == 0 && i > 0 {
			if err := ctx.Err(); err != nil {
				return Counts{}, err
			}
			progress(blockRequests)
		}
		if !measuring && q.At >= t.WarmUp {
			measuring = true
			r.begin(q.At)
		}
		if measuring {
			r.watch(q.At)
		}
		r.arrive(q.At)
		if oracle != nil {
			oracle.Follow(i, q.Key)
		}
		r.request(q)
	}
	progress(len(t.Requests) % blockRequests)
	r.watch(1 << 62)
	return r.total(), nil
}

// begin starts to count. The warm-up is over.
func (r *run) begin(at int64) {
	r.counts = Counts{}
	r.cache.Counted().Reset()
	r.minute.now, r.hour.now = at/r.minute.length, at/r.hour.length
}

// arrive puts the values into the cache that have arrived.
func (r *run) arrive(now int64) {
	for r.first < len(r.flight) && r.flight[r.first].due <= now {
		f := r.flight[r.first]
		r.first++
		r.fetches[f.key]--
		r.store(f.key, f.query)
	}
	if r.first > 1<<12 && r.first > len(r.flight)/2 {
		r.flight = append(r.flight[:0], r.flight[r.first:]...)
		r.first = 0
	}
}

// store puts a value into the cache. It may be there already, if it was fetched twice.
func (r *run) store(key, query uint32) {
	if !r.cache.Has(key) {
		r.cache.Put(key, query, false)
	}
}

func (r *run) request(q *trace.Request) {
	if q.Write {
		if !r.cache.Has(q.Key) {
			r.cache.Put(q.Key, q.Query, true)
		}
		return
	}
	c, size := &r.counts, int64(r.t.Sizes[q.Key])
	c.Reads++
	c.ReadBytes += size
	if q.First {
		c.First++
	}
	switch {
	case r.cache.Get(q.Key, q.Query):
		c.Hits++
		c.HitBytes += size
		if q.First {
			c.FirstHits++
		}
	case r.Shared && r.fetches[q.Key] > 0:
		c.Waits++
	default:
		c.Gets++
		c.GetBytes += size
		if r.DelayMs == 0 {
			r.store(q.Key, q.Query)
			return
		}
		r.fetches[q.Key]++
		r.flight = append(r.flight, fetch{q.Key, q.Query, q.At + r.DelayMs})
	}
}

// total returns the counts with those of the cache.
func (r *run) total() Counts {
	c, l := r.counts, r.cache.Counted()
	c.Evicted, c.Unread, c.EvictedBytes, c.Written, c.Refused = l.Evicted, l.Unread, l.EvictedBytes, l.Written, l.Refused
	return c
}

// watch notes the peaks of intervals that are over.
func (r *run) watch(now int64) {
	if now/r.minute.length > r.minute.now {
		d := r.minute.turn(now, r.total())
		r.counts.PeakGets = max(r.counts.PeakGets, d.Gets)
		r.counts.PeakHits = max(r.counts.PeakHits, d.Hits)
		r.counts.PeakBytes = max(r.counts.PeakBytes, d.HitBytes)
	}
	if now/r.hour.length > r.hour.now {
		d := r.hour.turn(now, r.total())
		r.counts.PeakEvicted = max(r.counts.PeakEvicted, d.EvictedBytes)
		r.counts.PeakUnread = max(r.counts.PeakUnread, d.Unread)
	}
}

// turn begins a new interval and returns what was counted since the one before began.
func (p *peaks) turn(now int64, total Counts) Counts {
	d := Counts{
		Gets: total.Gets - p.before.Gets, Hits: total.Hits - p.before.Hits, HitBytes: total.HitBytes - p.before.HitBytes,
		EvictedBytes: total.EvictedBytes - p.before.EvictedBytes, Unread: total.Unread - p.before.Unread,
	}
	p.now, p.before = now/p.length, total
	return d
}

// HitRatio is the share of all reads that found their value in the cache.
func (c *Counts) HitRatio() float64 { return ratio(c.Hits, c.Reads) }

// FirstHitRatio is the share of the first reads of a key by a query that found it in the cache. It does not
// count what sub-queries of one query find of each other.
func (c *Counts) FirstHitRatio() float64 { return ratio(c.FirstHits, c.First) }

// ByteHitRatio is the share of all bytes read that came from the cache.
func (c *Counts) ByteHitRatio() float64 { return ratio(c.HitBytes, c.ReadBytes) }

// UnreadShare is the share of evictions of values that were never read: the churn.
func (c *Counts) UnreadShare() float64 { return ratio(c.Unread, c.Evicted) }

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
