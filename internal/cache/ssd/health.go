package ssd

import (
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// cause is why the tier is out.
type cause uint32

const (
	// slow: half of the reads of slowWindow took longer than slowRead.
	slow cause = 1 << iota
	// failing: failedReads reads in a row failed.
	failing
	// full: the file system has less room than its reserve, or says so itself.
	full
	// unwritable: a write failed for another reason.
	unwritable
	// missing: the folder is not there, or cannot be opened.
	missing
	// hung: a read or a write does not return.
	hung
)

func causes() []cause { return []cause{slow, failing, full, unwritable, missing, hung} }

func (c cause) String() string {
	return map[cause]string{slow: "slow", failing: "failing", full: "full", unwritable: "unwritable", missing: "missing", hung: "hung"}[c]
}

const (
	slowRead    = 50 * time.Millisecond
	slowWindow  = 30 // minutes
	slowReads   = 100
	failedReads = 5
	// A tier that was slow returns when more than half of probeReads reads were fast, one that was failing after
	// goodReads in a row.
	probeReads, goodReads = 30, 3
	probeBytes            = 4096
	// Of a file system, a share stays free, so that a full cache does not fill the disk of others.
	reservePercent = 5
	greatestSpare  = 16 << 30
)

var errFull = errors.New("the file system has no room for a segment besides its reserve")

// health knows whether the disk may be used. Queries report their reads to it; the goroutine that writes
// decides.
type health struct {
	out    atomic.Uint32 // causes
	log    *slog.Logger
	dir    string
	failed atomic.Int64 // reads in a row
	minute atomic.Int64 // index in window
	window [slowWindow]struct{ reads, slow atomic.Int64 }

	// The rest is of the goroutine that writes.

	minuteEnds    time.Time
	minutes       int // that the window covers
	probes, sound int
}

func (h *health) begin(s *Store) {
	h.log, h.dir = s.o.Logger, s.o.Dir
	h.restart(s.o.Now())
}

// restart forgets the latencies of reads.
func (h *health) restart(now time.Time) {
	for i := range h.window {
		h.window[i].reads.Store(0)
		h.window[i].slow.Store(0)
	}
	h.minutes, h.minuteEnds = 0, now.Add(time.Minute)
	h.probes, h.sound = 0, 0
	h.failed.Store(0)
}

func (h *health) readable() bool { return cause(h.out.Load())&(slow|failing|missing|hung) == 0 }
func (h *health) writable() bool { return h.out.Load() == 0 }

func (h *health) has(c cause) bool { return cause(h.out.Load())&c != 0 }

// leave takes the tier out.
func (h *health) leave(c cause, err error) {
	if cause(h.out.Or(uint32(c)))&c == 0 {
		h.log.Warn("the SSD cache is not used, or only read, until its disk recovers", "dir", h.dir, "cause", c.String(), "reads", h.readable(), "err", err)
	}
}

// enter ends a cause.
func (h *health) enter(c cause) {
	if cause(h.out.And(^uint32(c)))&c != 0 {
		h.log.Info("a problem of the SSD cache has ended", "dir", h.dir, "was", c.String(), "in_use", h.writable())
	}
}

// observe counts a read of a query.
func (h *health) observe(took time.Duration, err error) {
	w := &h.window[h.minute.Load()]
	w.reads.Add(1)
	if took > slowRead {
		w.slow.Add(1)
	}
	switch {
	case err == nil || errors.Is(err, model.ErrCorrupt):
		if h.failed.Load() != 0 {
			h.failed.Store(0)
		}
	case h.failed.Add(1) >= failedReads:
		h.leave(failing, err)
	}
}

// writeFailed takes the tier out because of a failed write. Reads go on.
func (h *health) writeFailed(err error) {
	if vfs.IsNoSpaceError(err) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, errFull) {
		h.leave(full, err)
		return
	}
	h.leave(unwritable, err)
}

