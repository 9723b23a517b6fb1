package read

import "github.com/shaledb/shale/internal/model"

// The heap orders cursors by the key they stand on. It is written out because container/heap costs an interface call
// and an allocation a step, and a wide query takes one step a series and cursor.

func (s *SeriesSet) push(c model.Cursor) {
	s.heap = append(s.heap, c)
	k := c.Key()
	i := len(s.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !k.Less(s.heap[up].Key()) {
			break
		}
		s.heap[i], s.heap[up] = s.heap[up], s.heap[i]
		i = up
	}
}

func (s *SeriesSet) pop() model.Cursor {
	top := s.heap[0]
	last := len(s.heap) - 1
	s.heap[0] = s.heap[last]
	s.heap[last] = nil
	s.heap = s.heap[:last]
	for i := 0; ; {
		least := 2*i + 1
		if least >= last {
			return top
		}
		if r := least + 1; r < last && s.heap[r].Key().Less(s.heap[least].Key()) {
			least = r
		}
		if !s.heap[least].Key().Less(s.heap[i].Key()) {
			return top
		}
		s.heap[i], s.heap[least] = s.heap[least], s.heap[i]
		i = least
	}
}
