package ingest

import (
	"sync"
	"time"
)

// shares divides the memory of a process among its partitions, whose number changes. A partition takes its
// share when it is opened. If there are more partitions than shares, they are doubled, and those with a
// larger share are opened again, one after the other: together they would take more than there is.
type shares struct {
	w *Owner

	mu sync.Mutex
	n  int // a power of two
	// partitions is how many there are.
	partitions int
	// few is since when half as many shares would do; zero: they would not.
	few     time.Time
	running bool
}

func newShares(w *Owner) *shares { return &shares{w: w, n: 1} }

// now returns how many shares there are.
func (s *shares) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// resize says how many partitions there are. Shares grow at once, and shrink after a while: partitions often
// leave while others start, and come back.
func (s *shares) resize(partitions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partitions = partitions; !s.w.o.Moves {
		s.n = max(s.n, partitions)
		return
	}
	for s.n < partitions {
		s.n *= 2
	}
	if partitions > 0 && s.n/2 >= partitions {
		if s.few.IsZero() {
			s.few = time.Now()
		}
	} else {
		s.few = time.Time{}
	}
	if !s.running {
		s.running = true
		s.w.ended.Go(s.adjust)
	}
}

// adjustEvery is the time between two partitions that are opened again.
const adjustEvery = time.Second

// adjust opens partitions again whose share is another one now, until the owner stops.
func (s *shares) adjust() {
	tick := time.NewTicker(adjustEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.w.ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		if !s.few.IsZero() && time.Since(s.few) > s.w.o.Shrink {
			for s.n/2 >= s.partitions {
				s.n /= 2
			}
			s.few = time.Time{}
		}
		n := s.n
		s.mu.Unlock()
		s.w.reopenOne(n)
	}
}

// reopenOne ends the life of a partition with another share, unless one is being opened.
func (w *Owner) reopenOne(shares int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var next *owned
	for _, x := range w.all {
		x.mu.Lock()
		if x.held && x.p == nil && x.state != Stopped {
			x.mu.Unlock()
			return
		}
		if x.held && x.p != nil && x.shares != shares {
			next = x
		}
		x.mu.Unlock()
	}
	if next != nil {
		next.mu.Lock()
		defer next.mu.Unlock()
		if next.p != nil && next.held {
			w.o.Logger.Info("opening a partition again with another share of the memory", "partition", next.number, "shares", shares)
			next.end(errResized)
		}
	}
}
