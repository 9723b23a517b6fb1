package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// QueryPool is the memory that all queries may hold together. It is charged through their quotas.
//
// A query takes memory from the pool in grains (see [Quota]) and charges within them. Below, the memory of a
// query includes its grains.
//
// A query does not know how much memory it needs, so it charges as it goes. When the pool has no room for a
// charge, the query fails, gives back everything and calls Await. Await reserves twice the memory that the
// pool refused, once there is room, and the query runs from its beginning. It cannot be refused within its
// reservation. Twice as much every time makes all lost attempts together as large as the one that succeeds.
//
// A query is light while it holds at most 1/64 of the pool, and otherwise heavy. Both classes have a queue,
// and queries have an age, the order of their first charges, which they keep over all attempts. First in a
// queue is the oldest query of the tenant whose queries of the class hold the fewest bytes; of two such
// tenants, the older query.
//
//   - Only the first query of a queue gets a reservation.
//   - While a query waits, none that must let it pass takes more than its reservation: no younger one of its
//     tenant, and none of a tenant that holds more.
//   - Heavy queries together hold at most 7/8 of the pool.
//   - While a heavy query waits, light queries together take at most 1/8. Otherwise they may fill the pool.
//   - While the pool is shared, a tenant takes at most 3/4 of what its class may hold: its share. So others
//     need not wait until one of its queries ends. Even a single query gets no more: each time that others
//     waited for it, they would wait for the next one, too. A query that needs more than the share is told
//     so at once, since its tenant would not get it however long it waits.
//
// There is no deadlock: a query that waits holds nothing, and a query that runs never waits for the pool.
//
// Nor does a query starve. While one waits, younger queries of its tenant and class do not grow, and older
// ones end. So its tenant holds nothing in the end. Then only older queries of such tenants pass it, and
// its share does not hold it back: a reservation above the share is cut, or refused if the query is known
// to need more, also if the pool becomes shared while it waits. No reservation of a heavy query is above
// 7/8. While the first one waits, only older heavy queries grow. They end, so heavy ones leave 7/8. Light
// queries above 1/8 cannot grow and end, so they leave 7/8, too. The release that brings them to 1/8 makes
// the reservation before another query can charge. No reservation of a light query is above 1/64. While the
// first one waits, only older light queries grow. They end, so light ones leave 1/8, of which heavy ones
// take nothing.
//
// A settled query is the exception (see [Quota.Settle]): it passes all that wait, as its response must not be
// cut. It delays them until it ends.
//
// A charge that waited in the middle of a query would avoid the lost attempts. It was rejected: the query
// would keep its turn, its memory and the files and buffers that it reads, and two of them could wait for
// each other.
type QueryPool struct {
	MaxBytes int64
	// Grain is how much more than it needs a query takes at a time, so that it needs the lock of the pool
	// less often. It should be small compared with MaxBytes/64. 0: the pool counts charges to the byte.
	Grain int64
	// Name is the plural for the holders of the memory in errors; "": the queries that are running.
	Name string
	// Shared reports whether several tenants send queries; nil: one does.
	Shared func() bool

	mu           sync.Mutex
	light, heavy class
	youngest     int64 // the age of the youngest query
}

// class is the light or the heavy queries.
type class struct {
	used    int64
	waiting int
	tenants map[string]*holding // those that hold some or wait
}

// holding is what the queries of a tenant hold, and those that wait, oldest first.
type holding struct {
	used  int64
	queue []*waiting
}

// waiting is a query that waits for a reservation.
type waiting struct {
	tenant string
	age    int64
	// bytes is the reservation; less than least would not do.
	bytes, least int64
	decided      chan struct{} // closed once the bytes are reserved or, if there are none, refused
}

// of returns what a tenant holds; it may be nothing.
func (c *class) of(tenant string) int64 {
	if h := c.tenants[tenant]; h != nil {
		return h.used
	}
	return 0
}

// change changes what the queries of a tenant hold.
func (c *class) change(tenant string, bytes int64) {
	if bytes != 0 {
		c.used += bytes
		c.holding(tenant).used += bytes
		c.forget(tenant)
	}
}

