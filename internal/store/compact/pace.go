package compact

import (
	"context"
	"sync"
	"time"
)

// pacer bounds the bytes per second of all reads and writes. The unused share of up to a second may be used
// at once.
type pacer struct {
	rate int64 // 0: no bound

	mu   sync.Mutex
	free time.Time // when all bytes taken so far are within the rate
}

// wait waits until n more bytes may be moved, or until the context is done.
func (p *pacer) wait(ctx context.Context, n int64) error {
	if p.rate == 0 {
		return ctx.Err()
	}
	p.mu.Lock()
	now := time.Now()
	if earliest := now.Add(-time.Second); p.free.Before(earliest) {
		p.free = earliest
	}
	p.free = p.free.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	wait := p.free.Sub(now)
	p.mu.Unlock()
	if wait <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
