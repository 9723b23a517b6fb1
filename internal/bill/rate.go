package bill

import (
	"context"
	"sync"
	"time"
)

// Bucket is the part of the bucket that queries read with.
type Bucket interface {
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
}

const (
	// parallelRequests is how many requests of one query are under way at a time, at most: see the lanes of
	// package archive.
	parallelRequests = 16
	// assumedSeconds is the time of a request before the first one has been measured. It is about that of an
	// object store in the same region.
	assumedSeconds = 0.02
	// remembered is about how many requests the mean goes back.
	remembered = 256
)

// Rate measures how long requests of queries to a bucket take.
type Rate struct {
	next Bucket

	mu      sync.Mutex
	seen    int64
	seconds float64 // the mean of a request, of which later ones count more
}

// Watch returns a bucket whose reads are measured.
func Watch(next Bucket) *Rate { return &Rate{next: next} }

// GetRange returns n bytes of an object from off.
func (r *Rate) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	began := time.Now()
	b, err := r.next.GetRange(ctx, name, off, n)
	if err == nil {
		r.add(time.Since(began).Seconds())
	}
	return b, err
}

func (r *Rate) add(seconds float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	r.seconds += (seconds - r.seconds) / float64(min(r.seen, remembered))
}

// request returns the mean time of a request, and whether it was measured.
func (r *Rate) request() (seconds float64, measured bool) {
	if r == nil {
		return assumedSeconds, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == 0 {
		return assumedSeconds, false
	}
	return r.seconds, true
}

// Mean returns the mean time of a request, or 0 if none has been measured.
func (r *Rate) Mean() time.Duration {
	seconds, measured := r.request()
	if !measured {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}
