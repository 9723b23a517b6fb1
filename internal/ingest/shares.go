package ingest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
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

const (
	// adjustEvery is the time between two partitions that are opened again.
	adjustEvery = time.Second
	// adjustAgain is the pause after a ship that failed.
	adjustAgain = 10 * time.Second
)

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
		tick.Reset(adjustEvery)
		if err := s.w.reopenOne(n); err != nil {
			s.w.o.Logger.Warn("a partition keeps its share of the memory until it can be shipped", "err", err)
			tick.Reset(adjustAgain)
		}
	}
}

// reopenOne ends the life of a partition with another share, once it is shipped: what keeps a ship away would
// keep the partition from opening, too.
func (w *Owner) reopenOne(shares int) error {
	x, p := w.otherShare(shares)
	if x == nil {
		return nil
	}
	if err := p.Ship(w.ctx); err != nil { // reading goes on
		return fmt.Errorf("partition %d: %w", x.number, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.p == p && x.held {
		w.o.Logger.Info("opening a partition again with another share of the memory", "partition", x.number, "shares", shares)
		x.close(errResized)
	}
	return nil
}

// otherShare returns a partition with another share. It returns none while one is being opened, or waits for
// what may come back, such as brokers: others might not open either.
func (w *Owner) otherShare(shares int) (next *owned, p *Partition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.all {
		x.mu.Lock()
		opening := x.held && x.p == nil && (x.state != Stopped || errors.Is(x.err, model.ErrTransient))
		if x.held && x.p != nil && x.shares != shares {
			next, p = x, x.p
		}
		x.mu.Unlock()
		if opening {
			return nil, nil
		}
	}
	return next, p
}
