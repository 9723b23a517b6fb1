package ledger

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache"
)

// The usual names of tiers. A query asks memory first, and the bucket last.
const (
	Memory    = "ram"
	Lists     = "lists" // what scans of many pages have found, in memory
	Local     = "local" // parts of the data folder
	SSD       = "ssd"
	Memcached = "memcached"
	Bucket    = "bucket"
	Results   = "results"
	Answers   = "answers"
)

// maxTiers bounds the number of tiers.
const maxTiers = 8

// Options build a Ledger.
type Options struct {
	// FirstBytes is the memory by which first touches are known, 8 bytes for each.
	FirstBytes int64
	// Now returns the time in Unix nanoseconds; nil: that of the machine.
	Now        func() int64
	Registerer prometheus.Registerer
}

// Touch is one time that a query asks for a value.
type Touch struct {
	// Key is the hash of the value's key, and Query tells the query from others.
	Key, Query uint64
	// Bytes is the length of the value in memory, and Stored its length on a disk or in the bucket; 0: unknown.
	Bytes, Stored uint32
	// Age is the age of the data in seconds.
	Age int32
	// First says that the query asks for the key for the first time.
	First bool
	// Local says that the value is of the data folder, and never comes from a tier but memory.
	Local bool
	// Fresh says that no query asks: the value was just written to the bucket.
	Fresh bool
}

// Watcher sees the touches of values that are on the way from the bucket to memory.
type Watcher interface {
	// Wants says whether Note is to be called for a touch. It is called by many goroutines, and must be quick.
	Wants(key uint64, first bool) bool
	// Note takes a touch. It does not wait.
	Note(t Touch)
}

// Ledger counts. It is safe for concurrent use.
type Ledger struct {
	now     func() int64
	began   int64
	firsts  firsts
	tenants tenants
	watch   atomic.Pointer[[]Watcher]

	mu    sync.Mutex
	tiers []*Tier // none is added once queries run
	past  past
	stop  chan struct{}
	done  sync.WaitGroup
}

// New returns a ledger without tiers. Start it when all tiers are there.
func New(o Options) *Ledger {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	l := &Ledger{now: o.Now, began: o.Now(), firsts: newFirsts(o.FirstBytes), stop: make(chan struct{})}
	l.tenants.init()
	if o.Registerer != nil {
		o.Registerer.MustRegister(&collector{l})
	}
	return l
}

// Start begins to keep the sums of the last hour. Close ends it.
func (l *Ledger) Start() {
	l.Minute()
	l.done.Go(func() {
		tick := time.NewTicker(time.Minute)
		defer tick.Stop()
		for {
			select {
			case <-l.stop:
				return
			case <-tick.C:
				l.Minute()
			}
		}
	})
}

// Minute notes the sums as they are. Start calls it every minute.
func (l *Ledger) Minute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.past.note(l.now(), l.sums(nil))
	l.tenants.retire(l.now())
}

// Close ends what Start began.
func (l *Ledger) Close() {
	close(l.stop)
	l.done.Wait()
}

// Watch adds a watcher. It is called for touches that begin later.
func (l *Ledger) Watch(w Watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Watcher
	if old := l.watch.Load(); old != nil {
		list = append(list, *old...)
	}
	list = append(list, w)
	l.watch.Store(&list)
}

// Unwatch removes a watcher.
func (l *Ledger) Unwatch(w Watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Watcher
	for _, other := range *l.watch.Load() {
		if other != w {
			list = append(list, other)
		}
	}
	l.watch.Store(&list)
}

// LocalAsker is Asker for a part of the data folder.
func (l *Ledger) LocalAsker(tenant string, query uint64) Asker {
	a := l.Asker(tenant, query, 0)
	a.age, a.old = uint8(localAge), 0
	return a
}

// Asker counts what one query asks for of one object. The zero value counts nothing.
type Asker struct {
	l      *Ledger
	tenant *tenant
	query  uint64
	age    uint8 // index of ages
	old    int32 // seconds
}

// Asker returns the account of a query, a number as QueryID of model.Cost returns it. Newest is the time of
// the newest data of the object, in Unix nanoseconds.
func (l *Ledger) Asker(tenant string, query uint64, newest int64) Asker {
	if l == nil {
		return Asker{query: query}
	}
	now := l.now()
	t := l.tenants.of(tenant)
	t.asked.Store(now)
	old := max(now-newest, 0) / int64(time.Second)
	return Asker{l, t, query, ageIndex(old), int32(min(old, 1<<31-1))}
}

// By returns the query as tiers know it.
func (a *Asker) By() cache.Asker {
	by := cache.Asker{Query: a.query}
	if a.tenant != nil {
		by.Tenant = a.tenant.number
	}
	return by
}

// Served counts a value that a tier gave, or a source. All tiers before it on the way did not have the value.
// Bytes is its length in memory, and stored its length on a disk; 0: unknown. Key is the hash of its key. It
// reports whether the query asks for the key for the first time.
func (a *Asker) Served(t *Tier, key uint64, bytes, stored int) (first bool) {
	if a.l == nil || t == nil {
		return true
	}
	first = a.l.firsts.note(key, a.query)
	a.tenant.hits[t.index][a.age].add(bytes, first)
	if watch := a.l.watch.Load(); watch != nil {
		for _, w := range *watch {
			if w.Wants(key, first) {
				w.Note(Touch{Key: key, Query: a.query, Bytes: uint32(bytes), Stored: uint32(stored), Age: a.old, First: first, Local: a.age == uint8(localAge)})
			}
		}
	}
	return first
}

// Asked counts a value that a tier off the way was asked for: it had it, or not.
func (a *Asker) Asked(t *Tier, key uint64, bytes int, hit bool) {
	if a.l == nil || t == nil {
		return
	}
	first := a.l.firsts.note(key, a.query)
	if hit {
		a.tenant.hits[t.index][a.age].add(bytes, first)
	} else {
		a.tenant.missed[t.index].add(bytes, first)
	}
}

// Fresh tells the watchers of a value that was just written to the bucket.
func (l *Ledger) Fresh(key uint64, stored int) {
	if l == nil {
		return
	}
	if watch := l.watch.Load(); watch != nil {
		for _, w := range *watch {
			if w.Wants(key, true) {
				w.Note(Touch{Key: key, Stored: uint32(stored), Fresh: true})
			}
		}
	}
}
