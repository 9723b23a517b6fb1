package model

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// QueryPool is the memory that all queries may hold together. It is charged through their quotas.
//
// A query does not know how much memory it needs, so it charges as it goes. When the pool has no room for a
// charge, the query fails, gives back everything and calls Await. Await reserves twice the memory that the
// pool refused, once there is room, and the query runs from its beginning. It cannot be refused within its
// reservation. Twice as much every time makes all lost attempts together as large as the one that succeeds.
//
// Queries have an age, the order of their first charges, which they keep over all attempts:
//
//   - Only the oldest waiting query gets a reservation.
//   - While a query waits, no younger one takes more than its reservation.
//   - The last eighth of the pool is for light queries, which hold at most 1/64 of it. The rules above do not
//     apply to them.
//
// There is no deadlock: a query that waits holds nothing, and a query that runs never waits for the pool. Nor
// does a query starve: the oldest that waits competes only with older ones that run and with light queries.
// The former end, and no reservation is larger than the part of the pool that light queries leave.
//
// A charge that waited in the middle of a query would avoid the lost attempts. It was rejected: the query
// would keep its turn, its memory and the files and buffers that it reads, and two of them could wait for
// each other.
type QueryPool struct {
	MaxBytes int64

	used atomic.Int64
	ages atomic.Int64 // the age of the youngest query

	mu    sync.Mutex
	queue []*waiting // by age, oldest first
	// waits is the length of the queue, and oldest the age of the first query in it that is not light; 0:
	// none. They are written under mu.
	waits, oldest atomic.Int64
}

// waiting is a query that waits for a reservation.
type waiting struct {
	age, bytes int64
	granted    chan struct{} // closed once the bytes are reserved
}

// Used returns the bytes that queries hold now or have reserved.
func (p *QueryPool) Used() int64 { return p.used.Load() }

// light returns the memory of the largest light query.
func (p *QueryPool) light() int64 { return p.MaxBytes / 64 }

// heavy returns the memory of all queries that are not light.
func (p *QueryPool) heavy() int64 { return p.MaxBytes - p.MaxBytes/8 }

// take charges n bytes more to a query of an age, which then holds sum, and reports whether there was room.
func (p *QueryPool) take(n, sum, age int64) bool {
	if sum <= p.light() {
		return p.add(n, p.MaxBytes)
	}
	if oldest := p.oldest.Load(); oldest > 0 && oldest < age {
		return false
	}
	return p.add(n, p.heavy())
}

// add charges n bytes unless that makes more than most.
func (p *QueryPool) add(n, most int64) bool {
	for {
		used := p.used.Load()
		if used+n > most {
			return false
		}
		if p.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// giveBack takes a charge back.
func (p *QueryPool) giveBack(n int64) {
	p.used.Add(-n)
	// Await adds to waits before it looks for room, so one of the two sees the other.
	if p.waits.Load() > 0 {
		p.mu.Lock()
		p.grant()
		p.mu.Unlock()
	}
}

// grant makes the reservations for which there is room. The caller holds mu.
func (p *QueryPool) grant() {
	oldest := int64(0)
	p.queue = slices.DeleteFunc(p.queue, func(w *waiting) bool {
		most := p.MaxBytes
		if w.bytes > p.light() {
			if oldest > 0 {
				return false
			}
			most = p.heavy()
		}
		if p.add(w.bytes, most) {
			close(w.granted)
			return true
		}
		if w.bytes > p.light() {
			oldest = w.age
		}
		return false
	})
	p.oldest.Store(oldest)
	p.waits.Store(int64(len(p.queue)))
}

// Await waits for another attempt of a query whose attempt q has ended because the pool refused a charge. It
// releases q, reserves memory and returns the quota of the next attempt. The error is that of the context, or
// of class [ErrLimit] if the query needs more memory than the pool has for it.
func (p *QueryPool) Await(ctx context.Context, q *Quota) (*Quota, error) {
	q.Release()
	next := &Quota{MaxSeries: q.MaxSeries, MaxSamples: q.MaxSamples, MaxBytes: q.MaxBytes, Pool: p, age: q.age}
	next.reserved = q.refused
	if q.refused > p.light() {
		next.reserved = min(2*q.refused, p.heavy())
		if q.MaxBytes > 0 {
			next.reserved = min(next.reserved, q.MaxBytes)
		}
	}
	if q.refused > p.heavy() {
		return nil, fmt.Errorf("%w: the query needs more than %d bytes, the memory that all queries together may hold (a share of --memory); shorten its range or narrow its selectors, or raise --memory",
			ErrLimit, p.heavy())
	}
	w := &waiting{age: q.age, bytes: next.reserved, granted: make(chan struct{})}
	p.mu.Lock()
	index, _ := slices.BinarySearchFunc(p.queue, w.age, func(w *waiting, age int64) int { return int(w.age - age) })
	p.queue = slices.Insert(p.queue, index, w)
	p.waits.Store(int64(len(p.queue)))
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
		p.used.Add(-w.bytes)
	default:
		p.queue = slices.DeleteFunc(p.queue, func(x *waiting) bool { return x == w })
	}
	p.grant()
	return nil, ctx.Err()
}

// full returns the error for a charge of n bytes that has no room.
func (p *QueryPool) full(n int64) error {
	return &LimitError{Limit: "memory", Text: fmt.Sprintf(
		"the queries that are running hold %d of the %d bytes that all together may hold (a share of --memory), and this one needs %d more; try again later, narrow the query, or raise --memory",
		p.used.Load(), p.MaxBytes, n)}
}
