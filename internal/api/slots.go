package api

import (
	"github.com/shaledb/shale/internal/pressure"
	"github.com/shaledb/shale/internal/turns"
)

// Slots are the turns of queries. The gates of several dialects may share them.
//
// While several tenants send requests, each leaves a quarter of the turns to the others. While goroutines
// wait long for a processor, each has fewer: at least half as many as there are processors, and at least two,
// of which one may wait for a bucket.
type Slots struct {
	*turns.Queue
	// Requests that wait for memory are counted apart: they must not keep light ones from waiting for a turn.
	forMemory waiters
}

// NewSlots returns n turns, and at least one.
func NewSlots(n int) *Slots {
	n = max(n, 1)
	return newSlots(n, pressure.New(min(max(2, pressure.Processors()/2), n-n/4), n-n/4))
}

func newSlots(n int, share *pressure.Share) *Slots {
	s := &Slots{Queue: turns.New(n, share)}
	s.forMemory.most = turns.WaitersPerTurn * int64(max(n, 1))
	s.SetMostPaused(pausesPerTurn * max(n, 1))
	return s
}

// BoundPauses lets fewer requests pause where queries have little memory: at most a quarter of it is for
// their compressors.
func (s *Slots) BoundPauses(queryBytes int64) {
	s.BoundPaused(int(queryBytes / 4 / compressorBytes))
}