// turn begins a new minute of the window when one is over, and decides whether the disk is slow.
func (h *health) turn(now time.Time) {
	if now.Before(h.minuteEnds) {
		return
	}
	h.minutes = min(h.minutes+1, slowWindow)
	var reads, tardy int64
	for i := range h.window {
		reads += h.window[i].reads.Load()
		tardy += h.window[i].slow.Load()
	}
	if h.minutes == slowWindow && reads >= slowReads && 2*tardy > reads && !h.has(slow) {
		h.leave(slow, errors.New("half of the reads of 30 minutes took longer than 50 ms"))
		h.restart(now)
		return
	}
	next := (h.minute.Load() + 1) % slowWindow
	h.window[next].reads.Store(0)
	h.window[next].slow.Store(0)
	h.minute.Store(next)
	h.minuteEnds = now.Add(time.Minute)
}

// tick looks after the disk, and saves what a restart needs.
func (s *Store) tick(now time.Time) {
	h := &s.health
	s.budget.refill(now)
	if _, err := s.o.FS.Stat(s.o.FS.PathJoin(s.o.Dir, lockName)); errors.Is(err, fs.ErrNotExist) && !h.has(missing) {
		h.leave(missing, err)
		_ = s.forget() // the files are gone
	}
	if h.has(missing) {
		if s.start(); h.has(missing) {
			return
		}
	}
	h.turn(now)
	s.keepRoom()
	if err := s.trimRemoved(); err != nil {
		h.writeFailed(err)
	}
	if h.has(hung) && s.writeProbe() == nil {
		s.unhang()
	}
	if h.has(full|unwritable) && s.writeProbe() == nil {
		if room, err := s.room(0); err == nil && room {
			h.enter(full)
		}
		h.enter(unwritable)
	}
	if h.has(slow | failing) {
		s.readProbe(now)
	}
	if h.writable() && !now.Before(s.nextSaved) {
		s.save(now)
	}
}

// room reports whether so many bytes can be written and leave the file system its reserve.
func (s *Store) room(bytes int64) (bool, error) {
	u, err := s.o.FS.GetDiskUsage(s.o.Dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	reserve := min(u.TotalBytes/100*reservePercent, greatestSpare)
	return u.AvailBytes >= reserve+uint64(bytes), nil
}

// keepRoom removes the oldest segments while the file system has less room than its reserve.
func (s *Store) keepRoom() {
	for {
		room, err := s.room(0)
		if err != nil || room {
			return
		}
		s.health.leave(full, errFull)
		at := -1
		for i, f := range s.free {
			if s.slots[f].file.Load() != nil {
				at, s.free = f, append(s.free[:i], s.free[i+1:]...)
				break
			}
		}
		if at < 0 {
			if len(s.sealed) == 0 {
				return
			}
			at = s.dropOldest()
		}
		s.slots[at].forget()
		s.free = append(s.free, at)
		if err := s.o.FS.Remove(s.o.FS.PathJoin(s.o.Dir, segmentName(at))); err != nil {
			s.health.writeFailed(err)
			return
		}
	}
}

// writeProbe writes a small file.
func (s *Store) writeProbe() error {
	return s.writeFile("probe", []byte(strings.Repeat("p", probeBytes)))
}

// readProbe reads somewhere in the tier, and lets it return when the disk has recovered.
func (s *Store) readProbe(now time.Time) {
	h := &s.health
	begun := time.Now()
	var err error
	if len(s.sealed) > 0 {
		f := s.slots[s.sealed[rand.IntN(len(s.sealed))]].file.Load()
		err = readFull(f, make([]byte, probeBytes), rand.Int64N(s.segmentBytes-probeBytes))
		if errors.Is(err, model.ErrCorrupt) {
			err = nil
		}
	} else {
		err = s.writeProbe()
	}
	h.probes++
	if err == nil && time.Since(begun) <= slowRead {
		h.sound++
	} else if h.has(failing) {
		h.probes, h.sound = 0, 0
	}
	if h.has(failing) && h.sound >= goodReads {
		h.enter(failing)
		h.restart(now)
	}
	if h.has(slow) && h.probes >= probeReads {
		if 2*h.sound > h.probes {
			h.enter(slow)
		}
		h.restart(now)
	}
}