func (c *class) holding(tenant string) *holding {
	h := c.tenants[tenant]
	if h == nil {
		if h = new(holding); c.tenants == nil {
			c.tenants = make(map[string]*holding)
		}
		c.tenants[tenant] = h
	}
	return h
}

// forget removes a tenant that holds nothing and does not wait.
func (c *class) forget(tenant string) {
	if h := c.tenants[tenant]; h.used == 0 && len(h.queue) == 0 {
		delete(c.tenants, tenant)
	}
}

func (c *class) enqueue(w *waiting) {
	h := c.holding(w.tenant)
	index, _ := slices.BinarySearchFunc(h.queue, w.age, func(w *waiting, age int64) int { return cmp.Compare(w.age, age) })
	h.queue = slices.Insert(h.queue, index, w)
	c.waiting++
}

func (c *class) dequeue(w *waiting) {
	h := c.tenants[w.tenant]
	h.queue = slices.DeleteFunc(h.queue, func(x *waiting) bool { return x == w })
	c.waiting--
	c.forget(w.tenant)
}

// first returns the query that is next, or nil.
func (c *class) first() (first *waiting) {
	if c.waiting == 0 {
		return nil
	}
	for _, h := range c.tenants {
		if len(h.queue) > 0 && (first == nil || c.precedes(h.queue[0], first.tenant, first.age)) {
			first = h.queue[0]
		}
	}
	return first
}

// precedes reports whether a query that waits is in front of one of a tenant and an age.
func (c *class) precedes(w *waiting, tenant string, age int64) bool {
	return cmp.Or(cmp.Compare(c.of(w.tenant), c.of(tenant)), cmp.Compare(w.age, age)) < 0
}

// mustWait reports whether a query that waits is in front of one of a tenant and an age.
func (c *class) mustWait(tenant string, age int64) bool {
	w := c.first()
	return w != nil && age != settledAge && c.precedes(w, tenant, age)
}

// Used returns the bytes that queries hold now or have reserved.
func (p *QueryPool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.light.used + p.heavy.used
}

// mostLight returns the memory of the largest light query.
func (p *QueryPool) mostLight() int64 { return p.MaxBytes / 64 }

// allLight returns the memory of all light queries while a heavy one waits.
func (p *QueryPool) allLight() int64 { return p.MaxBytes / 8 }

// allHeavy returns the memory of all heavy queries.
func (p *QueryPool) allHeavy() int64 { return p.MaxBytes - p.allLight() }

// class returns the class of a query that holds n bytes.
func (p *QueryPool) class(n int64) *class {
	if n <= p.mostLight() {
		return &p.light
	}
	return &p.heavy
}

// resize charges a query of a tenant that held some bytes so that it holds others, and reports whether there
// was room. There always is for fewer bytes. A query without an age gets one.
func (p *QueryPool) resize(tenant string, from, to int64, age *int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *age == 0 {
		p.youngest++
		*age = p.youngest
	}
	if to > from && !p.fits(tenant, from, to, *age) {
		return false
	}
	p.class(from).change(tenant, -from)
	p.class(to).change(tenant, to)
	p.grant()
	return true
}

// fits reports whether a query of a tenant and an age may grow. The caller holds mu.
func (p *QueryPool) fits(tenant string, from, to, age int64) bool {
	c := p.class(to)
	if c.mustWait(tenant, age) {
		return false
	}
	most, used, all := p.MaxBytes, c.used+to, c.of(tenant)+to
	if p.class(from) == c {
		used, all = used-from, all-from
	}
	switch {
	case c == &p.heavy:
		most = p.allHeavy()
	case p.heavy.waiting > 0 && age != settledAge:
		most = p.allLight()
	}
	if age != settledAge && p.shared() && all > share(most) {
		return false
	}
	return used <= most && p.light.used+p.heavy.used-from+to <= p.MaxBytes
}

func (p *QueryPool) shared() bool { return p.Shared != nil && p.Shared() }

// share returns what a tenant gets of what a class may hold, while the pool is shared.
func share(most int64) int64 { return most - most/4 }

// largest returns the memory of the largest query: what heavy ones may hold, or the share of a tenant.
func (p *QueryPool) largest() int64 {
	if p.shared() {
		return share(p.allHeavy())
	}
	return p.allHeavy()
}

