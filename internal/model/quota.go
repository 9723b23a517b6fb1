package model

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Quota bounds one attempt of a query. A zero limit means none. It may be used by several goroutines.
type Quota struct {
	MaxSeries, MaxSamples, MaxBytes int64
	// Pool bounds the memory of all queries together; nil: no bound.
	Pool *QueryPool

	series, samples atomic.Int64

	mu    sync.Mutex // for the fields below; the pool charges its total without it
	bytes int64
	spare int64 // the part of bytes that TakeSpare has charged
	// reserved is the part of the pool that Await has reserved. The pool counts it even if bytes is less.
	reserved int64
	refused  int64 // the greatest sum that the pool has refused; 0: none
	// age is the pool's number of the query, in the order of first charges; 0: none yet, settledAge: see Settle.
	age int64
}

const settledAge = -1

// TakeSeries charges series and the bytes of their labels. Its error is of class [ErrLimit] and names the
// limit.
func (q *Quota) TakeSeries(n, labelBytes int64) error {
	if got := q.series.Add(n); q.MaxSeries > 0 && got > q.MaxSeries {
		return fmt.Errorf("%w: the query selects more than %d series (query.max-series); narrow its selectors", ErrLimit, q.MaxSeries)
	}
	return q.TakeBytes(labelBytes)
}

// TakeSamples charges samples and 16 bytes of memory for each.
func (q *Quota) TakeSamples(n int64) error {
	if got := q.samples.Add(n); q.MaxSamples > 0 && got > q.MaxSamples {
		return fmt.Errorf("%w: the query reads more than %d samples (query.max-samples); shorten its range or narrow its selectors", ErrLimit, q.MaxSamples)
	}
	return q.TakeBytes(16 * n)
}

// Charge is a snapshot of the charges of a query.
type Charge struct{ series, samples, bytes int64 }

// Charged returns the charges of the query until now.
func (q *Quota) Charged() Charge {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Charge{q.series.Load(), q.samples.Load(), q.bytes}
}

// Revert takes back all charges since a snapshot, for an attempt whose results are dropped. The attempt must
// have ended, so that nothing charges meanwhile.
func (q *Quota) Revert(to Charge) {
	q.series.Store(to.series)
	q.samples.Store(to.samples)
	q.mu.Lock()
	defer q.mu.Unlock()
	_ = q.charge(to.bytes - q.bytes) // giving back does not fail
}

// TakeBytes charges memory; a negative n gives it back. With an error nothing is charged. The error is of
// class [ErrLimit] if the query is too large, and of class [ErrTransient] if all queries together are. After
// the latter, [QueryPool.Await] may give the query another attempt.
func (q *Quota) TakeBytes(n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.charge(n)
	if full, ok := err.(*LimitError); ok {
		q.refused = max(q.refused, q.bytes+n)
		return full
	}
	return err
}

// charge charges both the query and the pool, or neither.
func (q *Quota) charge(n int64) error {
	sum := q.bytes + n
	if n > 0 && q.MaxBytes > 0 && sum > q.MaxBytes {
		return fmt.Errorf("%w: the query needs more than %d bytes of memory (query.max-bytes); shorten its range or narrow its selectors", ErrLimit, q.MaxBytes)
	}
	if p := q.Pool; p != nil {
		from, to := max(q.bytes, q.reserved), max(sum, q.reserved)
		if from != to && !p.resize(from, to, &q.age) {
			return p.full(n)
		}
	}
	q.bytes = sum
	return nil
}

// TakeSpare charges memory for optional work, such as prefetching, and reports whether it did. The total of
// spare memory is at most 1/share of MaxBytes. The charge must leave the query a quarter of MaxBytes. Beyond
// the reservation of the query, it must also leave half of the pool free. GiveSpare gives the memory back.
func (q *Quota) TakeSpare(n, share int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Pool != nil && q.bytes+n > q.reserved && !q.Pool.hasSpare(n) {
		return false
	}
	if q.MaxBytes > 0 && (q.bytes+n > q.MaxBytes/4*3 || q.spare+n > q.MaxBytes/share) {
		return false
	}
	if q.charge(n) != nil {
		return false
	}
	q.spare += n
	return true
}

// GiveSpare gives back memory that TakeSpare has charged.
func (q *Quota) GiveSpare(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare -= n
	_ = q.charge(-n) // giving back does not fail
}

// Refused reports whether the pool had no room for a charge of the query.
func (q *Quota) Refused() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refused > 0
}

// Settle says that the query can have no further attempt, because a part of its result has been sent. From
// now on it is older than all queries that wait, so it is refused only if the pool has no room.
func (q *Quota) Settle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.age = settledAge
}

// Release gives the memory of the query and its reservation back to the pool. The query must be over.
func (q *Quota) Release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if held := max(q.bytes, q.reserved); q.Pool != nil && held > 0 {
		q.Pool.resize(held, 0, &q.age)
	}
	q.bytes, q.reserved = 0, 0
}
