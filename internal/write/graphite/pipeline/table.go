package pipeline

import (
	"sync"

	"github.com/zeebo/xxh3"
)

// shards spreads the locks of a table over connections.
const shards = 32

// table keeps decisions by the hash of their path. If a shard has no room it forgets all, which costs time
// and changes nothing.
type table struct {
	seed uint64 // drawn at random, so that paths cannot be made to collide
	most int64  // bytes of a shard
	of   [shards]shard
}

type shard struct {
	mu    sync.RWMutex
	known map[xxh3.Uint128]*decision
	bytes int64
}

func newTable(seed uint64, bytes int64) *table { return &table{seed: seed, most: bytes / shards} }

// get returns the decision about a path, or nil, and the hash for put.
func (t *table) get(path []byte) (*decision, xxh3.Uint128) {
	h := xxh3.Hash128Seed(path, t.seed)
	s := &t.of[h.Lo%shards]
	s.mu.RLock()
	d := s.known[h]
	s.mu.RUnlock()
	return d, h
}

// put keeps a decision.
func (t *table) put(h xxh3.Uint128, d *decision) {
	s := &t.of[h.Lo%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := d.bytes(); s.known == nil || s.bytes+n > t.most {
		s.known, s.bytes = map[xxh3.Uint128]*decision{}, 0
	}
	if _, ok := s.known[h]; !ok {
		s.known[h] = d
		s.bytes += d.bytes()
	}
}

// size returns how many paths are known, and the memory that they take.
func (t *table) size() (paths int, bytes int64) {
	for i := range t.of {
		s := &t.of[i]
		s.mu.RLock()
		paths, bytes = paths+len(s.known), bytes+s.bytes
		s.mu.RUnlock()
	}
	return paths, bytes
}
