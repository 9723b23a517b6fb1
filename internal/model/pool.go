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
// and queries have an age, the order of their first charges, which they keep over all attempts:
//
//   - Only the oldest query of a queue gets a reservation.
//   - While a query waits, no younger one of its class takes more than its reservation.
//   - Heavy queries together hold at most 7/8 of the pool.
//   - While a heavy query waits, light queries together take at most 1/8. Otherwise they may fill the pool.
//
// There is no deadlock: a query that waits holds nothing, and a query that runs never waits for the pool.
//
// Nor does a query starve. No reservation of a heavy query is above 7/8. While the oldest one waits, only
// older heavy queries grow. They end, so heavy ones leave 7/8. Light queries above 1/8 cannot grow and end,
// so they leave 7/8, too. The release that brings them to 1/8 makes the reservation before another query can
// charge. No reservation of a light query is above 1/64. While the oldest one waits, only older light queries
// grow. They end, so light ones leave 1/8, of which heavy ones take nothing.
//
// A settled query is the exception (see [Quota.Settle]): it passes all that wait, as its response must not be
// cut. It delays them until it ends.
//
// A charge that waited in the middle of a query would avoid the lost attempts. It was rejected: the query
// would keep its turn, its memory and the files and buffers that it reads, and two of them could wait for
// each other.
type QueryPool struct {
	MaxBytes int64
	// Grain is how much more than it needs a query takes at a time, so that it needs the lock of the pool less
	// often. It should be small compared with MaxBytes/64. 0: the pool counts charges to the byte.
	Grain int64
	// Name is the plural for the holders of the memory in errors; "": the queries that are running.
	Name string

	mu           sync.Mutex
	light, heavy class
	youngest     int64 // the age of the youngest query
}

// class is the light or the heavy queries.
type class struct {
	used  int64
	queue []*waiting // by age, oldest first
}

// waiting is a query that waits for a reservation.
type waiting struct {
	age, bytes int64
	granted    chan struct{} // closed once the bytes are reserved
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

// resize charges a query that held some bytes so that it holds others, and reports whether there was room.
// There always is for fewer bytes. A query without an age gets one.
func (p *QueryPool) resize(from, to int64, age *int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *age == 0 {
		p.youngest++
		*age = p.youngest
	}
	if to > from && !p.fits(from, to, *age) {
		return false
	}
	p.class(from).used -= from
	p.class(to).used += to
	p.grant()
	return true
}

// fits reports whether a query of an age may grow. The caller holds mu.
func (p *QueryPool) fits(from, to, age int64) bool {
	c := p.class(to)
	if len(c.queue) > 0 && c.queue[0].age < age {
		return false
	}
	most, used := p.MaxBytes, c.used+to
	if p.class(from) == c {
		used -= from
	}
	switch {
	case c == &p.heavy:
		most = p.allHeavy()
	case len(p.heavy.queue) > 0 && age != settledAge:
		most = p.allLight()
	}
	return used <= most && p.light.used+p.heavy.used-from+to <= p.MaxBytes
}

// grant makes the reservations for which there is room. The caller holds mu.
func (p *QueryPool) grant() {
	for _, c := range []*class{&p.heavy, &p.light} { // without heavy waiters, light ones have more room
		for len(c.queue) > 0 && p.fits(0, c.queue[0].bytes, c.queue[0].age) {
			c.used += c.queue[0].bytes
			close(c.queue[0].granted)
			c.queue = slices.Delete(c.queue, 0, 1)
		}
	}
}

// Await waits for another attempt of a query whose attempt q has ended because the pool refused a charge. It
// releases q, reserves memory and returns the quota of the next attempt. The error is that of the context, or
// of class [ErrLimit] if the query needs more memory than the pool has for it.
func (p *QueryPool) Await(ctx context.Context, q *Quota) (*Quota, error) {
	q.Release()
	if q.refused > p.allHeavy() {
		return nil, fmt.Errorf("%w: the query needs more than %d bytes, the memory that all queries together may hold (a share of --memory); shorten its range or narrow its selectors, or raise --memory",
			ErrLimit, p.allHeavy())
	}
	next := &Quota{MaxSeries: q.MaxSeries, MaxSamples: q.MaxSamples, MaxBytes: q.MaxBytes, Pool: p, age: q.age}
	next.reserved = min(2*q.refused, p.mostLight())
	if q.refused > p.mostLight() {
		next.reserved = min(2*q.refused, p.allHeavy())
	}
	if q.MaxBytes > 0 {
		next.reserved = min(next.reserved, q.MaxBytes)
	}
	next.held = next.reserved
	next.room.Store(next.held)
	w := &waiting{age: q.age, bytes: next.reserved, granted: make(chan struct{})}
	c := p.class(w.bytes)
	p.mu.Lock()
	index, _ := slices.BinarySearchFunc(c.queue, w.age, func(w *waiting, age int64) int { return cmp.Compare(w.age, age) })
	c.queue = slices.Insert(c.queue, index, w)
	p.grant()
	p.mu.Unlock()
	select {
	case <-w.granted:
		return next, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.granted: // meanwhile
		c.used -= w.bytes
	default:
		c.queue = slices.DeleteFunc(c.queue, func(x *waiting) bool { return x == w })
	}
	p.grant()
	return nil, ctx.Err()
}

// hasSpare reports whether optional work may take n bytes more: none waits, and half of the pool stays free.
func (p *QueryPool) hasSpare(n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.light.queue)+len(p.heavy.queue) == 0 && p.light.used+p.heavy.used+n <= p.MaxBytes/2
}

// full returns the error for a charge of n bytes that has no room.
func (p *QueryPool) full(n int64) error {
	name := cmp.Or(p.Name, "queries that are running")
	return &LimitError{Limit: "memory", Text: fmt.Sprintf(
		"the %s hold %d of the %d bytes that all together may hold (their share of --memory), and this one needs %d more; try again later, narrow or shorten the query, or raise --memory",
		name, p.Used(), p.MaxBytes, n)}
}
