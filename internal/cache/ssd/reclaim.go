package ssd

import (
	"time"

	"github.com/shaledb/shale/internal/cache/admit"
)

// reinsert writes those records of the oldest segment once more that are worth it, as [admit.Reinsert] says.
func (s *Store) reinsert(from int) error {
	entries, err := s.entries(from)
	if err != nil {
		return nil // there is nothing to go by; the caller drops the segment
	}
	find := func(at located) (entry, bool) {
		e, ok := s.index.get(at.hash)
		return e, ok && int(e.slot) == from && e.off == at.off && s.fits(int(at.n))
	}
	return admit.Reinsert(s.segmentBytes, len(entries), func(i int) (int, int64) {
		if e, ok := find(entries[i]); ok {
			return e.uses(), int64(entries[i].n)
		}
		return 0, 0
	}, func(i int) (bool, error) {
		e, ok := find(entries[i])
		if !ok {
			return false, nil
		}
		return s.move(from, entries[i], e.query)
	})
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
	moved, err = s.append(hash, key, value, query, func(*gate) bool {
		e, ok := s.index.get(hash)
		return ok && int(e.slot) == from && e.off == at.off // it was not removed while it was read
	})
	if err != nil || !moved {
		return false, err
	}
	s.budget.spendAnyway(int64(at.n))
	s.m.reinserted.Add(float64(at.n))
	return true, nil
}

// dropOldest removes the oldest segment from the index, and returns its slot, which keeps its file.
func (s *Store) dropOldest() int {
	from := s.sealed[0]
	if s.o.Mutable {
		// Its file stays as it is for now. That its records are gone is known before any of them is.
		if err := s.note(Removal{s.slots[from].generation.Load(), 0, removedAll}); err != nil {
			s.health.writeFailed(err)
		}
	}
	s.sealed = s.sealed[1:]
	after := time.Duration(0)
	if begun := s.slots[from].begun; !begun.IsZero() {
		after = s.o.Now().Sub(begun)
	}
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
			s.o.Account.Evicted(int64(at.n), e.uses() > 0, after)
		}
	}
	s.slots[from].generation.Store(0)
	s.slots[from].begun = time.Time{}
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
