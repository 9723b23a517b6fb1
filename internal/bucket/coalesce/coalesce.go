package coalesce

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

const (
	// gatherTime is how long reads are gathered while requests wait for their turn anyway, or while more than
	// manyFlights requests for an object are in flight: one query has at most 8, so several queries read it.
	gatherTime, manyFlights = 5 * time.Millisecond, 8
	// maxBytes bounds a request made of several reads.
	maxBytes = 4 << 20
	// Queries that run at the same pace want the same bytes a moment after each other, often before the first of
	// them has decoded and cached its pages. So responses stay for keptTime, up to keptBytes of them.
	keptTime, keptBytes = 2 * time.Second, 16 << 20
	// sharedFor is how long several tenants count as reading after one has read after another.
	sharedFor = 10 * time.Second
)

// Options build a Bucket.
type Options struct {
	// Gap is the most unneeded bytes between two reads that are joined; 0 joins none.
	Gap int64
	// Busy reports whether requests wait for their turn.
	Busy       func() bool
	Registerer prometheus.Registerer
}

// Bucket coalesces reads of another bucket. It is safe for concurrent use.
type Bucket struct {
	bucket.Bucket
	o        Options
	reads    *prometheus.CounterVec
	unneeded prometheus.Counter

	mu      sync.Mutex
	flights map[string][]*flight // by object
	kept    []*flight            // that have landed, the oldest first; they are in flights, too
	bytes   int64                // of kept
	wide    int64                // of reads that were widened and are under way
	// tenant is whose query has read last, and shared when that changed.
	tenant  string
	shared  time.Time
	batches map[batchKey]*batch
}

var _ bucket.Bucket = (*Bucket)(nil)

// New wraps a bucket.
func New(next bucket.Bucket, o Options) *Bucket {
	f := promauto.With(o.Registerer)
	b := &Bucket{
		Bucket: next, o: o, flights: make(map[string][]*flight), batches: make(map[batchKey]*batch),
		reads: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_bucket_coalesced_reads_total",
			Help: "Reads of ranges that needed no request of their own, by reason: same, if the bytes were on their way, or near, if a request for nearby bytes fetched them."},
			[]string{"reason"}),
		unneeded: f.NewCounter(prometheus.CounterOpts{
			Name: "shale_bucket_coalesced_unneeded_bytes_total",
			Help: "Bytes that requests fetched only because they lie between two coalesced reads."}),
	}
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_bucket_coalesced_kept_bytes", Help: "Bytes of responses of the bucket that are kept for up to 2 s, for reads of the same bytes."},
		func() float64 {
			b.mu.Lock()
			defer b.mu.Unlock()
			return float64(b.bytes)
		})
	return b
}

// Put creates or replaces an object.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	defer b.forget(name)
	return b.Bucket.Put(ctx, name, r, size)
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	defer b.forget(name)
	return b.Bucket.Delete(ctx, name)
}

// forget removes the flights of an object that has changed.
func (b *Bucket) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.flights, name)
}

// flight is a request for a range and the reads that wait for it.
type flight struct {
	name     string
	off, end int64
	caller   model.Caller
	deadline time.Time // zero: none
	cancel   context.CancelFunc
	readers  int // that still wait; without any it is cancelled
	landed   bool
	done     chan struct{}
	data     []byte
	err      error
	// expiry drops a response that is kept. It refers to the flight, so it must be stopped with it: otherwise
	// all that was read in keptTime would stay in memory.
	expiry *time.Timer
}

