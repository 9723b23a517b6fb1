package series

// loneSet is a set of ids, a bit each.
type loneSet struct {
	bits  []uint64
	count int
}

func (s *loneSet) reset() { s.bits, s.count = s.bits[:0], 0 }

// add adds an id that is not in the set.
func (s *loneSet) add(id uint32) {
	for int(id/64) >= len(s.bits) {
		s.bits = append(s.bits, 0)
	}
	s.bits[id/64] |= 1 << (id % 64)
	s.count++
}

func (s *loneSet) has(id uint32) bool {
	return int(id/64) < len(s.bits) && s.bits[id/64]>>(id%64)&1 == 1
}
