package logql

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// Watcher tells of batches once they are durable and queries see them: the write path. It may call fn from
// many goroutines at once; after cancel no call is running and none begins.
type Watcher interface {
	Watch(fn func(*model.Batch)) (cancel func())
}

// Follower is a source of lines that do not pass through the write path. Follow calls fn with lines that come
// from now on, which may be more than the request selects, until the context ends. It calls ready once no
// further line will be missed. It calls lost with lines that it had to leave out, whose bytes are empty. fn
// and lost must not keep a batch.
type Follower interface {
	Follow(ctx context.Context, req *model.Request, ready func(), fn, lost func(*model.Batch)) error
}

// ErrInterrupted is the class of errors after which following goes on where it was, once the client begins
// again from the last line that it has.
var ErrInterrupted = errors.New("following lines was interrupted")

// hub hands lines that become durable to those who follow them. It watches only while there is somebody, so
// that pushes pay nothing else.
type hub struct {
	watch   Watcher
	metrics *metrics

	// byTenant is copied when it changes, so that a push takes no lock here.
	byTenant atomic.Pointer[map[string][]*follower]

	mu     sync.Mutex
	all    int
	cancel func()
}

// follow begins to collect the lines of streams that satisfy the matchers. The follower must be stopped.
func (h *hub) follow(tenant string, ms []model.Matcher, q *model.Quota) *follower {
	f := &follower{h: h, tenant: tenant, matchers: ms, quota: q, wake: make(chan struct{}, 1), known: make(map[model.Key]model.Labels)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changeLocked(tenant, func(fs []*follower) []*follower { return append(fs, f) })
	if h.all++; h.all == 1 && h.watch != nil {
		h.cancel = h.watch.Watch(h.see)
	}
	h.metrics.tails.Set(float64(h.all))
	return f
}

func (h *hub) changeLocked(tenant string, change func([]*follower) []*follower) {
	all := make(map[string][]*follower)
	if now := h.byTenant.Load(); now != nil {
		all = maps.Clone(*now)
	}
	if all[tenant] = change(slices.Clone(all[tenant])); len(all[tenant]) == 0 {
		delete(all, tenant)
	}
	h.byTenant.Store(&all)
}

// see is called with each batch.
func (h *hub) see(b *model.Batch) {
	all := h.byTenant.Load()
	if b.Signal != model.Logs || all == nil {
		return
	}
	for _, f := range (*all)[b.Tenant] {
		f.see(b)
	}
}

const (
	// queueBytes and queueRows bound what waits for one follower.
	queueBytes = 4 << 20
	queueRows  = 10_000
	// maxDropped bounds how many dropped lines a follower is told of.
	maxDropped = 1000
	// maxKnown bounds the streams of which it is remembered whether they are followed.
	maxKnown = 1 << 16
	// queuedBytes is about what a line costs besides its bytes while it waits.
	queuedBytes = 64
)

// follower collects the lines of one that follows them: those of streams that satisfy its matchers. What its
// stages say of them is its own business, in its own time.
type follower struct {
	h        *hub
	tenant   string
	matchers []model.Matcher
	quota    *model.Quota
	wake     chan struct{} // has one while there may be something

	mu sync.Mutex
	// known has the labels of the streams that were met, nil of those that do not satisfy the matchers.
	known   map[model.Key]model.Labels
	queue   []queued
	bytes   int64
	dropped []Dropped
	err     error
	stopped bool

	builder model.LabelsBuilder
	scratch []byte
}

// queued is a line that waits, in its stored form.
type queued struct {
	time   int64
	labels model.Labels
	blob   []byte
}

// fail ends the follower with an error.
func (f *follower) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// lose notes lines that another process has left out.
func (f *follower) lose(b *model.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, k := range b.Keys {
		labels, err := f.meetLocked(b, i, k)
		if f.err = cmp.Or(f.err, err); f.err != nil {
			break
		}
		for row := b.Text.Begin(i); row < b.Text.End(i) && labels != nil; row++ {
			f.dropLocked(Dropped{b.Text.Times[row], labels})
		}
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// see takes what is wanted of a batch. It is called by pushes, and neither waits nor runs stages.
func (f *follower) see(b *model.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.stopped {
		return
	}
	before := len(f.queue) + len(f.dropped)
	for i, k := range b.Keys {
		from, to := b.Text.Begin(i), b.Text.End(i)
		if from >= to {
			continue
		}
		labels, known := f.known[k]
		if !known {
			if labels, f.err = f.meetLocked(b, i, k); f.err != nil {
				break
			}
		}
		if labels == nil {
			continue
		}
		f.queueLocked(labels, &b.Text.Rows, int(from), int(to))
	}
	if f.err != nil || len(f.queue)+len(f.dropped) > before {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// meetLocked returns the labels of a stream that is met for the first time, or nil if it is not followed.
func (f *follower) meetLocked(b *model.Batch, i int, k model.Key) (model.Labels, error) {
	f.builder.Reset()
	b.BuildLabels(i, &f.builder)
	var err error
	if f.scratch, err = f.builder.Append(f.scratch[:0]); err != nil {
		return nil, err
	}
	var labels model.Labels
	if matches(f.matchers, f.scratch) {
		labels = slices.Clone(f.scratch)
	}
	if len(f.known) >= maxKnown {
		clear(f.known)
	}
	f.known[k] = labels
	return labels, nil
}

func matches(ms []model.Matcher, l model.Labels) bool {
	for i := range ms {
		if !ms[i].Match(string(l.Get(ms[i].Name))) {
			return false
		}
	}
	return true
}

// queueLocked copies rows into the queue, or notes them as dropped where there is no room.
func (f *follower) queueLocked(labels model.Labels, rows *model.Rows, from, to int) {
	size := int64(0)
	for i := from; i < to; i++ {
		size += int64(len(rows.Blob(i))) + queuedBytes
	}
	if len(f.queue)+to-from > queueRows || f.bytes+size > queueBytes || f.quota.TakeBytes(size) != nil {
		for i := from; i < to; i++ {
			f.dropLocked(Dropped{rows.Times[i], labels})
		}
		return
	}
	f.bytes += size
	var bytes []byte
	for i := from; i < to; i++ {
		bytes = append(bytes, rows.Blob(i)...)
	}
	for i := from; i < to; i++ {
		n := len(rows.Blob(i))
		f.queue = append(f.queue, queued{rows.Times[i], labels, bytes[:n:n]})
		bytes = bytes[n:]
	}
}

func (f *follower) dropLocked(d Dropped) {
	f.h.metrics.dropped.Inc()
	if len(f.dropped) < maxDropped {
		f.dropped = append(f.dropped, d)
	}
}

// drop notes a line that was not handed out.
func (f *follower) drop(d Dropped) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropLocked(d)
}

// take returns what has come since it was last called. Its bytes stay charged: the caller gives them back.
func (f *follower) take() (queue []queued, bytes int64, dropped []Dropped, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	queue, bytes, dropped = f.queue, f.bytes, f.dropped
	f.queue, f.bytes, f.dropped = nil, 0, nil
	return queue, bytes, dropped, f.err
}

// stop ends it. What has not been taken is gone.
func (f *follower) stop() error {
	h := f.h
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changeLocked(f.tenant, func(fs []*follower) []*follower {
		return slices.DeleteFunc(fs, func(o *follower) bool { return o == f })
	})
	if h.all--; h.all == 0 && h.watch != nil {
		h.cancel()
	}
	h.metrics.tails.Set(float64(h.all))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	f.queue = nil
	bytes := f.bytes
	f.bytes = 0
	return errors.Join(f.err, f.quota.TakeBytes(-bytes))
}
