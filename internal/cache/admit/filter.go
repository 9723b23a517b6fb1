package admit

import "sync"

// Filter admits a value when a second query wants it. Values wait in a queue in memory, first in, first out.
// Of a value that leaves the queue the hash is kept, so that it is admitted when a later query reads it.
// It is safe for concurrent use.
//
// A query is known by 16 bits. Two queries that share them count as one, so that a value is admitted later.
type Filter[V any] struct {
	maxBytes int64

	mu           sync.Mutex
	waiting      map[uint64]*item[V] // by hash
	oldest, last *item[V]
	bytes        int64
	ghosts       Ghosts
}

// item is a value that waits.
type item[V any] struct {
	hash  uint64
	size  int64
	query uint16
	value V
	// before and after are its neighbours in the queue.
	before, after *item[V]
}

// itemBytes is about the cost of a waiting value besides the value.
const itemBytes = 160

// New returns an empty filter. maxBytes bounds the sizes of the values that wait, and what it costs to keep
// them. ghosts bounds the hashes, of 8 bytes each.
func New[V any](maxBytes int64, ghosts int) *Filter[V] {
	return &Filter[V]{maxBytes: maxBytes, waiting: make(map[uint64]*item[V]), ghosts: NewGhosts(ghosts)}
}

// Offer tells the filter that a query has read a value, and reports whether the value is admitted. Otherwise
// the filter may keep it.
func (f *Filter[V]) Offer(hash uint64, query uint16, size int64, value V) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if it := f.waiting[hash]; it != nil {
		if it.query == query {
			return false
		}
		f.remove(it)
		return true
	}
	if f.ghosts.Take(hash, query) {
		return true
	}
	it := &item[V]{hash: hash, size: size + itemBytes, query: query, value: value}
	if it.size > f.maxBytes {
		f.ghosts.Put(hash, query)
		return false
	}
	f.append(it)
	f.shrink()
	return false
}

// shrink drops what is over the bound of the queue, and keeps its hashes.
func (f *Filter[V]) shrink() {
	for f.bytes > f.maxBytes {
		old := f.oldest
		f.remove(old)
		f.ghosts.Put(old.hash, old.query)
	}
}

// Use tells the filter that a query wanted a value that did not have to be read. It returns the value if this
// admits it.
func (f *Filter[V]) Use(hash uint64, query uint16) (value V, admitted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	it := f.waiting[hash]
	if it == nil || it.query == query {
		return value, false
	}
	f.remove(it)
	return it.value, true
}

// Retry tells the filter that a value which it had admitted for a query was not kept. The next query that
// reads it admits it.
func (f *Filter[V]) Retry(hash uint64, query uint16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ghosts.Put(hash, query)
}

// Resize changes the bounds that [New] was given. keep says which hashes stay; it may look at their upper 48
// bits, since no more is known of those that have left the queue. nil: all stay.
func (f *Filter[V]) Resize(maxBytes int64, ghosts int, keep func(hash uint64) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.ghosts.list()
	f.maxBytes, f.ghosts = maxBytes, NewGhosts(ghosts)
	for i := len(list) - 1; i >= 0; i-- { // as in Restore
		if keep == nil || keep(list[i]) {
			f.ghosts.Put(list[i], uint16(list[i]))
		}
	}
	for it := f.oldest; it != nil; it = it.after {
		if keep != nil && !keep(it.hash) {
			f.remove(it)
		}
	}
	f.shrink()
}

// Peek returns a value that waits.
func (f *Filter[V]) Peek(hash uint64) (value V, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if it := f.waiting[hash]; it != nil {
		return it.value, true
	}
	return value, false
}

// Bytes returns what the waiting values take.
func (f *Filter[V]) Bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}

// Ghosts returns a copy of the hashes of values that left the queue, in the form that Restore takes.
func (f *Filter[V]) Ghosts() []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ghosts.list()
}

// Restore adds hashes that Ghosts returned.
func (f *Filter[V]) Restore(list []uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// The newest of a bucket is listed first, and what is put last counts as the newest.
	for i := len(list) - 1; i >= 0; i-- {
		f.ghosts.Put(list[i], uint16(list[i]))
	}
}

func (f *Filter[V]) append(it *item[V]) {
	it.before = f.last
	if f.last != nil {
		f.last.after = it
	} else {
		f.oldest = it
	}
	f.last = it
	f.waiting[it.hash] = it
	f.bytes += it.size
}

func (f *Filter[V]) remove(it *item[V]) {
	if it.before != nil {
		it.before.after = it.after
	} else {
		f.oldest = it.after
	}
	if it.after != nil {
		it.after.before = it.before
	} else {
		f.last = it.before
	}
	delete(f.waiting, it.hash)
	f.bytes -= it.size
}
