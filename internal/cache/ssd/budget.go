package ssd

import (
	"sync/atomic"
	"time"
)

// budget bounds what the tier writes in a day. A day's bytes can be written at once, so that an empty tier
// fills quickly. One goroutine uses it; others may ask what is left.
type budget struct {
	daily int64
	left  atomic.Int64
	at    time.Time
}

// refill adds what the time since the last call has brought.
func (b *budget) refill(now time.Time) {
	elapsed := now.Sub(b.at)
	gained := int64(float64(b.daily) * elapsed.Hours() / 24)
	if elapsed < 0 { // the clock was set back
		b.at = now
	}
	if gained <= 0 {
		return
	}
	b.at = now
	b.left.Store(min(b.daily, b.left.Load()+gained))
}

// spend takes bytes and reports whether there were as many.
func (b *budget) spend(bytes int64, now time.Time) bool {
	b.refill(now)
	if b.left.Load() < bytes {
		return false
	}
	b.left.Add(-bytes)
	return true
}

// spendAnyway takes bytes that are written in any case.
func (b *budget) spendAnyway(bytes int64) { b.left.Add(-bytes) }
