package ssd

import (
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/cache/admit"
)

const (
	shardBits = 6
	shards    = 1 << shardBits
	// maxRecordBytes bounds a record, so that its length fits lengthBits.
	lengthBits     = 24
	maxRecordBytes = 1<<lengthBits - 1
)

// index finds records by the hash of their key. It knows 38 bits of the hash: two keys that share them cannot
// both be in it, and to look one of them up finds the other, whose record shows that it is another.
//
// An entry takes 16 bytes in a table that is between 68 and 85 % full.
type index struct {
	shards  [shards]shard
	entries atomic.Int64
	slots   atomic.Int64 // places for entries
	bytes   atomic.Int64 // of the records that are in the index
}

type shard struct {
	mu    sync.Mutex
	count int
	table []entry
}

// entry says where a record is. length is 0 in an empty place.
type entry struct {
	tag    uint32
	off    uint32
	length uint32 // the number of uses is in the bits above lengthBits
	slot   uint16
	query  uint16 // that has used it last
}

func (e *entry) bytes() uint32 { return e.length & maxRecordBytes }
func (e *entry) uses() int     { return int(e.length >> lengthBits) }

// use counts a query, unless it is the one that was counted last.
func (e *entry) use(query uint16) {
	if e.query != query {
		e.query = query
		if e.uses() < admit.MostUses {
			e.length += 1 << lengthBits
		}
	}
}

func (x *index) shard(hash uint64) *shard { return &x.shards[hash>>(64-shardBits)] }

// home returns the place where the search for a tag begins.
func (s *shard) home(tag uint32) int { return int(uint64(tag) * uint64(len(s.table)) >> 32) }

// find returns the place of a tag, or -1.
func (s *shard) find(tag uint32) int {
	if s.count == 0 {
		return -1
	}
	for i := s.home(tag); ; i = s.next(i) {
		switch e := &s.table[i]; {
		case e.length == 0:
			return -1
		case e.tag == tag:
			return i
		}
	}
}

func (s *shard) next(i int) int {
	if i++; i == len(s.table) {
		return 0
	}
	return i
}

// get returns an entry.
func (x *index) get(hash uint64) (entry, bool) {
	s := x.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(uint32(hash)); i >= 0 {
		return s.table[i], true
	}
	return entry{}, false
}

// use returns an entry and counts the query.
func (x *index) use(hash uint64, query uint16) (entry, bool) {
	s := x.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(uint32(hash))
	if i < 0 {
		return entry{}, false
	}
	s.table[i].use(query)
	return s.table[i], true
}

// put adds an entry, or replaces the one of the same hash. The entry has been used by no query yet, besides
// the one that it was written for.
func (x *index) put(hash uint64, slot int, off, length uint32, query uint16) {
	s := x.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= len(s.table)*85/100 {
		x.grow(s)
	}
	e := entry{tag: uint32(hash), off: off, length: length, slot: uint16(slot), query: query}
	x.bytes.Add(int64(length))
	if i := s.find(e.tag); i >= 0 {
		x.bytes.Add(-int64(s.table[i].bytes()))
		s.table[i] = e
		return
	}
	s.insert(e)
	s.count++
	x.entries.Add(1)
}

// insert puts an entry into an empty place.
func (s *shard) insert(e entry) {
	i := s.home(e.tag)
	for s.table[i].length != 0 {
		i = s.next(i)
	}
	s.table[i] = e
}

// grow makes room by a quarter.
func (x *index) grow(s *shard) {
	old := s.table
	s.table = make([]entry, len(old)*5/4+16)
	x.slots.Add(int64(len(s.table) - len(old)))
	for _, e := range old {
		if e.length != 0 {
			s.insert(e)
		}
	}
}

// remove removes an entry if it is still where the caller found it, and reports whether it was.
func (x *index) remove(hash uint64, slot int, off uint32) (removed entry, ok bool) {
	s := x.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(uint32(hash))
	if i < 0 || s.table[i].slot != uint16(slot) || s.table[i].off != off {
		return entry{}, false
	}
	removed = s.table[i]
	x.bytes.Add(-int64(removed.bytes()))
	x.entries.Add(-1)
	s.count--
	// Entries that come after the gap move into it if the search for them passes it.
	for j := s.next(i); s.table[j].length != 0; j = s.next(j) {
		if h := s.home(s.table[j].tag); (j-h+len(s.table))%len(s.table) >= (j-i+len(s.table))%len(s.table) {
			s.table[i] = s.table[j]
			i = j
		}
	}
	s.table[i] = entry{}
	return removed, true
}

// take removes what the index has of a hash.
func (x *index) take(hash uint64) (entry, bool) {
	for {
		e, ok := x.get(hash)
		if !ok {
			return e, false
		}
		if e, ok = x.remove(hash, int(e.slot), e.off); ok {
			return e, true
		}
	}
}

// clear empties the index.
func (x *index) clear() {
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		for j := range s.table {
			x.bytes.Add(-int64(s.table[j].bytes()))
		}
		x.entries.Add(-int64(s.count))
		x.slots.Add(-int64(len(s.table)))
		s.count, s.table = 0, nil
		s.mu.Unlock()
	}
}

// removeSlot removes all entries of a slot whose footer is lost, and returns their number.
func (x *index) removeSlot(slot int) (n int) {
	for i := range x.shards {
		s := &x.shards[i]
		var found []entry
		s.mu.Lock()
		for _, e := range s.table {
			if e.length != 0 && e.slot == uint16(slot) {
				found = append(found, e)
			}
		}
		s.mu.Unlock()
		for _, e := range found {
			if _, ok := x.remove(uint64(i)<<(64-shardBits)|uint64(e.tag), slot, e.off); ok {
				n++
			}
		}
	}
	return n
}

// memory returns the bytes that the tables take.
func (x *index) memory() int64 { return 16 * x.slots.Load() }

// used returns the entries that queries have used, in the form of the snapshot: 6 bits of the shard, 32 of
// the tag, and the number of uses in the lowest 2.
func (x *index) used() []uint64 {
	var list []uint64
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		for j := range s.table {
			if e := &s.table[j]; e.length != 0 && e.uses() > 0 {
				list = append(list, uint64(i)<<(64-shardBits)|uint64(e.tag)<<2|uint64(e.uses()))
			}
		}
		s.mu.Unlock()
	}
	return list
}

// restore sets the uses of entries that used returned.
func (x *index) restore(list []uint64) {
	for _, u := range list {
		s := x.shard(u)
		s.mu.Lock()
		if i := s.find(uint32(u >> 2)); i >= 0 {
			s.table[i].length = s.table[i].bytes() | uint32(u&admit.MostUses)<<lengthBits
		}
		s.mu.Unlock()
	}
}
