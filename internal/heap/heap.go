package heap

// Item is what a heap holds. Less orders items that are in the same heap and must not change while they are
// in it. It is a method, not a function value, so that an instance for a struct type calls it without
// allocating.
type Item[T any] interface {
	Less(T) bool
}

// Heap gives out its items in ascending order. Items that are equal come in no particular order. The zero
// value is an empty heap. It is not safe for concurrent use.
type Heap[T Item[T]] struct {
	items []T
}

// Len returns how many items the heap holds.
func (h *Heap[T]) Len() int { return len(h.items) }

// First returns the least item. The heap must not be empty.
func (h *Heap[T]) First() T { return h.items[0] }

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.items = append(h.items, item)
	i := len(h.items) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !item.Less(h.items[parent]) {
			break
		}
		h.items[i] = h.items[parent]
		i = parent
	}
	h.items[i] = item
}

// Pop removes the least item and returns it. The heap must not be empty.
func (h *Heap[T]) Pop() T {
	first, last := h.items[0], len(h.items)-1
	item := h.items[last]
	clear(h.items[last:]) // what it refers to may be freed
	h.items = h.items[:last]
	if last > 0 {
		h.ReplaceFirst(item)
	}
	return first
}

// ReplaceFirst puts an item in the place of the least one, which costs half of a Pop and a Push. The heap
// must not be empty.
func (h *Heap[T]) ReplaceFirst(item T) {
	items, i := h.items, 0
	for {
		least := 2*i + 1
		if least >= len(items) {
			break
		}
		if right := least + 1; right < len(items) && items[right].Less(items[least]) {
			least = right
		}
		if !items[least].Less(item) {
			break
		}
		items[i] = items[least]
		i = least
	}
	items[i] = item
}

// Reset removes all items and keeps the memory for new ones.
func (h *Heap[T]) Reset() {
	clear(h.items)
	h.items = h.items[:0]
}
