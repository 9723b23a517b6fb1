package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	common "github.com/prometheus/common/model"
)

// Quota bounds one attempt of a query. A zero limit means none. It may be used by several goroutines.
//
// It takes memory from the pool in grains and keeps at most four of them that are not charged. Within these,
// a charge is one atomic operation.
type Quota struct {
	// Tenant is whose query it is. Tenants share the pool.
	Tenant string

	MaxSeries, MaxSamples, MaxBytes int64
	// MaxRange bounds the time from the oldest to the newest row that a query asks for.
	MaxRange time.Duration
	// RangeTenant is the tenant whose limit MaxRange is; "": Tenant.
	RangeTenant string
	// Pool bounds the memory of all queries together; nil: no bound.
	Pool *QueryPool

	series, samples atomic.Int64

	// room is the part of held that is not charged. It is negative at no time. Most charges and returns
	// change nothing else, so that a query over many small series takes no lock for each.
	room atomic.Int64

	mu    sync.Mutex // for the fields below
	held  int64      // the memory that the query has from the pool: what is charged, and room
	spare int64      // the part of the charges that TakeSpare has made
	// reserved is the part of held that Await has reserved. It is kept even if less is charged.
	reserved int64
	// age is the pool's number of the query, in the order of first charges; 0: none yet, settledAge: see
	// Settle.
	age int64
	// asked is the range of all rows that the query has asked for; it counts if hasAsked is set.
	asked    TimeRange
	hasAsked bool
}

const settledAge = -1

// TakeSeries charges series and the bytes of their labels. Its error is of class [ErrLimit] and names the
// limit.
func (q *Quota) TakeSeries(n, labelBytes int64) error {
	if err := q.checkSeries(q.series.Add(n)); err != nil {
		return err
	}
	return q.TakeBytes(labelBytes)
}

// CheckSeries returns the error of [Quota.TakeSeries] if n more series would be too many, and charges
// nothing. A source that is certain of their number calls it before it reads them.
func (q *Quota) CheckSeries(n int64) error { return q.checkSeries(q.series.Load() + n) }

func (q *Quota) checkSeries(all int64) error {
	if q.MaxSeries <= 0 || all <= q.MaxSeries {
		return nil
	}
	return &readError{fmt.Sprintf("the query selects more than %d series (query.max-series); narrow its selectors", q.MaxSeries)}
}

// TakeSamples charges samples and 16 bytes of memory for each.
func (q *Quota) TakeSamples(n int64) error {
	if got := q.samples.Add(n); q.MaxSamples > 0 && got > q.MaxSamples {
		return &readError{fmt.Sprintf("the query reads more than %d samples (query.max-samples); shorten its range or narrow its selectors", q.MaxSamples)}
	}
	return q.TakeBytes(16 * n)
}

// Uncount takes back series and samples that are read once more, but not their memory.
func (q *Quota) Uncount(series, samples int64) {
	q.series.Add(-series)
	q.samples.Add(-samples)
}

