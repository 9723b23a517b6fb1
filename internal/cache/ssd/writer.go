package ssd

import (
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// run writes what is admitted, and looks after the disk, until the tier is closed.
func (s *Store) run() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			s.drain()
			return
		case w := <-s.queue:
			s.progress()
			s.write(w)
		case <-tick.C:
			s.progress()
			s.tick(s.o.Now())
		}
		s.busy.Store(0)
	}
}

// drain writes what is in the queue now.
func (s *Store) drain() {
	for {
		select {
		case w := <-s.queue:
			s.progress()
			s.write(w)
		default:
			return
		}
	}
}

// finish makes the tier ready for the next start.
func (s *Store) finish() error {
	if s.lock == nil {
		return nil
	}
	if s.health.writable() {
		if s.open >= 0 {
			if err := s.slots[s.open].file.Load().SyncData(); err != nil {
				s.health.writeFailed(err)
			}
		}
		s.save(s.o.Now())
	}
	return errors.Join(s.closeRemoved(s.health.writable()), s.forget())
}

// write appends a value to the log, unless it is there or may not be written.
func (s *Store) write(w write) {
	s.queued.Add(-int64(len(w.value)))
	if !s.health.writable() {
		s.m.refused(refusedOut)
		return
	}
	if _, ok := s.index.get(w.hash); ok {
		return
	}
	n := recordBytes + keyBytes(w.key) + len(w.value)
	if s.index.entries.Load() >= s.maxEntries {
		if len(s.sealed) == 0 {
			s.m.refused(refusedIndex)
			return
		}
		s.free = slices.Insert(s.free, 0, s.dropOldest())
	}
	if !s.budget.spend(int64(n), s.o.Now()) {
		s.filter.Retry(w.hash, w.query)
		s.m.refused(refusedBudget)
		return
	}
	if !s.fits(n) {
		if err := s.next(); err != nil {
			s.health.writeFailed(err)
			return
		}
	}
	s.key = appendKey(s.key[:0], w.key)
	done, err := s.append(w.hash, s.key, w.value, w.query, func(g *gate) bool { return !s.o.Mutable || g.stamp == w.stamp })
	if err != nil {
		s.health.writeFailed(err)
		return
	}
	if !done {
		return
	}
	s.m.admitted.Inc()
	s.o.Account.Admitted()
}

// fits reports whether the open segment has room for a record of n bytes and its entry in the footer.
func (s *Store) fits(n int) bool {
	return s.open >= 0 && s.slots[s.open].generation.Load() > s.floor.Load() && s.end+int64(n+footerLength(len(s.footer)+1)) <= s.segmentBytes
}

// append writes a record to the open segment, which has room for it, if it is valid at the gate of its hash.
// It reports whether the record can be found: its key may be removed while it is written.
func (s *Store) append(hash uint64, key, value []byte, query uint16, valid func(*gate) bool) (done bool, err error) {
	to := &s.slots[s.open]
	generation, off := to.generation.Load(), uint32(s.end)
	g := s.gate(hash)
	g.mu.Lock()
	if !valid(g) {
		g.mu.Unlock()
		return false, nil
	}
	g.written = Removal{generation, hash, off}
	g.mu.Unlock()

	s.record = appendRecord(s.record[:0], generation, hash, key, value)
	_, err = to.file.Load().WriteAt(s.record, s.end)
	s.progress()

	g.mu.Lock()
	defer g.mu.Unlock()
	kept := g.written.generation != 0
	g.written = Removal{}
	if err != nil {
		if s.o.Mutable && kept { // it may have been written all the same
			g.noted = s.removed.note(Removal{generation, hash, off})
		}
		return false, err
	}
	n := uint32(len(s.record))
	s.footer = append(s.footer, located{hash, off, n})
	s.end += int64(n)
	s.m.written.Add(float64(n))
	s.o.Account.Wrote(int64(n))
	if kept {
		s.index.put(hash, s.open, off, n, query)
	}
	return kept, nil
}

// next seals the open segment and opens another one. When no slot is left for the one after it, it reclaims
// the oldest segment.
func (s *Store) next() error {
	if err := s.seal(); err != nil {
		return err
	}
	if !s.hasSpare() {
		if len(s.sealed) == 0 {
			return errFull
		}
		s.free = slices.Insert(s.free, 0, s.dropOldest())
	}
	to := s.free[0]
	if err := s.begin(to); err != nil {
		s.slots[to].generation.Store(0)
		return err
	}
	s.free = s.free[1:]
	if s.hasSpare() || len(s.sealed) == 0 {
		return nil
	}
	if err := s.reinsert(s.sealed[0]); err != nil {
		return err
	}
	s.free = slices.Insert(s.free, 0, s.dropOldest())
	return nil
}

// hasSpare reports whether a segment can begin in a free slot: in one that has a file, or else in a new file
// if the file system has room for it.
func (s *Store) hasSpare() bool {
	if len(s.free) == 0 {
		return false
	}
	if s.slots[s.free[0]].file.Load() != nil {
		return true
	}
	room, err := s.room(s.segmentBytes)
	room = room && err == nil
	if room == s.cramped {
		s.cramped = !room
		s.logRoom(err)
	}
	return room
}

// logRoom says that the file system has no room for the whole cache, or has it again.
func (s *Store) logRoom(err error) {
	if !s.cramped {
		s.o.Logger.Info("the file system has room for more of the SSD cache again", "dir", s.o.Dir)
		return
	}
	if err == nil {
		err = errFull
	}
	s.o.Logger.Warn("the SSD cache stays smaller than its setting", "dir", s.o.Dir, "segments", len(s.sealed),
		"bytes", int64(len(s.sealed))*s.segmentBytes, "setting", int64(len(s.slots))*s.segmentBytes, "err", err)
}

// begin opens a segment in a free slot.
func (s *Store) begin(to int) error {
	sl := &s.slots[to]
	if sl.file.Load() == nil {
		f, err := s.o.FS.OpenReadWrite(s.o.FS.PathJoin(s.o.Dir, segmentName(to)), vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		sl.file.Store(hold(f))
		if err := f.Preallocate(0, s.segmentBytes); vfs.IsNoSpaceError(err) { // other file systems cannot
			return err
		}
	}
	s.generation++
	sl.generation.Store(s.generation)
	header := appendHeader(nil, uint32(s.segmentBytes), s.generation)
	if _, err := sl.file.Load().WriteAt(header, 0); err != nil {
		return err
	}
	sl.begun = s.o.Now()
	s.open, s.end, s.footer = to, headerBytes, s.footer[:0]
	return nil
}

// seal writes the footer of the open segment, if there is one, and syncs it.
func (s *Store) seal() error {
	if s.open < 0 {
		return nil
	}
	sl := &s.slots[s.open]
	f := sl.file.Load()
	footer := appendFooter(nil, sl.generation.Load(), s.footer)
	if _, err := f.WriteAt(footer, s.segmentBytes-int64(len(footer))); err != nil {
		return err
	}
	s.m.written.Add(float64(len(footer)))
	s.o.Account.Wrote(int64(len(footer)))
	if err := f.SyncData(); err != nil {
		return err
	}
	s.sealed = append(s.sealed, s.open)
	s.open = -1
	return nil
}
