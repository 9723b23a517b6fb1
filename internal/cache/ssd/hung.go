package ssd

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// hungAfter is after how long an operation of the disk counts as hung. A disk that works answers within a
// fraction of a second, also when it is busy.
const hungAfter = 5 * time.Second

var errHung = fmt.Errorf("%w: SSD cache: the disk does not answer", model.ErrTransient)

// flying knows which operations the disk has not finished. The operations themselves cannot be stopped, so
// whoever waits for one waits until the disk answers, and others are kept from beginning one.
type flying struct {
	// busy is when the goroutine that writes last got something done, in Unix nanoseconds; 0: it has nothing to
	// do.
	busy atomic.Int64
	// reads is the reads in progress, by the time at which they began, in quarters of the patience.
	reads [16]atomic.Int64
}

// progress says that the goroutine that writes has got something done.
func (s *Store) progress() { s.busy.Store(time.Now().UnixNano()) }

// reading counts a read. Its end is Add(-1).
func (s *Store) reading(now time.Time) *atomic.Int64 {
	n := &s.flying.reads[s.quarter(now)%len(s.flying.reads)]
	n.Add(1)
	return n
}

func (s *Store) quarter(t time.Time) int { return int(t.UnixNano() / int64(s.patience/4)) }

// hangs reports whether an operation has taken longer than the patience. A read that takes four times as long
// looks young for a moment; the tier is out by then.
func (s *Store) hangs(now time.Time) bool {
	if since := s.busy.Load(); since != 0 && now.UnixNano()-since > int64(s.patience) {
		return true
	}
	// A read of five quarters ago has taken at least four.
	for ago := 5; ago < len(s.flying.reads); ago++ {
		if s.flying.reads[(s.quarter(now)-ago)%len(s.flying.reads)].Load() > 0 {
			return true
		}
	}
	return false
}

// watch takes the tier out when the disk hangs. It is not done by the goroutine that writes, which would hang
// with it.
func (s *Store) watch() {
	tick := time.NewTicker(s.patience / 4)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-tick.C:
			if s.hangs(now) {
				s.health.leave(hung, errHung)
			}
		}
	}
}

// unhang brings the tier back, once the disk has finished everything.
func (s *Store) unhang() {
	for i := range s.flying.reads {
		if s.flying.reads[i].Load() > 0 {
			return
		}
	}
	s.health.enter(hung)
}
