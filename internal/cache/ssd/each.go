package ssd

import (
	"cmp"
	"slices"

	"github.com/shaledb/shale/internal/cache"
)

// Each hands out the items of a mutable tier, those of the newest segments first, until yield returns false
// or an error. What is written meanwhile may be left out. A value belongs to the caller.
func (s *Store) Each(yield func(key string, value []byte) (more bool, err error)) error {
	list := s.index.all()
	generations := make([]uint64, len(s.slots))
	for i := range s.slots {
		generations[i] = s.slots[i].generation.Load()
	}
	slices.SortFunc(list, func(a, b hashed) int {
		return cmp.Or(cmp.Compare(generations[b.slot], generations[a.slot]), cmp.Compare(a.off, b.off))
	})
	for _, h := range list {
		key, value, ok := s.item(h)
		if !ok {
			continue
		}
		if more, err := yield(key, value); err != nil || !more {
			return err
		}
	}
	return nil
}

// item reads the record of an item, or false if it is not there any more.
func (s *Store) item(h hashed) (name string, value []byte, ok bool) {
	if e, there := s.index.get(h.hash); !there || e.slot != h.slot || e.off != h.off || !s.health.readable() {
		return "", nil, false
	}
	from := &s.slots[h.slot]
	generation := from.generation.Load()
	f := from.acquire()
	if f == nil {
		return "", nil, false
	}
	defer f.release()
	b := make([]byte, h.bytes())
	if err := readFull(f, b, int64(h.off)); err != nil {
		return "", nil, false
	}
	_, key, value, err := parseRecord(b, generation)
	before := keyBytes(cache.Key{})
	if err != nil || len(key) < before || cache.Kind(key[0]) != cache.Item {
		return "", nil, false
	}
	return string(key[before:]), value, true
}

// hashed is an entry with as much of its hash as the index knows.
type hashed struct {
	entry
	hash uint64
}

func (x *index) all() []hashed {
	var list []hashed
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		for _, e := range s.table {
			if e.length != 0 {
				list = append(list, hashed{e, uint64(i)<<(64-shardBits) | uint64(e.tag)})
			}
		}
		s.mu.Unlock()
	}
	return list
}
