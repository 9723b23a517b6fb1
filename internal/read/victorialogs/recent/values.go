package recent

import (
	"container/list"
	"sync"
)

// Values are values of keys, those that were used last. It is safe for concurrent use.
type Values[K comparable] struct {
	// MaxBytes bounds the values together. One is at most an eighth of it.
	MaxBytes int

	mu    sync.Mutex
	of    map[K]*list.Element
	order list.List // of entries, the one used last first
	bytes int
}

type entry[K comparable] struct {
	key   K
	value []byte
}

// Get returns the value of a key, or nil. It must not be changed.
func (v *Values[K]) Get(key K) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.of[key]
	if e == nil {
		return nil
	}
	v.order.MoveToFront(e)
	return e.Value.(*entry[K]).value
}

// Put keeps a value, unless the key has one.
func (v *Values[K]) Put(key K, value []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of[key] != nil || len(value) > v.MaxBytes/8 {
		return
	}
	if v.of == nil {
		v.of = map[K]*list.Element{}
	}
	v.of[key] = v.order.PushFront(&entry[K]{key, value})
	for v.bytes += len(value); v.bytes > v.MaxBytes; {
		last := v.order.Remove(v.order.Back()).(*entry[K])
		delete(v.of, last.key)
		v.bytes -= len(last.value)
	}
}
