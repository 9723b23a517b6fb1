package ssd

// mostReinserted is the share of a segment, in percent, that is written once more when it is reclaimed.
const mostReinserted = 40

// reinsert writes those records of the oldest segment once more that queries have used since they were
// written: the most used first, and within one number of uses the oldest.
func (s *Store) reinsert(from int) error {
	entries, err := s.entries(from)
	if err != nil {
		return nil // there is nothing to go by; the caller drops the segment
	}
	left := s.segmentBytes * mostReinserted / 100
	for uses := mostUses; uses > 0; uses-- {
		for _, at := range entries {
			e, ok := s.index.get(at.hash)
			if !ok || int(e.slot) != from || e.off != at.off || e.uses() != uses || int64(at.n) > left || !s.fits(int(at.n)) {
				continue
			}
			ok, err := s.move(from, at, e.query)
			if err != nil {
				return err
			}
			if ok {
				left -= int64(at.n)
			}
		}
	}
	return nil
}

// move writes a record of a segment to the open one. A damaged one stays where it is.
func (s *Store) move(from int, at located, query uint16) (moved bool, err error) {
	sl := &s.slots[from]
	b := make([]byte, at.n)
	if err := readFull(sl.file.Load(), b, int64(at.off)); err != nil {
		return false, nil
	}
	hash, key, value, err := parseRecord(b, sl.generation.Load())
	if err != nil || hash != at.hash {
		return false, nil
	}
	s.budget.spendAnyway(int64(at.n))
	if err := s.append(hash, key, value, query); err != nil {
		return false, err
	}
	s.m.reinserted.Add(float64(at.n))
	return true, nil
}

// dropOldest removes the oldest segment from the index, and returns its slot, which keeps its file.
func (s *Store) dropOldest() int {
	from := s.sealed[0]
	s.sealed = s.sealed[1:]
	entries, err := s.entries(from)
	if err != nil {
		s.m.evicted.Add(float64(s.index.removeSlot(from)))
	}
	for _, at := range entries {
		if e, ok := s.index.remove(at.hash, from, at.off); ok {
			s.m.evicted.Inc()
			if e.uses() == 0 {
				s.m.unread.Inc()
			}
		}
	}
	s.slots[from].generation.Store(0)
	return from
}

// entries reads the footer of a sealed segment.
func (s *Store) entries(from int) ([]located, error) {
	sl := &s.slots[from]
	f, generation := sl.file.Load(), sl.generation.Load()
	trailer := make([]byte, trailerBytes)
	if err := readFull(f, trailer, s.segmentBytes-trailerBytes); err != nil {
		return nil, err
	}
	n, err := parseTrailer(trailer, uint32(s.segmentBytes), generation)
	if err != nil {
		return nil, err
	}
	footer := make([]byte, footerLength(n))
	if err := readFull(f, footer, s.segmentBytes-int64(len(footer))); err != nil {
		return nil, err
	}
	return parseFooter(footer, uint32(s.segmentBytes), generation)
}
