package pace

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Rules are what a store promises about the requests that it takes.
type Rules struct {
	// Reads and Writes per second are allowed from the beginning; 0: no limit until the store throttles.
	Reads, Writes float64
	// Ramp is the factor by which a rate beyond these may rise in a second; 0: as fast as below them.
	Ramp float64
	// PrefixReads and PrefixWrites per second are allowed to the objects of one prefix; 0: no limit.
	PrefixReads, PrefixWrites float64
}

// RulesOf returns the published rules of a kind of store, by the scheme of its URL. A folder has none.
func RulesOf(scheme string) Rules {
	switch scheme {
	case "s3":
		return Rules{PrefixReads: 5500, PrefixWrites: 3500}
	case "gs":
		// At most twice as many after 20 minutes.
		return Rules{Reads: 5000, Writes: 1000, Ramp: math.Pow(2, 1.0/1200)}
	case "azblob":
		return Rules{Reads: 20000, Writes: 20000}
	}
	return Rules{}
}

// Options build a Limit.
type Options struct {
	Rules
	// Concurrent is the most requests at one time.
	Concurrent int
	// PerSecond is the most requests per second of all prefixes together; 0: no limit.
	PerSecond  float64
	Registerer prometheus.Registerer
}

// recently is how long a store counts as throttling after a refusal.
const recently = 10 * time.Second

// maxPrefixes bounds the prefixes that are known at one time.
const maxPrefixes = 1024

// Limit is the limit of the requests to a store. It is safe for concurrent use.
type Limit struct {
	o         Options
	throttles prometheus.Counter

	mu          sync.Mutex
	concurrency concurrency
	all         *rate // of PerSecond
	reads       *rate
	writes      *rate
	prefixes    map[prefixKey]*rate
	throttledAt time.Time
	given       func()
}

type prefixKey struct {
	prefix string
	write  bool
}

// New returns a limit.
func New(o Options) *Limit {
	if o.Ramp == 0 {
		o.Ramp = growth
	}
	now := time.Now()
	l := &Limit{
		o: o, concurrency: newConcurrency(max(o.Concurrent, 1)), prefixes: make(map[prefixKey]*rate), given: func() {},
		all: newRate(now, o.PerSecond, 1), reads: newRate(now, o.Reads, o.Ramp), writes: newRate(now, o.Writes, o.Ramp),
	}
	f := promauto.With(o.Registerer)
	l.throttles = f.NewCounter(prometheus.CounterOpts{
		Name: "shale_bucket_throttled_total", Help: "Requests that the store refused because it got too many (429 or 503)."})
	locked := func(value func() float64) func() float64 {
		return func() float64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return value()
		}
	}
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_bucket_concurrent_limit", Help: "Requests to the bucket that may run at one time: it falls when the store slows down or throttles."},
		locked(func() float64 { return math.Floor(l.concurrency.limit) }))
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_bucket_concurrent_requests", Help: "Requests to the bucket that are running."},
		locked(func() float64 { return float64(l.concurrency.running) }))
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_bucket_read_rate_limit", Help: "Reads of the bucket per second that are allowed; +Inf while the store has not throttled and has no known limit."},
		locked(func() float64 { return min(l.reads.perSecond, l.all.perSecond) }))
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_bucket_write_rate_limit", Help: "Writes to the bucket per second that are allowed; +Inf while the store has not throttled and has no known limit."},
		locked(func() float64 { return min(l.writes.perSecond, l.all.perSecond) }))
	return l
}

// OnGive sets the function that is called whenever a request has ended.
func (l *Limit) OnGive(fn func()) { l.given = fn }

// Take reports whether a request may be sent now; [Limit.Give] must follow. If only its rate forbids it, wait
// is how long, and one says whether only requests to its prefix must wait. With 0, another request must end
// first.
func (l *Limit) Take(write bool, name string) (wait time.Duration, one, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.concurrency.free() {
		return 0, false, false
	}
	now := time.Now()
	if wait = max(l.all.wait(now), l.rate(write).wait(now)); wait > 0 {
		return wait, false, false
	}
	prefix := l.prefix(now, write, name)
	if wait = prefix.wait(now); wait > 0 {
		return wait, true, false
	}
	l.all.send()
	l.rate(write).send()
	prefix.send()
	l.concurrency.start()
	return 0, false, true
}

// Give ends a request that was taken.
func (l *Limit) Give() {
	l.mu.Lock()
	l.concurrency.running--
	l.mu.Unlock()
	l.given()
}

// Throttled reports whether the store has throttled recently.
func (l *Limit) Throttled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.throttledAt.IsZero() && time.Since(l.throttledAt) < recently
}

func (l *Limit) rate(write bool) *rate {
	if write {
		return l.writes
	}
	return l.reads
}

// prefix returns the rate of the prefix of an object.
func (l *Limit) prefix(now time.Time, write bool, name string) *rate {
	start := l.o.PrefixReads
	if write {
		start = l.o.PrefixWrites
	}
	key := prefixKey{write: write}
	if start > 0 {
		key.prefix = prefixOf(name)
	}
	r := l.prefixes[key]
	if r == nil {
		if len(l.prefixes) >= maxPrefixes {
			clear(l.prefixes)
		}
		r = newRate(now, start, 1)
		l.prefixes[key] = r
	}
	return r
}

// prefixOf returns the folder of an object and the first byte of its name there. Names of blocks begin with
// a hash, so that this makes 16 prefixes of them.
func prefixOf(name string) string { return name[:min(strings.LastIndexByte(name, '/')+2, len(name))] }

// accepted counts a request that the store carried out. Bytes below 0 say that its time depends on more than
// the store.
func (l *Limit) accepted(write bool, bytes int64, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate(write).accepted++
	if bytes >= 0 {
		l.concurrency.observe(time.Now(), bytes, took)
	}
}

// refused counts a request that was throttled.
func (l *Limit) refused(write bool, after time.Duration) {
	l.throttles.Inc()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.throttledAt = now
	l.concurrency.throttled = true
	l.concurrency.turn(now)
	l.rate(write).throttled(now, after)
}
