package read

import "github.com/shaledb/shale/internal/model"

// cursorHeap orders cursors by the key they stand on. It is written out because container/heap costs an interface
// call and an allocation a step, and a wide query takes a step for each series of each cursor.
type cursorHeap []standing

// standing is a cursor with the key it stands on, kept here so that comparing does not call the cursor.
type standing struct {
	key model.Key
	c   model.Cursor
}

func (h *cursorHeap) push(c model.Cursor) {
	e := standing{c.Key(), c}
	*h = append(*h, e)
	s := *h
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.key.Less(s[up].key) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = e
}

func (h *cursorHeap) pop() model.Cursor {
	s := *h
	top := s[0].c
	last := len(s) - 1
	e := s[last]
	s[last] = standing{}
	s = s[:last]
	*h = s
	if last == 0 {
		return top
	}
	i := 0
	for {
		least := 2*i + 1
		if least >= last {
			break
		}
		if r := least + 1; r < last && s[r].key.Less(s[least].key) {
			least = r
		}
		if !s[least].key.Less(e.key) {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = e
	return top
}
