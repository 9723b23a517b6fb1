package results

import (
	"sync"
)

// key names a value: the leaf on its grid, and the extent.
type key struct {
	leaf   string
	extent int64
}

// entry is a kept value. The entries of a tenant form a ring in the order in which they came, with SIEVE as
// the policy: the hand goes from the oldest to the newest, drops what no query has used since it came by, and
// begins again. Values of a query that is never repeated leave before others that are used.
type entry struct {
	key
	at     int // the first step of the extent that the value has
	value  any
	bytes  int64
	seen   uint64 // the last change that the value has
	hidden int    // how many horizons of retention have hidden rows of its times
	query  uint64 // that has kept it

	owner        *owner
	used         bool
	newer, older *entry
}

// owner is a tenant, or several that are queried together, with its values.
type owner struct {
	name           string
	bytes          int64
	newest, oldest *entry
	hand           *entry
}

// store holds values within a number of bytes, and those of each owner within a part of it.
type store struct {
	most, mostOwned int64

	mu      sync.Mutex
	bytes   int64
	entries map[key]*entry
	owners  map[string]*owner
	evicted int64
}

// entryBytes is about the memory of an entry besides the text of its key and its value, with its share of the
// maps.
const entryBytes = 240

// put keeps an entry, and makes room for it. It reports whether there is room.
func (s *store) put(e *entry, tenant string) bool {
	e.bytes += entryBytes
	if e.bytes > s.mostOwned/8 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.entries[e.key]; old != nil {
		s.drop(old)
	}
	o := s.owners[tenant]
	if o == nil {
		o = &owner{name: tenant}
		s.owners[tenant] = o
	}
	for o.bytes+e.bytes > s.mostOwned {
		s.evict(o)
	}
	for s.bytes+e.bytes > s.most {
		s.evict(s.largest())
	}
	s.owners[tenant] = o // unless its last entry has left just now
	e.owner, e.older = o, o.newest
	if o.newest != nil {
		o.newest.newer = e
	} else {
		o.oldest = e
	}
	o.newest = e
	s.entries[e.key] = e
	o.bytes += e.bytes
	s.bytes += e.bytes
	return true
}

// largest returns the owner that holds the most.
func (s *store) largest() (most *owner) {
	for _, o := range s.owners {
		if most == nil || o.bytes > most.bytes {
			most = o
		}
	}
	return most
}

// evict drops an entry of an owner, which has at least one.
func (s *store) evict(o *owner) {
	e := o.hand
	for {
		if e == nil {
			e = o.oldest
		}
		if !e.used {
			break
		}
		e.used, e = false, e.newer
	}
	o.hand = e.newer
	s.evicted++
	s.drop(e)
}

// drop removes an entry.
func (s *store) drop(e *entry) {
	o := e.owner
	if o.hand == e {
		o.hand = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		o.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		o.oldest = e.newer
	}
	delete(s.entries, e.key)
	o.bytes -= e.bytes
	s.bytes -= e.bytes
	if o.newest == nil {
		delete(s.owners, o.name)
	}
}
