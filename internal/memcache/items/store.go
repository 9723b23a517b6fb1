package items

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/cache/admit"
)

const (
	// mostUses is how many uses are counted for an item: so many times it stays when it is at the tail.
	mostUses = 3
	// mostShards bounds the shards. Each has room for at least leastItems of the largest items.
	mostShards = 64
	leastItems = 8
	// tableShare is the share of the memory for the table, and smallShare that of the rings for new items.
	tableShare = 12
	smallShare = 10
	// ghostBytes is the memory for which one item that has left is remembered, by 8 bytes.
	ghostBytes = 1024
	stamps     = 256
)

// Store keeps items. It is safe for concurrent use.
type Store struct {
	shards  []Shard
	shift   uint
	flushed atomic.Uint64 // items with lower numbers are gone
}

// Shard is a part of a store: some of the keys. All but Lock and Unlock is for the holder of its lock.
//
// Items enter a small ring. Those that were used when they reach its tail go to the large one, where a used
// item is put at the head again; others leave. An item that left and comes again goes to the large ring at
// once. This is S3-FIFO (Yang et al., SOSP 2023).
type Shard struct {
	mu           sync.Mutex
	store        *Store
	mem          []byte
	table        table
	mostEntries  int
	small, large ring
	ghosts       admit.Ghosts
	stamp        [stamps]uint32
	// Counts are what has happened to the items of the shard, and what was asked of them.
	Counts Counts
}

// Count is something that is counted.
type Count uint8

const (
	// Items and Bytes are those of now.
	Items Count = iota
	Bytes
	Stored
	Evictions
	EvictedUnread
	EvictedBytes
	ExpiredItems
	ExpiredUnread
	Sets
	CASHits
	CASMisses
	CASBad
	Gets
	Hits
	DiskHits
	GetsExpired
	GetsFlushed
	Metas
	Touches
	TouchHits
	Deletes
	DeleteHits
	Increments
	IncrementHits
	Decrements
	DecrementHits
	counted
)

// Counts are numbers of items and commands.
type Counts [counted]int64

// New returns an empty store of so many bytes, for items of at most largest bytes with their keys.
func New(bytes int64, largest int) (*Store, error) {
	need := int64(round(headerBytes + largest))
	shards := mostShards
	for shards > 1 && bytes/int64(shards)*8/10 < leastItems*need {
		shards /= 2
	}
	each := bytes / int64(shards)
	if each*8/10 < 2*need {
		return nil, fmt.Errorf("%d bytes of memory are too few for items of %d bytes: expected at least %d", bytes, largest, need*2*10/8)
	}
	if each > 8<<32-1 {
		return nil, fmt.Errorf("%d bytes of memory are more than the %d shards can hold", bytes, shards)
	}
	s := &Store{shards: make([]Shard, shards), shift: 64}
	for n := shards; n > 1; n /= 2 {
		s.shift--
	}
	for i := range s.shards {
		sh := &s.shards[i]
		table, ghosts := each/tableShare, each/ghostBytes
		sh.store, sh.mostEntries, sh.ghosts = s, int(table/8), admit.NewGhosts(int(ghosts))
		sh.mem = make([]byte, (each-table-8*ghosts)&^7)
		small := len(sh.mem) / smallShare &^ 7
		sh.small = ring{mem: sh.mem[:small]}
		sh.large = ring{mem: sh.mem[small:], base: small}
	}
	return s, nil
}

// Shard returns the shard of a hash.
func (s *Store) Shard(hash uint64) *Shard { return &s.shards[hash>>s.shift] }

// Shards returns all shards.
func (s *Store) Shards() []Shard { return s.shards }

// Counts returns the sums of all shards.
func (s *Store) Counts() (sum Counts) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.Lock()
		for i, n := range sh.Counts {
			sum[i] += n
		}
		sh.Unlock()
	}
	return sum
}

// Flush removes all items whose unique number is lower. When it returns, no holder of a lock has seen them
// for whom the flush comes later.
func (s *Store) Flush(cas uint64) {
	s.flushed.Store(cas)
	for i := range s.shards {
		s.shards[i].Lock()
		s.shards[i].Changed(0) // any change will do
		s.shards[i].Unlock()
	}
}

// Lock begins the use of the shard, and Unlock ends it.
func (s *Shard) Lock()   { s.mu.Lock() }
func (s *Shard) Unlock() { s.mu.Unlock() }

// Stamp is a number that is another one after a key of the hash was stored or removed. Evictions leave it.
func (s *Shard) Stamp(hash uint64) uint32 { return s.stamp[hash%stamps] }

// Changed changes the stamp.
func (s *Shard) Changed(hash uint64) { s.stamp[hash%stamps]++ }

func (s *Shard) at(at uint32) Item {
	from := int(at-1) * 8
	n := int(uint32(s.mem[from]) | uint32(s.mem[from+1])<<8 | uint32(s.mem[from+2])<<16 | uint32(s.mem[from+3])<<24)
	return Item(s.mem[from : from+n : from+n])
}

// Why says why an item is not found.
type Why uint8

const (
	// Missing: there is none. Expired and Flushed: there was one.
	Missing Why = iota
	Expired
	Flushed
)

