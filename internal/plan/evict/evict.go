package evict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Cache is a cache under one policy. Keys are indexes of the sizes that it was made with.
type Cache interface {
	// Get reports whether the cache has a key, which counts as a use by the query.
	Get(key, query uint32) bool
	// Has reports the same without a use.
	Has(key uint32) bool
	// Put offers a key that the cache does not have. Fresh data was just produced; no query has asked for it.
	Put(key, query uint32, fresh bool)
	// Counted returns what the cache has counted.
	Counted() *Ledger
}

// Sampled is a cache of a sample of keys, which may become smaller.
type Sampled interface {
	Cache
	// Forget drops a key that is no longer part of the sample. It does not count as evicted.
	Forget(key uint32)
	// Resize gives the cache another capacity, and what else of the input depends on it.
	Resize(in Input)
}

// Oracle is a cache that knows the future. Before each request it is told the request's index and key.
type Oracle interface{ Follow(request int, key uint32) }

// The names of the policies.
const (
	LRU      = "lru"
	Extstore = "extstore"
	Sieve    = "sieve"
	S3FIFO   = "s3-fifo"
	TinyLFU  = "w-tinylfu"
	Shale    = "shale"
	Optimum  = "optimum"
)

// Names returns the names of all policies, in the order of tables.
func Names() []string {
	return []string{LRU, Extstore, Sieve, S3FIFO, TinyLFU, Shale, Optimum}
}

// Input is what a cache is made of.
type Input struct {
	Sizes    []uint32 // by key
	Capacity int64    // bytes
	// Queue is the share of the capacity that the queue of Shale's tier on disk has, in memory.
	Queue float64
	// Hashes are the hashes of keys; nil: a key is hashed itself. Ghosts is the number of hashes that Shale's
	// tier on disk keeps of values that left its queue; 0: as many as the disk has values.
	Hashes []uint64
	Ghosts int
	// Keep says which hashes that it keeps remain after a change of its size; nil: all.
	Keep func(hash uint64) bool
	// Next is, by request, the index of the next request for the same key. Only the optimum needs it.
	Next []uint32
}

// New returns an empty cache with a policy.
func New(policy string, in Input) (Cache, error) {
	makers := map[string]func(Input) (Cache, error){
		LRU:      func(in Input) (Cache, error) { return newLRU(in), nil },
		Extstore: func(in Input) (Cache, error) { return newExtstore(in), nil },
		Sieve:    func(in Input) (Cache, error) { return newSieve(in), nil },
		S3FIFO:   func(in Input) (Cache, error) { return newS3FIFO(in), nil },
		TinyLFU:  newTinyLFU,
		Shale:    func(in Input) (Cache, error) { return newFlash(in), nil },
		Optimum:  func(in Input) (Cache, error) { return newOptimum(in), nil },
	}
	maker := makers[policy]
	if maker == nil {
		return nil, fmt.Errorf("%w: expected a policy among %s, got %q", model.ErrInvalid, strings.Join(slices.Sorted(maps.Keys(makers)), ", "), policy)
	}
	return maker(in)
}

// Ledger counts what leaves and enters a cache.
type Ledger struct {
	sizes []uint32
	read  []bool // by key: asked for since it entered

	Evicted, Unread int64
	EvictedBytes    int64
	// Refused counts values that a filter in front of the cache has dropped. They are not evictions.
	Refused int64
	// Written is the bytes written to the medium of the cache. For a tier on disk with a queue in memory, only
	// the disk counts.
	Written int64
}

func newLedger(sizes []uint32) Ledger {
	return Ledger{sizes: sizes, read: make([]bool, len(sizes))}
}

// Counted returns the ledger itself.
func (l *Ledger) Counted() *Ledger { return l }

// Reset begins to count from zero.
func (l *Ledger) Reset() { l.Evicted, l.Unread, l.EvictedBytes, l.Refused, l.Written = 0, 0, 0, 0, 0 }

func (l *Ledger) size(key uint32) int64 { return int64(l.sizes[key]) }

func (l *Ledger) enter(key uint32) { l.read[key] = false }

func (l *Ledger) evict(key uint32) {
	l.Evicted++
	l.EvictedBytes += l.size(key)
	if !l.read[key] {
		l.Unread++
	}
}

// meanSize is the mean size of all keys, by which policies turn bytes into a number of keys.
func meanSize(sizes []uint32) int64 {
	sum := int64(0)
	for _, s := range sizes {
		sum += int64(s)
	}
	return max(sum/int64(max(len(sizes), 1)), 1)
}

// hash spreads a key over 64 bits, for structures that need a hash.
func hash(key uint32) uint64 {
	x := uint64(key)*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
