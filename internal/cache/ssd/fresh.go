package ssd

import (
	"context"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/cache"
)

// fresh bounds what the tier takes in a day of new blocks. No query has asked for these pages yet, and what
// is written first is dropped first, so without a bound they would push out pages that queries want.
type fresh struct {
	mu     sync.Mutex
	budget budget
}

func (f *fresh) begin(daily int64, now time.Time) {
	f.budget = budget{daily: daily, at: now}
	f.budget.left.Store(daily)
}

func (f *fresh) spend(bytes int64, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.budget.spend(bytes, now)
}

// freshPause is the time between two looks at the queue. The goroutine that writes does not say when it has
// made room, since queries never wait for it.
const freshPause = 2 * time.Millisecond

// Fresh is [cache.Secondary.Fresh]. Half of the queue is left to pages that queries want.
func (s *Store) Fresh(ctx context.Context, k cache.Key, value []byte) bool {
	n := int64(len(value))
	switch {
	case !s.health.writable():
		return false
	case n == 0 || len(value) > s.largestValue() || n > s.maxQueued/2 || keyBytes(k) > maxKeyBytes:
		s.m.refused(refusedSize)
		return true
	}
	w := write{offer: offer{k, value}, hash: k.Hash()}
	if _, ok := s.index.get(w.hash); ok {
		return true
	}
	if !s.fresh.spend(n, s.o.Now()) {
		return false
	}
	for s.queued.Load()+n > s.maxQueued/2 {
		select {
		case <-ctx.Done():
			return false
		case <-s.stop:
			return false
		case <-time.After(freshPause):
		}
	}
	s.queued.Add(n)
	select {
	case s.queue <- w:
		s.m.fresh.Add(float64(n))
		return true
	case <-ctx.Done():
	case <-s.stop:
	}
	s.queued.Add(-n)
	return false
}
