package statefile

import (
	"slices"
	"sync"
)

// Acks remembers which batches of which rounds were acknowledged, and which attempts failed: two bits per
// batch and round. Several goroutines may use it.
type Acks struct {
	mu      sync.Mutex
	Batches int // per round
	acked   []Bitmap
	tried   []Bitmap
	full    []int // batches acknowledged per round
}

type Bitmap []uint64

func (b Bitmap) Set(i int) bool {
	old := b[i/64]
	b[i/64] |= 1 << (i % 64)
	return old != b[i/64]
}

func (b Bitmap) Has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }

// NewAcks makes room for rounds of the given number of batches.
func NewAcks(batches int) *Acks { return &Acks{Batches: batches} }

func (a *Acks) grow(round int) {
	for len(a.acked) <= round {
		a.acked = append(a.acked, make(Bitmap, (a.Batches+63)/64))
		a.tried = append(a.tried, make(Bitmap, (a.Batches+63)/64))
		a.full = append(a.full, 0)
	}
}

// Ack notes that a batch was acknowledged.
func (a *Acks) Ack(round, batch int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grow(round)
	if a.acked[round].Set(batch) {
		a.full[round]++
	}
}

// Fail notes that a batch was sent and not acknowledged: none, some or all of it may be stored.
func (a *Acks) Fail(round, batch int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grow(round)
	a.tried[round].Set(batch)
}

// Acked reports whether a batch was acknowledged.
func (a *Acks) Acked(round, batch int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return round < len(a.acked) && a.acked[round].Has(batch)
}

// Tried reports whether an attempt to send a batch failed.
func (a *Acks) Tried(round, batch int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return round < len(a.tried) && a.tried[round].Has(batch)
}

// Rounds returns the number of rounds up to the last one with an attempt.
func (a *Acks) Rounds() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.acked)
}

// any reports whether any batch was acknowledged.
func (a *Acks) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.full, func(n int) bool { return n > 0 })
}

// Whole reports whether every batch of a round was acknowledged.
func (a *Acks) Whole(round int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return round < len(a.full) && a.full[round] == a.Batches
}