// GetRange returns n bytes of an object from off.
func (b *Bucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	if n <= 0 || off < 0 || off > off+n {
		return b.Bucket.GetRange(ctx, name, off, n)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("bucket: %s: %w", name, err)
	}
	caller := model.CallerOf(ctx)
	b.mu.Lock()
	// A read does not wait for a request of another tenant, which may have a long queue, nor of a class that is
	// sent later than its own.
	i := slices.IndexFunc(b.flights[name], func(f *flight) bool {
		return f.off <= off && off+n <= f.end && f.caller.Tenant == caller.Tenant && f.caller.Class <= caller.Class
	})
	if i >= 0 {
		f := b.flights[name][i]
		f.readers++
		b.mu.Unlock()
		b.reads.WithLabelValues("same").Inc()
		return b.wait(ctx, f, off, n)
	}
	from, end := b.widenLocked(ctx, off, off+n, caller)
	if end-from > n {
		defer b.narrow(end - from)
	}
	if b.o.Gap <= 0 || !b.o.Busy() && b.inFlightLocked(name) <= manyFlights {
		f := b.startLocked(ctx, name, from, end, caller, 1)
		b.mu.Unlock()
		return b.wait(ctx, f, off, n)
	}
	r := b.gatherLocked(ctx, name, from, end, caller)
	b.mu.Unlock()
	select {
	case f := <-r.flight:
		return b.wait(ctx, f, off, n)
	case <-ctx.Done():
		b.leaveBatch(r)
		return nil, fmt.Errorf("bucket: %s: %w", name, ctx.Err())
	}
}

// widenLocked returns the range to read for [off, end): all that the caller wants near it, if there is
// memory. The response is kept, so the reads that follow, of this query and of others at the same place, need
// no request. Twenty queries over the same blocks, none of which had memory for more than a page at a time,
// made ten requests for each that one of them makes alone.
//
// While several tenants read, no read is widened: a tenant with 24 queries at one time became four times as
// fast, and the 99th percentile of the panels of others twice as slow.
func (b *Bucket) widenLocked(ctx context.Context, off, end int64, caller model.Caller) (from, to int64) {
	if caller.Class.Interactive() && caller.Tenant != b.tenant {
		if b.tenant != "" {
			b.shared = time.Now()
		}
		b.tenant = caller.Tenant
	}
	from, to = model.NearOf(ctx)
	if b.o.Gap <= 0 || from > off || to < end || to-from > maxBytes || b.wide+to-from > keptBytes || time.Since(b.shared) < sharedFor {
		return off, end
	}
	if to-from > end-off {
		b.wide += to - from
	}
	return from, to
}

// narrow says that a widened read is over.
func (b *Bucket) narrow(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wide -= n
}

// inFlightLocked counts the requests for an object that have no response yet.
func (b *Bucket) inFlightLocked(name string) (n int) {
	for _, f := range b.flights[name] {
		if !f.landed {
			n++
		}
	}
	return n
}

// startLocked sends a request for readers that will wait for it. It has the values and the deadline of the
// context, but is not cancelled with it.
func (b *Bucket) startLocked(ctx context.Context, name string, off, end int64, caller model.Caller, readers int) *flight {
	f := &flight{name: name, off: off, end: end, caller: caller, readers: readers, done: make(chan struct{})}
	deadline, bounded := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if bounded {
		f.deadline = deadline
		ctx, f.cancel = context.WithDeadline(ctx, deadline)
	} else {
		ctx, f.cancel = context.WithCancel(ctx)
	}
	b.flights[name] = append(b.flights[name], f)
	go func() {
		defer f.cancel()
		f.err = model.Caught(func() (err error) {
			f.data, err = b.Bucket.GetRange(ctx, name, off, end-off)
			return err
		})
		b.mu.Lock()
		b.landLocked(f)
		b.mu.Unlock()
		close(f.done)
	}()
	return f
}

// landLocked keeps the response of a flight for a while.
func (b *Bucket) landLocked(f *flight) {
	f.landed = true
	if f.err != nil || len(f.data) > maxBytes || !slices.Contains(b.flights[f.name], f) {
		b.removeLocked(f)
		return
	}
	b.kept = append(b.kept, f)
	b.bytes += int64(len(f.data))
	for b.bytes > keptBytes {
		b.dropLocked()
	}
	f.expiry = time.AfterFunc(keptTime, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.kept) > 0 && b.kept[0] == f { // else it was dropped, or an older one drops it
			b.dropLocked()
		}
	})
}

// dropLocked drops the oldest response that is kept.
func (b *Bucket) dropLocked() {
	f := b.kept[0]
	b.kept[0] = nil
	b.kept = b.kept[1:]
	b.bytes -= int64(len(f.data))
	f.expiry.Stop()
	b.removeLocked(f)
}