// grant makes the reservations for which there is room, and refuses those that will never fit. The caller
// holds mu.
func (p *QueryPool) grant() {
	for _, c := range []*class{&p.heavy, &p.light} { // without heavy waiters, light ones have more room
		for w := c.first(); w != nil; w = c.first() {
			if w.bytes = min(w.bytes, p.largest()); w.bytes < w.least {
				w.bytes = 0
			} else if !p.fits(w.tenant, 0, w.bytes, w.age) {
				break
			}
			c.change(w.tenant, w.bytes)
			c.dequeue(w)
			close(w.decided)
		}
	}
}

// Await waits for another attempt of a query whose attempt q has ended with an error: the pool refused a
// charge. It releases q, reserves memory and returns the quota of the next attempt. The error is that of the
// context, or of class [ErrLimit] if the query needs more memory than the pool has for it, or of class
// [ErrTransient] if its tenant has less for it as long as others send queries.
func (p *QueryPool) Await(ctx context.Context, q *Quota, ended error) (*Quota, error) {
	refused := q.refused(ended)
	q.Release()
	if refused > p.allHeavy() {
		return nil, fmt.Errorf("%w: the query needs more than %d bytes, the memory that all queries together may hold (a share of --memory); shorten its range or narrow its selectors, or raise --memory",
			ErrLimit, p.allHeavy())
	}
	next := &Quota{Tenant: q.Tenant, MaxSeries: q.MaxSeries, MaxSamples: q.MaxSamples, MaxBytes: q.MaxBytes, MaxRange: q.MaxRange, RangeTenant: q.RangeTenant, Pool: p, age: q.age}
	w := &waiting{tenant: q.Tenant, age: q.age, least: refused, decided: make(chan struct{})}
	w.bytes = min(2*refused, p.mostLight())
	if refused > p.mostLight() {
		w.bytes = min(2*refused, p.allHeavy())
	}
	if q.MaxBytes > 0 {
		w.bytes = min(w.bytes, q.MaxBytes)
	}
	c := p.class(w.bytes)
	p.mu.Lock()
	c.enqueue(w)
	p.grant()
	p.mu.Unlock()
	select {
	case <-w.decided:
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		select {
		case <-w.decided: // meanwhile
			c.change(w.tenant, -w.bytes)
		default:
			c.dequeue(w)
		}
		p.grant()
		return nil, ctx.Err()
	}
	if w.bytes == 0 {
		return nil, p.aboveShare(q.Tenant, refused)
	}
	next.reserved, next.held = w.bytes, w.bytes
	next.room.Store(w.bytes)
	return next, nil
}

// aboveShare refuses a query that needs more than the share of its tenant.
func (p *QueryPool) aboveShare(tenant string, refused int64) error {
	return &LimitError{Limit: "memory", Text: fmt.Sprintf(
		"the query needs at least %d bytes of memory, and its tenant %q may hold %d while other tenants send queries: three quarters of the %d bytes of all large queries (a share of --memory); shorten its range, narrow its selectors, raise --memory, or try again when others send none",
		refused, tenant, share(p.allHeavy()), p.allHeavy())}
}

// hasSpare reports whether optional work of a tenant may take n bytes more: none of its queries waits, nor
// one that it must let pass, and half of the pool stays free. While the pool is shared, a tenant may have
// an eighth in any case, so that it does not read page by page because another one fills the pool.
func (p *QueryPool) hasSpare(tenant string, n, age int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []*class{&p.light, &p.heavy} {
		if h := c.tenants[tenant]; h != nil && len(h.queue) > 0 || c.mustWait(tenant, age) {
			return false
		}
	}
	return p.light.used+p.heavy.used+n <= p.MaxBytes/2 ||
		p.light.of(tenant)+p.heavy.of(tenant)+n <= p.MaxBytes/8 && p.shared()
}

// full returns the error for a charge of n bytes that has no room.
func (p *QueryPool) full(n int64) error {
	name := cmp.Or(p.Name, "queries that are running")
	return &LimitError{Limit: "memory", Text: fmt.Sprintf(
		"the %s hold %d of the %d bytes that all together may hold (their share of --memory), and this one needs %d more; try again later, narrow or shorten the query, or raise --memory",
		name, p.Used(), p.MaxBytes, n)}
}
