package ssd

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The file of removals has entries, one after the other: a record is gone. It is appended to, and written
// again without what concerns dropped segments when it is long.
//
//	entry: u64 generation of the segment, u64 hash, u32 offset of the record, u32 checksum of these
//
// No record has one of the two greatest offsets. They say that everything up to a generation was removed, and
// that everything is to be removed at a time, which is in place of the generation.
const (
	removedName  = "removed"
	removedBytes = 24
	removedAll   = 1<<32 - 1
	removedLater = 1<<32 - 2
	// mostRemoved bounds the entries: 24 MB.
	mostRemoved = 1 << 20
	// leastRemoved is when the file is looked at first.
	leastRemoved = 1 << 14

	bootName = "boot"
	clean    = "closed"
)

// removed is the file of removals. Any goroutine appends to it. Only writing is held while the disk works, so
// that noting a removal never waits for the disk.
type removed struct {
	mu      sync.Mutex
	pending []Removal // are not in the file yet
	noted   uint64    // counts all removals: the last one that is pending, or was

	recorded atomic.Uint64 // the last one that is in the file, or need not be
	clearsAt atomic.Uint32

	writing turn
	file    vfs.File
	end     int64
	taken   []Removal
	buffer  []byte
	limit   int64 // of entries, at which the file is written again

	// again says that this process has tried to open the folder before. What it has served since is not known
	// there.
	again bool
}

var errRemoved = errors.New("the file of removals is not open")

// turn is a mutex for which one can wait for a limited time.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) lock()   { t <- struct{}{} }
func (t turn) unlock() { <-t }

// lockWithin reports whether the lock was free within some time.
func (t turn) lockWithin(most time.Duration) bool {
	select {
	case t <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case t <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

// note adds an entry that the next append writes, whoever calls it, and returns its number.
func (r *removed) note(e Removal) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, e)
	r.noted++
	return r.noted
}

// drop forgets the entries that wait: what they remove is gone.
func (r *removed) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = r.pending[:0]
	r.recorded.Store(r.noted)
}

// append writes the entries that wait, and more. It returns the number of them.
func (r *removed) append(list ...Removal) (n int, err error) {
	r.writing.lock()
	defer r.writing.unlock()
	return r.appendLocked(list...)
}

func (r *removed) appendLocked(list ...Removal) (n int, err error) {
	r.mu.Lock()
	r.pending = append(r.pending, list...)
	r.noted += uint64(len(list))
	last := r.noted
	r.taken, r.pending = r.pending, r.taken[:0]
	r.mu.Unlock()
	if len(r.taken) == 0 {
		return 0, nil
	}
	if err := r.writeTaken(); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.taken, r.pending = r.pending[:0], append(r.taken, r.pending...)
		return 0, err
	}
	r.recorded.Store(last)
	return len(r.taken), nil
}

func (r *removed) writeTaken() error {
	if r.file == nil {
		return errRemoved
	}
	r.buffer = r.buffer[:0]
	for i := range r.taken {
		r.buffer = r.taken[i].append(r.buffer)
	}
	if _, err := r.file.WriteAt(r.buffer, r.end); err != nil {
		return err
	}
	r.end += int64(len(r.buffer))
	return nil
}

func (e *Removal) append(b []byte) []byte {
	from := len(b)
	b = binary.LittleEndian.AppendUint64(b, e.generation)
	b = binary.LittleEndian.AppendUint64(b, e.hash)
	b = binary.LittleEndian.AppendUint32(b, e.off)
	return binary.LittleEndian.AppendUint32(b, sum(0, b[from:]))
}

// parseRemoved reads entries. An end that is not whole was not acknowledged.
func parseRemoved(b []byte) (list []Removal, err error) {
	for ; len(b) >= removedBytes; b = b[removedBytes:] {
		if binary.LittleEndian.Uint32(b[20:]) != sum(0, b[:20]) {
			return nil, corrupt("the checksum of removal %d does not match", len(list))
		}
		list = append(list, Removal{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[16:])})
	}
	return list, nil
}