// removeLocked removes a flight, so that no further read joins it.
func (b *Bucket) removeLocked(f *flight) {
	rest := slices.DeleteFunc(b.flights[f.name], func(x *flight) bool { return x == f })
	if b.flights[f.name] = rest; len(rest) == 0 {
		delete(b.flights, f.name)
	}
}

// leave says that a reader does not wait for a flight any more.
func (b *Bucket) leave(f *flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leaveLocked(f)
}

func (b *Bucket) leaveLocked(f *flight) {
	if f.readers--; f.readers == 0 && !f.landed {
		b.removeLocked(f)
		f.cancel()
	}
}

// wait returns n bytes from off of a flight. The bytes are the caller's.
func (b *Bucket) wait(ctx context.Context, f *flight, off, n int64) ([]byte, error) {
	select {
	case <-ctx.Done():
		b.leave(f)
		return nil, fmt.Errorf("bucket: %s: %w", f.name, ctx.Err())
	case <-f.done:
	}
	whole := off == f.off && off+n == f.end
	if f.err != nil {
		switch {
		case f.endsBefore(ctx):
			return b.GetRange(ctx, f.name, off, n) // the deadline of another reader may be the reason
		case !whole && !errors.Is(f.err, model.ErrTransient):
			return b.Bucket.GetRange(ctx, f.name, off, n) // the range of another reader may be
		}
		return nil, f.err
	}
	if int64(len(f.data)) != f.end-f.off {
		return nil, fmt.Errorf("%w: bucket: %s: got %d bytes at offset %d, expected %d", model.ErrTransient, f.name, len(f.data), f.off, f.end-f.off)
	}
	// Copied: every reader owns its bytes, and a short one must not keep a long response in memory.
	return bytes.Clone(f.data[off-f.off:][:n]), nil
}

// endsBefore reports whether a request had less time than one with the context has.
func (f *flight) endsBefore(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return !f.deadline.IsZero() && (!ok || f.deadline.Before(end))
}

// batchKey is an object and the tenant that reads it.
type batchKey struct{ name, tenant string }

// batch is the reads that are being gathered.
type batch struct {
	reads []*gathered
}

// gathered is a read that waits for its flight.
type gathered struct {
	ctx      context.Context
	off, end int64
	class    model.Class
	flight   chan *flight
	left     bool
}

func (b *Bucket) gatherLocked(ctx context.Context, name string, off, end int64, caller model.Caller) *gathered {
	r := &gathered{ctx: ctx, off: off, end: end, class: caller.Class, flight: make(chan *flight, 1)}
	key := batchKey{name, caller.Tenant}
	x := b.batches[key]
	if x == nil {
		x = &batch{}
		b.batches[key] = x
		time.AfterFunc(gatherTime, func() { b.send(key) })
	}
	x.reads = append(x.reads, r)
	return r
}

// leaveBatch says that a reader does not wait for its flight any more.
func (b *Bucket) leaveBatch(r *gathered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case f := <-r.flight:
		b.leaveLocked(f)
	default:
		r.left = true
	}
}

// send sends the reads of a batch, those that lie near each other as one request. It is for the caller whose
// class is sent first.
func (b *Bucket) send(key batchKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	reads := slices.DeleteFunc(b.batches[key].reads, func(r *gathered) bool { return r.left })
	delete(b.batches, key)
	slices.SortFunc(reads, func(x, y *gathered) int { return cmp.Or(cmp.Compare(x.off, y.off), cmp.Compare(x.end, y.end)) })
	for len(reads) > 0 {
		first, end, gaps := reads[0], reads[0].end, int64(0)
		n := 1
		for ; n < len(reads); n++ {
			r := reads[n]
			if r.off-end > b.o.Gap || max(r.end, end)-reads[0].off > maxBytes {
				break
			}
			gaps += max(0, r.off-end)
			end = max(end, r.end)
			if r.class < first.class {
				first = r
			}
		}
		f := b.startLocked(first.ctx, key.name, reads[0].off, end, model.Caller{Tenant: key.tenant, Class: first.class}, n)
		for _, r := range reads[:n] {
			r.flight <- f
		}
		b.reads.WithLabelValues("near").Add(float64(n - 1))
		b.unneeded.Add(float64(gaps))
		reads = reads[n:]
	}
}