// Find returns the item of a key, or nil. An item that is over is removed.
func (s *Shard) Find(key []byte, hash uint64, now uint32) (Item, Why) {
	i := s.find(uint32(hash), key)
	if i < 0 {
		return nil, Missing
	}
	it := s.at(s.table.entries[i].at)
	why := s.over(it, now)
	if why == Missing {
		return it, why
	}
	s.expired(it)
	s.drop(it, i)
	return nil, why
}

// over says why an item is over; Missing: it is not.
func (s *Shard) over(it Item, now uint32) Why {
	switch exp := it.Expires(); {
	case it.CAS() < s.store.flushed.Load():
		return Flushed
	case exp != 0 && exp <= now:
		return Expired
	}
	return Missing
}

// IsOver reports whether an item with such a number and expiry would be gone at once.
func (s *Store) IsOver(cas uint64, expires, now uint32) bool {
	return cas < s.flushed.Load() || expires != 0 && expires <= now
}

func (s *Shard) expired(it Item) {
	s.Counts[ExpiredItems]++
	if !it.Has(Fetched) {
		s.Counts[ExpiredUnread]++
	}
}

// drop removes the item of a place of the table.
func (s *Shard) drop(it Item, place int) {
	s.table.remove(place)
	it.Unmark(live)
	s.Counts[Items]--
	s.Counts[Bytes] -= int64(len(it))
}

// Remove removes an item.
func (s *Shard) Remove(it Item) {
	s.drop(it, s.find(uint32(it.Hash()), it.Key()))
}

// Insert stores an item, in place of the one of its key, whose bytes may be overwritten. It returns the item,
// whose value the caller writes, or nil if it is too large.
func (s *Shard) Insert(n *Draft) Item {
	size := n.bytes()
	if i := s.find(uint32(n.Hash), n.Key); i >= 0 {
		old := s.at(s.table.entries[i].at)
		if len(old) == size { // in place: it has the uses of the old one, and one more
			s.Counts[Stored]++
			n.write(old, min(old[40]+1, mostUses))
			return old
		}
		s.drop(old, i)
	}
	to := &s.small
	if s.ghosts.Take(n.Hash, 1) || size > len(s.small.mem)/4 {
		to = &s.large
	}
	if size > len(to.mem) {
		return nil
	}
	for s.table.full() {
		if len(s.table.entries) < s.mostEntries {
			s.table.grow(s.mostEntries)
			continue
		}
		s.evict(&s.large, n.Now)
		s.evict(&s.small, n.Now)
	}
	gap := s.makeRoom(to, size, n.Now)
	b, at := to.place(gap, size)
	n.write(b, 0)
	to.advance(gap, size)
	s.table.put(uint32(n.Hash), uint32(at/8)+1)
	s.Counts[Stored]++
	s.Counts[Items]++
	s.Counts[Bytes] += int64(size)
	return b
}

// makeRoom evicts until an item of n bytes fits.
func (s *Shard) makeRoom(r *ring, n int, now uint32) (gap int) {
	for {
		gap, ok := r.room(n)
		if ok {
			return gap
		}
		s.evict(r, now)
	}
}

// evict takes the oldest item of a ring out, or moves it on if it was used.
func (s *Shard) evict(r *ring, now uint32) {
	if r.used() == 0 {
		return
	}
	it, at := r.oldest()
	if it == nil || !it.Has(live) {
		return
	}
	tag := uint32(it.Hash())
	place := s.table.findAt(tag, uint32(at/8)+1)
	if s.over(it, now) != Missing {
		s.expired(it)
		s.drop(it, place)
		return
	}
	used := it[40] > 0
	// Until it is full, the large ring takes all.
	if gap, ok := s.large.room(len(it)); used || ok && r == &s.small && gap == 0 {
		if r == &s.small {
			it[40] = 0
		} else {
			it[40]--
		}
		// What was taken out of the large ring has left room for itself, but a gap may take it.
		gap, ok := s.large.room(len(it))
		for used && r == &s.small && !ok {
			s.evict(&s.large, now)
			gap, ok = s.large.room(len(it))
		}
		if ok {
			b, to := s.large.place(gap, len(it))
			s.large.advance(gap, copy(b, it))
			s.table.entries[s.table.findAt(tag, uint32(at/8)+1)].at = uint32(to/8) + 1
			return
		}
		place = s.table.findAt(tag, uint32(at/8)+1) // the table has changed
	}
	s.Counts[Evictions]++
	s.Counts[EvictedBytes] += int64(len(it))
	if !it.Has(Fetched) {
		s.Counts[EvictedUnread]++
	}
	if r == &s.small {
		s.ghosts.Put(it.Hash(), 0)
	}
	s.drop(it, place)
}

// Oldest returns all items of the shard, without its lock: those of the small ring, then those of the large
// one, the oldest first. Nothing may change meanwhile.
func (s *Shard) Oldest(now uint32) func(yield func(Item) bool) {
	return func(yield func(Item) bool) {
		for _, r := range []ring{s.small, s.large} {
			for r.used() > 0 {
				it, _ := r.oldest()
				if it == nil || !it.Has(live) || s.over(it, now) != Missing {
					continue
				}
				if !yield(it) {
					return
				}
			}
		}
	}
}

// Capacity is the memory for items.
func (s *Store) Capacity() (n int64) {
	for i := range s.shards {
		n += int64(len(s.shards[i].mem))
	}
	return n
}
