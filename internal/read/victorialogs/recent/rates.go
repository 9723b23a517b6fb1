package recent

import (
	"hash/maphash"
	"sync"
)

// maxRates bounds the rates. Beyond it, all are forgotten.
const maxRates = 4096

// Rates are how dense things were that were counted last, by name. Two names may share one, so a rate is only
// good for a guess. It is safe for concurrent use.
type Rates struct {
	mu   sync.Mutex
	seed maphash.Seed
	of   map[uint64]float64
}

// Get returns the rate of a name, or 0 if it has none.
func (r *Rates) Get(name string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		return 0
	}
	return r.of[maphash.String(r.seed, name)]
}

// Put notes a rate.
func (r *Rates) Put(name string, rate float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= maxRates {
		r.seed, r.of = maphash.MakeSeed(), map[uint64]float64{}
	}
	r.of[maphash.String(r.seed, name)] = rate
}
