package write

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Head is what the write path needs of the store.
type Head interface {
	// Resolve appends to dst the indexes into b.Keys of the series whose labels are not yet known to be durable. It is
	// called by many goroutines at once. A refusal to create more series is an error of class transient.
	Resolve(b *model.Batch, dst []uint32) ([]uint32, error)
}

// Journal is what the write path needs of the log.
type Journal interface {
	// Append returns once the batch is durable and has been applied to the head, in that order. The batch may be used
	// again afterwards. It is called by many goroutines at once. Errors are of class transient or closed.
	Append(ctx context.Context, b *model.Batch) error
}

// Options build a Path.
type Options struct {
	Seed    model.KeySeed
	Head    Head
	Journal Journal
	// Metadata takes what senders tell of metric families; nil means that it is not kept.
	Metadata Metadata
	Limits   Limits
	// Room reports an error while the data folder has no room for more data; nil means that there is always room.
	Room func() error
	// Now gives the time in Unix nanoseconds; nil means the machine's clock.
	Now        func() int64
	Registerer prometheus.Registerer
}

// Path is the write path of one process. It is safe for concurrent use.
type Path struct {
	o        Options
	creator  Creator // nil: creation is not bounded
	budget   budget
	gate     gate
	told     told
	watchers watchers
	rates    rates
	batches  sync.Pool
	scratch  sync.Pool
	metrics  *metrics
}

// New returns a Path.
func New(o Options) *Path {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Room == nil {
		o.Room = func() error { return nil }
	}
	p := &Path{o: o}
	p.creator, _ = o.Head.(Creator)
	p.budget.init(o.Limits.MaxInflightBytes)
	p.batches.New = func() any { return new(model.Batch) }
	p.scratch.New = func() any { return new(scratch) }
	p.metrics = newMetrics(o.Registerer, &p.budget)
	return p
}

// Close refuses all further pushes with an error of class closed and waits for those that are running. Nothing touches
// the head or the journal through this path afterwards.
func (p *Path) Close() { p.gate.close() }

// Seed returns the seed of the installation's keys.
func (p *Path) Seed() model.KeySeed { return p.o.Seed }

// Limits returns the limits that requests are held to.
func (p *Path) Limits() Limits { return p.o.Limits }

// Now returns the time in Unix nanoseconds.
func (p *Path) Now() int64 { return p.o.Now() }

// Batch returns an empty batch, to be given back by Recycle.
func (p *Path) Batch(tenant string, s model.Signal) *model.Batch {
	b := p.batches.Get().(*model.Batch)
	b.Reset()
	b.Tenant, b.Signal = tenant, s
	return b
}

// What keeps a batch of unusual size from staying in the pool.
const (
	maxPooledRows  = 1 << 17
	maxPooledBytes = 4 << 20
)

// Recycle takes a batch back. It must not be used any more.
func (p *Path) Recycle(b *model.Batch) {
	for _, f := range model.Families() {
		if c := b.Columns(f); cap(c.Times) > maxPooledRows || cap(c.Bytes) > maxPooledBytes {
			return
		}
	}
	if cap(b.Keys) > maxPooledRows || cap(b.Labels.Bytes) > maxPooledBytes {
		return
	}
	b.Source = nil
	p.batches.Put(b)
}

// maxAwaits is how often a push waits for room for its new series, which others may take each time.
const maxAwaits = 3

// Push makes a batch durable and visible. Rows that can never be stored are left out and listed in the result. The error
// is nil when all others are durable, and otherwise a *Refused: then what the result counts is durable, which is nothing
// or what there is of series that need not be created, and the batch holds the rest and may be pushed again.
func (p *Path) Push(ctx context.Context, b *model.Batch) (Result, error) {
	var res Result
	if len(b.Keys) == 0 {
		return res, nil
	}
	if err := p.gate.enter(); err != nil {
		return res, err
	}
	defer p.gate.leave()
	s := p.scratch.Get().(*scratch)
	defer p.giveScratch(s)

	if err := p.o.Room(); err != nil {
		return res, p.refuse(err, "disk")
	}
	if err := p.resolve(b, s, &res); err != nil {
		return res, p.refuse(err, "series")
	}
	p.leaveOut(b, s.dead, &res)
	p.Rejected(res.Rejected) // now, since they have left the batch: it may be pushed again
	taken, err := p.takeLines(b)
	if err != nil {
		return res, err
	}
	if err := p.store(ctx, b, s, &res); err != nil {
		p.giveLines(b.Tenant, taken, res.ByKind)
		return res, err
	}
	return res, nil
}

// store makes the rows of a batch durable, those of new series when they may be created. Its error is a *Refused.
func (p *Path) store(ctx context.Context, b *model.Batch, s *scratch, res *Result) error {
	for tries := 0; ; tries++ {
		full := p.create(b, s)
		if full == nil {
			break
		}
		// Those that are known do not wait for the others.
		if err := p.pushSome(ctx, b, s, res); err != nil {
			return p.refuse(err, "journal")
		}
		// A request that waits keeps its memory. If those took all of it, known series of others would have none.
		if tries == maxAwaits || !p.budget.halfFree() || !p.creator.Await(ctx, full) {
			return p.refuse(full, "series")
		}
	}
	if err := p.append(ctx, b, res); err != nil {
		return p.refuse(err, "journal")
	}
	return nil
}

// append makes all rows of a batch durable and counts them.
func (p *Path) append(ctx context.Context, b *model.Batch, res *Result) error {
	if b.Rows() > 0 {
		if err := p.o.Journal.Append(ctx, b); err != nil {
			return err
		}
		p.watchers.show(b)
	}
	stored := countBatch(b)
	res.ByKind.Add(stored)
	res.Stored = res.ByKind.Total()
	p.metrics.stored(stored)
	p.metrics.labels.Add(float64(b.Labels.Len()))
	return nil
}

// refuse turns an error of the store into an answer. What may pass is a 503, since senders retry that; a caller that
// has gone away gets 503 too and will not see it.
func (p *Path) refuse(err error, limit string) error {
	var refused *Refused
	if errors.As(err, &refused) {
		return err
	}
	var named *model.LimitError
	if errors.As(err, &named) {
		limit = named.Limit
	}
	p.metrics.refusedRequests.WithLabelValues(limit).Inc()
	r := &Refused{Status: http.StatusServiceUnavailable, Limit: limit, Text: err.Error(), RetryAfter: 5 * time.Second}
	r.Closed = errors.Is(err, model.ErrClosed)
	if errors.Is(err, model.ErrInvalid) {
		r.Status, r.RetryAfter = http.StatusBadRequest, 0
	}
	return r
}

// Discard counts floats that a receiver left out before they became rows.
func (p *Path) Discard(reason string, samples int) {
	p.metrics.discarded(reason, Counts{Samples: samples})
}

// Rejected counts the rows that a receiver left out.
func (p *Path) Rejected(left Rejections) {
	for i := range left {
		p.metrics.discarded(left[i].Reason, left[i].ByKind)
	}
}
