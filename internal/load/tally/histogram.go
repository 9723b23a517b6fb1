package tally

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Durations counts durations in fixed buckets: 32 for each doubling of microseconds, so that a quantile is at
// most 3 % off. It may be used by several goroutines.
type Durations struct {
	buckets [histogramBuckets]atomic.Uint64
	max     atomic.Int64
}

const (
	subBits          = 5
	histogramBuckets = (40 - subBits) << subBits // up to 2^39 µs, six days
)

// Observe counts one duration.
func (h *Durations) Observe(d time.Duration) {
	storeMax(&h.max, int64(d))
	h.buckets[bucketOf(uint64(max(0, d.Microseconds())))].Add(1)
}

// bucketOf numbers the buckets: one per microsecond at first, then 32 per doubling.
func bucketOf(us uint64) int {
	if us < 1<<subBits {
		return int(us)
	}
	shift := bits.Len64(us) - 1 - subBits
	return min(histogramBuckets-1, (shift+1)<<subBits+int(us>>shift)-1<<subBits)
}

// upperBound returns the largest duration of a bucket.
func upperBound(bucket int) time.Duration {
	if bucket < 1<<subBits {
		return time.Duration(bucket) * time.Microsecond
	}
	shift := bucket>>subBits - 1
	return time.Duration(uint64(bucket&(1<<subBits-1)+1<<subBits+1)<<shift-1) * time.Microsecond
}

// Quantile returns the duration below which a share q of the observations lies.
func (h *Durations) Quantile(q float64) time.Duration {
	var total uint64
	for i := range h.buckets {
		total += h.buckets[i].Load()
	}
	rank := uint64(q * float64(total))
	var seen uint64
	for i := range h.buckets {
		if seen += h.buckets[i].Load(); seen > rank {
			return min(upperBound(i), h.Max())
		}
	}
	return h.Max()
}

// Max returns the longest duration.
func (h *Durations) Max() time.Duration { return time.Duration(h.max.Load()) }

func storeMax(a *atomic.Int64, v int64) {
	for {
		old := a.Load()
		if v <= old || a.CompareAndSwap(old, v) {
			return
		}
	}
}
