package heap

import "cmp"

// Item is what a heap holds: the index of something that the caller keeps, and the keys that order it. Items
// of equal Key are ordered by Tie.
type Item[K, T cmp.Ordered] struct {
	Key   K
	Tie   T
	Index int
}

// Heap gives out its items in ascending order. Items of which both keys are equal come in no particular
// order. The zero value is an empty heap. It is not safe for concurrent use.
type Heap[K, T cmp.Ordered] struct {
	items []Item[K, T]
}

// Len returns how many items the heap holds.
func (h *Heap[K, T]) Len() int { return len(h.items) }

// First returns the least item. The heap must not be empty.
func (h *Heap[K, T]) First() Item[K, T] { return h.items[0] }

// Push adds an item.
func (h *Heap[K, T]) Push(item Item[K, T]) {
	h.items = append(h.items, item)
	h.rise(len(h.items)-1, item)
}

// rise fills the hole at i with an item, after moving greater parents down.
func (h *Heap[K, T]) rise(i int, item Item[K, T]) {
	items := h.items
	for i > 0 {
		parent := (i - 1) / 2
		p := &items[parent]
		if p.Key < item.Key || p.Key == item.Key && p.Tie <= item.Tie {
			break
		}
		items[i] = *p
		i = parent
	}
	items[i] = item
}

// Pop removes the least item and returns it. The heap must not be empty.
func (h *Heap[K, T]) Pop() Item[K, T] {
	first, last := h.items[0], len(h.items)-1
	item, items := h.items[last], h.items[:last]
	h.items = items
	// The last item belongs near the end. So the hole goes all the way down before the item is compared, which
	// takes half as many comparisons as ReplaceFirst.
	i := 0
	for least := 1; least < last; least = 2*i + 1 {
		c := &items[least]
		if right := least + 1; right < last {
			r := &items[right]
			if r.Key < c.Key || r.Key == c.Key && r.Tie < c.Tie {
				least, c = right, r
			}
		}
		items[i] = *c
		i = least
	}
	if last > 0 {
		h.rise(i, item)
	}
	return first
}

// ReplaceFirst puts an item in the place of the least one, which costs half of a Pop and a Push. The heap
// must not be empty.
func (h *Heap[K, T]) ReplaceFirst(item Item[K, T]) {
	items, i := h.items, 0
	for least := 1; least < len(items); least = 2*i + 1 {
		c := &items[least]
		if right := least + 1; right < len(items) {
			r := &items[right]
			if r.Key < c.Key || r.Key == c.Key && r.Tie < c.Tie {
				least, c = right, r
			}
		}
		if item.Key < c.Key || item.Key == c.Key && item.Tie <= c.Tie {
			break
		}
		items[i] = *c
		i = least
	}
	items[i] = item
}

// Reset removes all items and keeps the memory for new ones.
func (h *Heap[K, T]) Reset() { h.items = h.items[:0] }
