package ingest

import (
	"sync"
	"time"
)

// appended is when brokers took the records of a partition, for some of them. With each ship, the bucket is
// told how far it is in time. If later records are lost, that bounds the times of their rows.
type appended struct {
	mu  sync.Mutex
	all []taken // ascending
}

// taken says when a record was taken.
type taken struct {
	seq uint64
	at  int64 // Unix nanoseconds
}

// mostTaken bounds the records that are remembered, and takenEvery is how far they are apart at least. A time
// that is too early by some seconds bounds less, and is right all the same.
const (
	mostTaken  = 1024
	takenEvery = int64(time.Second)
)

// note says when a record was taken. Its number is greater than those before.
func (a *appended) note(seq uint64, at int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.all)
	if n > 0 && at-a.all[n-1].at < takenEvery {
		return
	}
	if n == mostTaken { // ships are of recent records: of the others, fewer and fewer will do
		for i := range n / 2 {
			a.all[i] = a.all[2*i]
		}
		a.all = a.all[:n/2]
	}
	a.all = append(a.all, taken{seq, at})
}

// of returns when a record was taken, or one before it; 0: it is not known.
func (a *appended) of(seq uint64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.all) - 1; i >= 0; i-- {
		if a.all[i].seq <= seq {
			return a.all[i].at
		}
	}
	return 0
}