// readRemoved reads the file; a missing one is empty.
func (s *Store) readRemoved() ([]Removal, error) {
	f, err := s.o.FS.Open(s.o.FS.PathJoin(s.o.Dir, removedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	const most = 4 * mostRemoved * removedBytes
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(b) > most {
		return nil, corrupt("the file of removals is longer than %d bytes", most)
	}
	return parseRemoved(b)
}

// openRemoved makes sure of what may be kept of a folder, and opens the file of removals. It returns them in
// the order of the records that they remove. Of a mutable tier only.
func (s *Store) openRemoved() (list []Removal, err error) {
	keep := false
	if f, err := s.o.FS.Open(s.o.FS.PathJoin(s.o.Dir, bootName)); err == nil {
		b, err := io.ReadAll(io.LimitReader(f, 1<<10))
		_ = f.Close() // it was only read
		keep = err == nil && !s.removed.again && (string(b) == clean || s.o.Boot != "" && string(b) == s.o.Boot)
	}
	if list, err = s.readRemoved(); err != nil || !keep {
		if keep {
			s.o.Logger.Warn("the SSD cache begins empty: what was removed is not known", "dir", s.o.Dir, "err", err)
		}
		list, keep = nil, false
	}
	if !keep {
		names, err := s.o.FS.List(s.o.Dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if _, ok := slotOf(name); ok || name == removedName {
				if err := s.o.FS.Remove(s.o.FS.PathJoin(s.o.Dir, name)); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := s.writeFile(bootName, []byte(s.o.Boot)); err != nil {
		return nil, err
	}
	if err := s.syncFolder(); err != nil {
		return nil, err
	}
	s.removed.drop() // what waits is of what was here before
	s.removed.writing.lock()
	err = s.reopenRemoved(int64(len(list)))
	s.removed.writing.unlock()
	if err != nil {
		return nil, err
	}
	s.learn(list)
	slices.SortStableFunc(list, func(a, b Removal) int {
		return cmp.Or(cmp.Compare(a.generation, b.generation), cmp.Compare(a.off, b.off))
	})
	return slices.DeleteFunc(list, func(e Removal) bool { return e.off >= removedLater }), nil
}

// reopenRemoved opens the file, which has n entries.
func (s *Store) reopenRemoved(n int64) error {
	f, err := s.o.FS.OpenReadWrite(s.o.FS.PathJoin(s.o.Dir, removedName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if s.removed.file != nil {
		_ = s.removed.file.Close() // another one is in its place
	}
	s.removed.file, s.removed.end, s.removed.limit = f, n*removedBytes, max(2*n, leastRemoved)
	return nil
}

// learn applies the entries that concern everything, in the order in which they were written.
func (s *Store) learn(list []Removal) {
	floor, newest, later := uint64(0), uint64(0), uint64(0)
	for _, e := range list {
		switch e.off {
		case removedAll:
			floor, later = max(floor, e.generation), 0
			newest = max(newest, e.generation)
		case removedLater:
			later = e.generation
		default:
			newest = max(newest, e.generation)
		}
	}
	s.floor.Store(floor)
	s.generation = max(s.generation, newest)
	s.removed.clearsAt.Store(uint32(later))
}

// clearIfDue removes everything if that was to be done at a time at which no process was there.
func (s *Store) clearIfDue() error {
	if at := s.removed.clearsAt.Load(); at == 0 || int64(at) > s.o.Now().Unix() {
		return nil
	}
	s.floor.Store(s.generation)
	s.removed.clearsAt.Store(0)
	_, err := s.removed.append(Removal{s.generation, 0, removedAll})
	return err
}

// syncFolder makes names in the folder last.
func (s *Store) syncFolder() error {
	dir, err := s.o.FS.OpenDir(s.o.Dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// replay applies the records of a segment to the index, and the removals of segments up to it. It returns the
// removals that are left.
func (s *Store) replay(to int, entries []located, list []Removal) []Removal {
	generation := s.slots[to].generation.Load()
	for len(list) > 0 && list[0].generation < generation {
		s.index.take(list[0].hash)
		list = list[1:]
	}
	for _, at := range entries {
		if generation > s.floor.Load() {
			s.index.put(at.hash, to, at.off, at.n, 0)
		}
		for len(list) > 0 && list[0].generation == generation && list[0].off <= at.off {
			s.index.take(list[0].hash)
			list = list[1:]
		}
	}
	for len(list) > 0 && list[0].generation == generation {
		s.index.take(list[0].hash)
		list = list[1:]
	}
	return list
}

// trimRemoved writes the file of removals again when it is long, without those of dropped segments. If too
// many remain, it drops segments.
func (s *Store) trimRemoved() error {
	for {
		done, err := s.rewriteRemoved()
		if done || err != nil {
			return err
		}
		s.free = slices.Insert(s.free, 0, s.dropOldest())
	}
}

func (s *Store) rewriteRemoved() (done bool, err error) {
	r := &s.removed
	r.writing.lock()
	defer r.writing.unlock()
	if r.file == nil || r.end/removedBytes < r.limit {
		return true, nil
	}
	list, err := s.readRemoved()
	if err != nil {
		return false, err
	}
	all := Removal{off: removedAll, generation: s.floor.Load()}
	oldest := s.generation
	for _, at := range s.sealed {
		oldest = min(oldest, s.slots[at].generation.Load())
	}
	list = slices.DeleteFunc(list, func(e Removal) bool {
		if e.off == removedAll {
			all.generation = max(all.generation, e.generation)
		}
		return e.off >= removedLater || e.generation < oldest
	})
	if len(list) > mostRemoved/2 && len(s.sealed) > 0 {
		return false, nil
	}
	list = append(list, all)
	if at := r.clearsAt.Load(); at != 0 {
		list = append(list, Removal{off: removedLater, generation: uint64(at)})
	}
	var b []byte
	for _, e := range list {
		b = e.append(b)
	}
	s.m.wrote(len(b))
	if err := s.writeFile(removedName, b); err != nil {
		return false, err
	}
	if err := s.reopenRemoved(int64(len(list))); err != nil {
		// What is open has no name any more: nothing that is written to it would be read again.
		_ = r.file.Close()
		r.file = nil
		return false, err
	}
	return true, nil
}

// closeRemoved ends the file of removals. If everything was written, the folder may be kept.
func (s *Store) closeRemoved(written bool) error {
	r := &s.removed
	r.writing.lock()
	defer r.writing.unlock()
	if r.file == nil {
		return nil
	}
	err := r.file.Sync()
	err = errors.Join(err, r.file.Close())
	r.file = nil
	if written && err == nil {
		err = s.writeFile(bootName, []byte(clean))
	}
	return err
}
