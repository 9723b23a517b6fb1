package ssd

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

const lockName = "LOCK"

// start opens the folder. Without it the tier is out, and tries again later.
func (s *Store) start() {
	begun := time.Now()
	err := s.load()
	s.removed.again = true // what is served from now on is not known in the folder
	if err != nil {
		_ = s.forget() // what was opened may be what fails
		s.health.leave(missing, err)
		return
	}
	s.health.enter(missing)
	s.o.Logger.Info("opened the SSD cache", "dir", s.o.Dir, "records", s.index.entries.Load(), "bytes", s.index.bytes.Load(),
		"segments", len(s.sealed), "seconds", time.Since(begun).Seconds())
}

// lockPatience is how long a mutable tier waits for a process that ends and still writes to the folder.
// Without it, it would have to begin empty later.
const lockPatience = 30 * time.Second

func (s *Store) takeLock() (io.Closer, error) {
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		l, err := s.o.FS.Lock(s.o.FS.PathJoin(s.o.Dir, lockName))
		held := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES)
		if !held || !s.o.Mutable || s.removed.again || time.Since(begun) > lockPatience {
			return l, err
		}
	}
}

// load reads the folder: the footers of sealed segments, and the records of the segment that was open.
func (s *Store) load() (err error) {
	if err := s.o.FS.MkdirAll(s.o.Dir, 0o755); err != nil {
		return err
	}
	if s.lock, err = s.takeLock(); err != nil {
		return err
	}
	var gone []Removal
	if s.o.Mutable {
		if gone, err = s.openRemoved(); err != nil {
			return err
		}
	}
	found, err := s.openSegments()
	if err != nil {
		return err
	}
	if err := s.clearIfDue(); err != nil {
		return err
	}
	for ahead := range slices.Chunk(found, readAhead) {
		footers := s.footers(ahead)
		for i, to := range ahead {
			entries := footers[i]
			if entries == nil {
				newest := to == found[len(found)-1] && s.slots[to].generation.Load() > s.floor.Load()
				if entries, err = s.unsealed(to, newest); err != nil {
					return err
				}
			}
			gone = s.replay(to, entries, gone)
			if s.open != to {
				s.sealed = append(s.sealed, to)
			}
		}
	}
	for _, e := range gone {
		s.index.take(e.hash)
	}
	for i := range s.slots {
		if s.slots[i].file.Load() == nil {
			s.free = append(s.free, i)
		}
	}
	if len(s.free) == 0 {
		s.free = append(s.free, s.dropOldest())
	}
	s.restore()
	return nil
}

// readAhead is how many segments are looked at at a time. One after the other took more than 2 s on a busy
// disk for the 300 segments of 20 GB. A footer has about 4,000 records of 16 bytes.
const readAhead = 32

// inParallel calls do with each of the first n numbers, and returns when all calls have.
func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// footers returns the records of segments, nil for those without a footer that is whole.
func (s *Store) footers(of []int) [][]located {
	found := make([][]located, len(of))
	inParallel(len(of), func(i int) {
		if entries, err := s.entries(of[i]); err == nil {
			found[i] = entries
		}
	})
	return found
}

// openSegments opens the segments of the folder and returns their slots, the oldest first. It removes files
// that hold no segment of the size that the tier has now.
func (s *Store) openSegments() (found []int, err error) {
	names, err := s.o.FS.List(s.o.Dir)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { _, ok := slotOf(name); return !ok })
	for ahead := range slices.Chunk(names, readAhead) {
		slots, errs := make([]int, len(ahead)), make([]error, len(ahead))
		inParallel(len(ahead), func(i int) { slots[i], errs[i] = s.openSegment(ahead[i]) })
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(slots, func(at int) bool { return at < 0 })...)
	}
	slices.SortFunc(found, func(a, b int) int {
		return cmp.Compare(s.slots[a].generation.Load(), s.slots[b].generation.Load())
	})
	if len(found) > 0 {
		s.generation = max(s.generation, s.slots[found[len(found)-1]].generation.Load())
	}
	return found, nil
}

// openSegment opens a file and returns its slot. It removes one that holds no segment, and returns -1.
func (s *Store) openSegment(name string) (at int, err error) {
	at, _ = slotOf(name)
	path := s.o.FS.PathJoin(s.o.Dir, name)
	if at >= len(s.slots) {
		return -1, s.o.FS.Remove(path)
	}
	f, err := s.o.FS.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return -1, err
	}
	header := make([]byte, headerBytes)
	var generation uint64
	if err = readFull(f, header, 0); err == nil {
		generation, err = parseHeader(header, uint32(s.segmentBytes))
	}
	if err != nil {
		return -1, errors.Join(f.Close(), s.o.FS.Remove(path))
	}
	s.slots[at].file.Store(hold(f))
	s.slots[at].generation.Store(generation)
	return at, nil
}

// unsealed returns the records of a segment without a footer, up to the first that is not whole. The newest
// segment is written on; another one gets its footer if the disk can be written.
func (s *Store) unsealed(at int, newest bool) ([]located, error) {
	entries, end, err := s.scan(at)
	if err != nil {
		return nil, err
	}
	s.open, s.end, s.footer = at, end, entries
	if newest {
		return entries, nil
	}
	if s.seal() == nil {
		s.sealed = s.sealed[:len(s.sealed)-1] // the caller adds it
	}
	s.open, s.footer = -1, nil
	return entries, nil
}

// scan reads the records of a segment.
func (s *Store) scan(at int) (entries []located, end int64, err error) {
	sl := &s.slots[at]
	f, generation := sl.file.Load(), sl.generation.Load()
	var b []byte
	for end = headerBytes; ; {
		b = slices.Grow(b[:0], recordBytes)[:recordBytes]
		if err = readFull(f, b, end); err != nil {
			break
		}
		n := recordLength(b)
		if n > maxRecordBytes || end+int64(n+footerLength(len(entries)+1)) > s.segmentBytes {
			break
		}
		b = slices.Grow(b[:0], n)[:n]
		if err = readFull(f, b, end); err != nil {
			break
		}
		hash, _, _, damage := parseRecord(b, generation)
		if damage != nil {
			break
		}
		entries = append(entries, located{hash, uint32(end), uint32(n)})
		end += int64(n)
	}
	if errors.Is(err, model.ErrCorrupt) {
		err = nil // the file ends here
	}
	return entries, end, err
}

// forget empties the tier, but not its folder, and gives the folder back.
func (s *Store) forget() error {
	for i := range s.slots {
		s.slots[i].forget()
	}
	s.index.clear()
	s.sealed, s.free, s.footer, s.open = nil, nil, nil, -1
	if s.lock == nil {
		return nil
	}
	err := s.lock.Close()
	s.lock = nil
	return err
}
