package retry

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// budgetShare is the number of repetitions that each request earns, and budgetPerSecond the number that
	// each second earns: without it, requests that wait for a store that is down would wait forever.
	budgetShare, budgetPerSecond = 0.1, 1.0
	// budgetBurst is the most repetitions that are kept for later.
	budgetBurst = 20.0
)

// budget is a token bucket of repetitions.
type budget struct {
	mu     sync.Mutex
	tokens float64
	filled time.Time
}

// earn counts a request.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+budgetShare, budgetBurst)
}

// spend takes a repetition, or returns how long to wait before the next try.
func (b *budget) spend() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if !b.filled.IsZero() {
		b.tokens = min(b.tokens+budgetPerSecond*now.Sub(b.filled).Seconds(), budgetBurst)
	}
	b.filled = now
	if b.tokens >= 1 {
		b.tokens--
		return 0
	}
	return max(time.Duration((1-b.tokens)/budgetPerSecond*float64(time.Second)), time.Millisecond)
}

// await returns once a repetition may be sent, or an error: see [pause].
func (b *budget) await(ctx context.Context) error {
	for {
		wait := b.spend()
		if wait == 0 {
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// errNoTime says that the deadline of a request comes before its next try.
var errNoTime = errors.New("no time is left for a further try")

// pause waits, or returns the error of the context. It returns errNoTime at once if the wait would end after
// the deadline: then the request can still say why it failed.
func pause(ctx context.Context, d time.Duration) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return errNoTime
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
