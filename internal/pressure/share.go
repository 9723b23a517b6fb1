package pressure

import (
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// every is how often waits are looked at.
	every = 100 * time.Millisecond
	// tooMany is how many goroutines for each processor may wait for one, on average. Waits of work that gives
	// its processor up at once are too short to count.
	tooMany = 0.5
	// sampled is of how many waits Go's scheduler measures one.
	sampled = 8
	// calm is for how long waits must have been short before a share grows. It doubles, up to mostCalm, each
	// time that growth was followed by pressure within soon: else a share that is right would be left again
	// and again.
	calm     = 200 * time.Millisecond
	mostCalm = 32 * time.Second
	soon     = time.Second
	// lately is the longest time of which the waits count.
	lately = 5 * time.Second
)

// Share is how many of something one user may take. It is safe for concurrent use.
type Share struct {
	least, most int
	processors  float64
	waited      func() time.Duration
	now         func() time.Time

	mu      sync.Mutex
	of      int
	at      time.Time
	counted time.Duration
	calm    time.Duration
	// changed is when the share has changed last, or should have shrunk; grew says that it has grown then.
	changed time.Time
	grew    bool
	// wanted says that more was asked for since the last change.
	wanted bool
}

// New returns a share between two numbers. It begins with the smaller one, since the first burst of work
// comes before its pressure is seen.
func New(least, most int) *Share {
	return newShare(least, most, Processors(), scheduler(), time.Now)
}

func newShare(least, most, processors int, waited func() time.Duration, now func() time.Time) *Share {
	least = max(least, 1)
	most = max(most, least)
	return &Share{least: least, most: most, processors: float64(processors), waited: waited, now: now, of: least, calm: calm}
}

// Allows reports whether a user that has so many may take one more. The share halves under pressure. It
// doubles when it was too small for some time without pressure.
func (s *Share) Allows(has int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if has < s.nowLocked() {
		return true
	}
	s.wanted = true
	return false
}

func (s *Share) nowLocked() int {
	now := s.now()
	if now.Sub(s.at) < every {
		return s.of
	}
	waited := s.waited()
	waiting := float64(waited-s.counted) / float64(now.Sub(s.at)) // on average
	if now.Sub(s.at) > lately {
		waiting = 0 // the average of a long time says nothing about now
	}
	s.at, s.counted = now, waited
	since := now.Sub(s.changed)
	switch {
	case waiting > tooMany*s.processors:
		if s.grew && since <= soon {
			s.calm = min(2*s.calm, mostCalm)
		}
		s.of, s.changed, s.grew, s.wanted = max(s.of/2, s.least), now, false, false
	case since >= s.calm && s.of < s.most && s.wanted:
		if s.grew { // it has grown before, and no pressure followed
			s.calm = calm
		}
		s.of, s.changed, s.grew, s.wanted = min(2*s.of, s.most), now, true, false
	}
	return s.of
}

// scheduler returns a function that reads how long all goroutines have waited for a processor.
func scheduler() func() time.Duration {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	return func() time.Duration {
		metrics.Read(sample)
		if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
			return 0 // a version of Go without it
		}
		h, seconds := sample[0].Value.Float64Histogram(), 0.0
		for i, n := range h.Counts {
			if n > 0 && i > 0 { // the first bucket begins at minus infinity
				seconds += float64(n) * h.Buckets[i]
			}
		}
		return time.Duration(sampled * seconds * 1e9)
	}
}
