package ssd

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/cache"
)

// A mutable tier has keys whose values change. Its owner, a server, tells it what was removed before it
// acknowledges that, and decides itself which values wait for a second reader: none wait here.
//
// Of a removal, the tier takes two steps. Forget takes the record out of the index, so that this process
// never returns it, and Record notes in a file of its own that it is gone, so that the next process does not
// either. What the process has written survives its death, by whatever signal. It does not survive that of
// the machine, so a tier that was not closed before the machine started again begins empty.

// gates is the number of locks that order changes of keys and writes of their records.
const gates = 1024

// gate orders what happens to the keys of some hashes. A record that was on its way to the log when its key
// was removed has another stamp and is not written. It is not held while the disk works.
type gate struct {
	mu    sync.Mutex
	stamp uint32
	// written is the record that is being written, if there is one: it is in no index yet. Its generation is 0
	// once its key was removed.
	written Removal
	// noted is the number of the last removal that was noted, of any of the hashes.
	noted uint64
}

func (s *Store) gate(hash uint64) *gate { return &s.gates[hash%gates] }

// Removal names a record that was removed.
type Removal struct {
	generation, hash uint64
	off              uint32
}

// Wants tells a mutable tier that a reader wants the value of a hash, which the owner has in memory. It
// reports whether the value is to be Put.
func (s *Store) Wants(hash uint64, reader uint16) bool {
	if _, ok := s.index.use(hash, reader); ok || !s.health.writable() {
		return false
	}
	return s.filter.Offer(hash, reader, 0, offer{})
}

// Put gives a mutable tier a value that it wants. It does not wait. The caller ensures that the value is that
// of the key until Put returns.
func (s *Store) Put(k cache.Key, reader uint16, value []byte) {
	if len(value) > s.largestValue() || keyBytes(k) > maxKeyBytes {
		s.m.refused(refusedSize)
		return
	}
	s.enqueue(s.stamped(k, reader, value))
}

func (s *Store) stamped(k cache.Key, reader uint16, value []byte) write {
	w := write{offer: offer{k, value}, hash: k.Hash(), query: reader}
	g := s.gate(w.hash)
	g.mu.Lock()
	w.stamp = g.stamp
	g.mu.Unlock()
	return w
}

// Keep is Put of a value that is written whether the tier wants it or not. It waits for room until the
// context ends, and reports whether it is worth going on.
func (s *Store) Keep(ctx context.Context, k cache.Key, reader uint16, value []byte) bool {
	n := int64(len(value))
	switch {
	case !s.health.writable():
		return false
	case len(value) > s.largestValue() || n > s.maxQueued || keyBytes(k) > maxKeyBytes:
		s.m.refused(refusedSize)
		return true
	}
	w := s.stamped(k, reader, value)
	for s.queued.Load()+n > s.maxQueued {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(freshPause):
		}
	}
	s.queued.Add(n)
	select {
	case s.queue <- w:
		return true
	case <-ctx.Done():
		s.queued.Add(-n)
		return false
	}
}

// Forget removes what the tier has of a hash, or is about to write, from what it returns. It does not wait
// for the disk. The caller calls Record with the mark before it tells anyone that the value is gone. There
// may be a mark if the tier had nothing: another goroutine may have forgotten an older value of the hash, and
// not have recorded that yet. 0: nothing needs to be recorded.
func (s *Store) Forget(hash uint64) (mark uint64) {
	g := s.gate(hash)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stamp++
	if g.written.hash == hash && g.written.generation != 0 {
		g.noted = s.removed.note(g.written)
		g.written.generation = 0
	}
	if e, ok := s.index.take(hash); ok {
		// Its next value is worth a write, too, but not each of many at one time.
		s.filter.Retry(hash, e.query)
		// 0: its segment was dropped meanwhile.
		if generation := s.slots[e.slot].generation.Load(); generation != 0 {
			g.noted = s.removed.note(Removal{generation, hash, e.off})
		}
	}
	if g.noted <= s.removed.recorded.Load() {
		return 0
	}
	return g.noted
}

// Record makes all removals up to a mark last. If that cannot be written, the tier gives all its files up,
// and if that fails, too, Record does. A tier whose folder is not open needs no record: it begins empty. If
// the disk works for someone else and does not answer, Record fails after some seconds.
func (s *Store) Record(mark uint64) error {
	if mark <= s.removed.recorded.Load() {
		return nil
	}
	if !s.removed.writing.lockWithin(s.patience) {
		return errHung
	}
	defer s.removed.writing.unlock()
	if mark <= s.removed.recorded.Load() {
		return nil // the holder of the lock has written it
	}
	return s.noteLocked()
}

// note records a removal of the goroutine that writes, with all that was forgotten.
func (s *Store) note(e Removal) error {
	s.removed.writing.lock()
	defer s.removed.writing.unlock()
	return s.noteLocked(e)
}

func (s *Store) noteLocked(more ...Removal) error {
	n, err := s.removed.appendLocked(more...)
	switch {
	case err == nil:
		s.m.wrote(removedBytes * n)
		return nil
	case s.health.has(missing):
		return nil
	}
	s.health.writeFailed(err)
	if err := s.abandon(); err != nil {
		return err
	}
	s.removed.drop()
	return nil
}

// Clear removes everything. It is recorded when it returns.
func (s *Store) Clear() error {
	for i := range s.gates {
		s.gates[i].mu.Lock()
	}
	// Nothing is written or moved now. What was on its way keeps its old stamp.
	newest := uint64(0)
	for i := range s.slots {
		newest = max(newest, s.slots[i].generation.Load())
	}
	s.floor.Store(newest)
	s.index.clear()
	// Until this is recorded, everything that changes must wait for it: the records of its key may be there.
	mark := s.removed.note(Removal{newest, 0, removedAll})
	for i := range s.gates {
		g := &s.gates[i]
		g.stamp++
		g.noted, g.written.generation = mark, 0
		g.mu.Unlock()
	}
	if err := s.Record(mark); err != nil {
		return err
	}
	s.removed.clearsAt.Store(0)
	return nil
}

// ClearAt notes that the owner wants everything removed at a Unix time: if the process ends before, the next
// one learns of it by ClearsAt, or begins empty.
func (s *Store) ClearAt(at uint32) error {
	if err := s.Record(s.removed.note(Removal{uint64(at), 0, removedLater})); err != nil {
		return err
	}
	s.removed.clearsAt.Store(at)
	return nil
}

// ClearsAt returns the time of the last ClearAt that is still to come, or 0.
func (s *Store) ClearsAt() uint32 { return s.removed.clearsAt.Load() }

// abandon removes all segments from the folder, and its lock, so that the tier begins again, empty.
func (s *Store) abandon() error {
	names, err := s.o.FS.List(s.o.Dir)
	var errs []error
	add := func(err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	add(err)
	for _, name := range names {
		if _, ok := slotOf(name); ok {
			add(s.o.FS.Remove(s.o.FS.PathJoin(s.o.Dir, name)))
		}
	}
	add(s.o.FS.Remove(s.o.FS.PathJoin(s.o.Dir, lockName)))
	return errors.Join(errs...)
}