// TakeRange notes that the query asks for the rows of a range. Its error is of class [ErrLimit], names the
// limit and the tenant, and says how much time all ranges together cover.
func (q *Quota) TakeRange(r TimeRange) error {
	if q.MaxRange <= 0 || r.Min > r.Max {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hasAsked {
		r.Min, r.Max = min(r.Min, q.asked.Min), max(r.Max, q.asked.Max)
	}
	q.asked, q.hasAsked = r, true
	span := r.Max - r.Min
	if span < 0 { // beyond int64
		span = math.MaxInt64
	}
	if span <= int64(q.MaxRange) {
		return nil
	}
	return fmt.Errorf("%w: the query asks for rows of %s, with the time that its selectors look back, and a query of tenant %s may ask for %s (query.max-range); shorten its range",
		ErrLimit, roundedUp(time.Duration(span)), cmp.Or(q.RangeTenant, q.Tenant), common.Duration(q.MaxRange))
}

// roundedUp returns a time of at least a second without its fraction, which would hide by how much it is
// too long.
func roundedUp(d time.Duration) common.Duration {
	if d >= time.Second && d < math.MaxInt64-time.Second {
		d = (d + time.Second - 1).Truncate(time.Second)
	}
	return common.Duration(d)
}

// Charge is a snapshot of the charges of a query.
type Charge struct{ series, samples, bytes int64 }

// Bytes returns the memory that was charged.
func (c Charge) Bytes() int64 { return c.bytes }

// Charged returns the charges of the query until now.
func (q *Quota) Charged() Charge {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Charge{q.series.Load(), q.samples.Load(), q.charged()}
}

// charged returns the bytes that are charged. The caller holds mu.
func (q *Quota) charged() int64 { return q.held - q.room.Load() }

// Revert takes back all charges since a snapshot, for an attempt whose results are dropped. The attempt must
// have ended, so that nothing charges meanwhile.
func (q *Quota) Revert(to Charge) {
	q.series.Store(to.series)
	q.samples.Store(to.samples)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.giveLocked(q.charged() - to.bytes)
}

// TakeBytes charges memory; a negative n gives it back. With an error nothing is charged. The error is of
// class [ErrLimit] if the query is too large, and of class [ErrTransient] if all queries together are. After
// the latter, [QueryPool.Await] may give the query another attempt.
func (q *Quota) TakeBytes(n int64) error {
	if n <= 0 {
		q.give(-n)
		return nil
	}
	if q.takeRoom(n) {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.takeLocked(n)
	if full, ok := err.(*LimitError); ok {
		return &fullError{full, q, q.charged() + n}
	}
	return err
}

// fullError says that the pool has no room for a charge of a query.
type fullError struct {
	*LimitError
	of  *Quota
	sum int64 // with the charge
}

func (e *fullError) Unwrap() error { return e.LimitError }

// readError refuses series or samples beyond what one query may read.
type readError struct{ text string }

func (e *readError) Error() string { return fmt.Sprintf("%v: %s", ErrLimit, e.text) }

func (e *readError) Unwrap() error { return ErrLimit }

// ReadsTooMuch reports whether an error says that the query would read more series or samples than one query
// may. However it is evaluated, it would.
func ReadsTooMuch(err error) bool {
	var e *readError
	return errors.As(err, &e)
}

// memoryError refuses memory beyond what one query may have.
type memoryError struct{ limit int64 }

func (e *memoryError) Error() string {
	return fmt.Sprintf("%v: the query needs more than %d bytes of memory (query.max-bytes); shorten its range or narrow its selectors", ErrLimit, e.limit)
}

func (e *memoryError) Unwrap() error { return ErrLimit }

// NeedsMoreMemory reports whether an error of [Quota.TakeBytes] says that the query needs more than one query
// may have.
func NeedsMoreMemory(err error) bool {
	var e *memoryError
	return errors.As(err, &e)
}

// takeRoom charges n bytes that the query has already, and reports whether it had them.
func (q *Quota) takeRoom(n int64) bool {
	for {
		room := q.room.Load()
		if room < n {
			return false
		}
		if q.room.CompareAndSwap(room, room-n) {
			return true
		}
	}
}

// takeLocked charges n bytes, and takes from the pool what the query lacks.
func (q *Quota) takeLocked(n int64) error {
	for !q.takeRoom(n) {
		room := q.room.Load()
		if q.MaxBytes > 0 && q.held-room+n > q.MaxBytes {
			return &memoryError{q.MaxBytes}
		}
		lack := n - room
		if lack <= 0 {
			continue // some was given back meanwhile
		}
		more := lack + q.grain()
		if q.MaxBytes > 0 {
			more = max(lack, min(more, q.MaxBytes-q.held))
		}
		if !q.hold(q.held + more) {
			if more = lack; !q.hold(q.held + more) {
				return q.Pool.full(n)
			}
		}
		q.room.Add(more)
	}
	return nil
}

// hold changes what the query has from the pool, and reports whether the pool had room.
func (q *Quota) hold(n int64) bool {
	if q.Pool != nil && !q.Pool.resize(q.Tenant, q.held, n, &q.age) {
		return false
	}
	q.held = n
	return true
}

// grain is how much more than it needs the query takes from the pool, and how much it keeps.
func (q *Quota) grain() int64 {
	if q.Pool == nil {
		return 0
	}
	return q.Pool.Grain
}

// give takes back a charge of n bytes.
func (q *Quota) give(n int64) {
	if q.room.Add(n) <= 4*q.grain() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trim()
}

// giveLocked takes back a charge of n bytes.
func (q *Quota) giveLocked(n int64) {
	q.room.Add(n)
	q.trim()
}

// trim gives room beyond a grain back to the pool, except what is reserved.
func (q *Quota) trim() {
	for {
		room := q.room.Load()
		excess := min(room-q.grain(), q.held-q.reserved)
		if excess <= 0 {
			return
		}
		if q.room.CompareAndSwap(room, room-excess) {
			q.hold(q.held - excess) // there is always room for less
			return
		}
	}
}

// TakeSpare charges memory for optional work, such as prefetching, and reports whether it did. The total of
// spare memory is at most 1/share of MaxBytes. The charge must leave the query a quarter of MaxBytes. Beyond
// the reservation of the query, it must also leave half of the pool free. GiveSpare gives the memory back.
func (q *Quota) TakeSpare(n, share int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	charged := q.charged()
	if q.Pool != nil && charged+n > q.reserved && !q.Pool.hasSpare(q.Tenant, n, q.age) {
		return false
	}
	if q.MaxBytes > 0 && (charged+n > q.MaxBytes/4*3 || q.spare+n > q.MaxBytes/share) {
		return false
	}
	if q.takeLocked(n) != nil {
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
	q.giveLocked(n)
}

// Refused reports whether an error is that the pool had no room for a charge of the query. Most refusals end
// an attempt. Others are coped with, and do not count when it fails for another reason.
func (q *Quota) Refused(err error) bool { return q.refused(err) > 0 }

// refused returns the sum of charges that the pool refused with an error, or 0.
func (q *Quota) refused(err error) int64 {
	var full *fullError
	if errors.As(err, &full) && full.of == q {
		return full.sum
	}
	return 0
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
	if q.held > 0 {
		q.hold(0)
	}
	q.reserved = 0
	q.room.Store(0)
}
