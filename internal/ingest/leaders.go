package ingest

import (
	"math"
	"sync"

	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// leaders are those that have taken the records of a partition. With each ship, the bucket is told which one
// had taken the last record. Whoever goes on asks brokers whether that leader's log still has it: after an
// unclean election or a power cut, other records may have its offset, and those were not read.
type leaders struct {
	mu  sync.Mutex
	all []led // ascending
}

// led says that a leader has taken the records from one on.
type led struct {
	from  uint64
	epoch int32
}

// mostLed bounds the changes that are remembered. Those that were shipped long ago are not asked for again.
const mostLed = 1024

// note says which leader has taken a record; negative: it is not known.
func (l *leaders) note(seq uint64, epoch int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.all); n > 0 && l.all[n-1].epoch == epoch {
		return
	}
	if len(l.all) == mostLed {
		l.all = append(l.all[:0:0], l.all[mostLed/2:]...)
	}
	l.all = append(l.all, led{seq, epoch})
}

// of returns the number of the leader that had taken a record, from 1; 0: it is not known.
func (l *leaders) of(seq uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.all) - 1; i >= 0; i-- {
		if x := l.all[i]; x.from <= seq {
			return uint64(int64(x.epoch) + 1)
		}
	}
	return 0
}

// leaderFor returns the leader of a record as a ship names it: ships that programs of an earlier version must
// read name none.
func (p *Partition) leaderFor(seq uint64) uint64 {
	if p.o.Version < topics.VersionLeaders {
		return 0
	}
	return p.leaders.of(seq)
}

// leaderOf returns the leader that had taken the last record before those that a partition begins with; nil:
// it is not known.
func leaderOf(shipped *catalog.Progress, begin uint64) *int32 {
	if shipped.Leaders == 0 || shipped.To != begin || shipped.Leaders > math.MaxInt32 {
		return nil
	}
	epoch := int32(shipped.Leaders - 1)
	return &epoch
}
