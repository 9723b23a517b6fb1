package write

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/pressure"
)

// Head is the part of the store that knows which series exist.
type Head interface {
	// Resolve appends to dst the indexes into b.Keys of the series whose labels are not known to be
	// durable. It is called concurrently. It refuses to create more series with an error of class
	// transient.
	Resolve(b *model.Batch, dst []uint32) ([]uint32, error)
}

// Journal is the write-ahead log.
type Journal interface {
	// Append returns once the batch is durable and then applied to the head. The caller may reuse the
	// batch afterwards. It is called concurrently. Errors are of class transient or closed.
	Append(ctx context.Context, b *model.Batch) error
}

// Options build a Path.
type Options struct {
	Seed    model.KeySeed
	Head    Head
	Journal Journal
	// Groups bounds the series of metrics and of label sets; nil: nothing does.
	Groups Groups
	// Metadata stores the metadata of metric families; nil drops it.
	Metadata Metadata
	Limits   Limits
	// LimitsOf returns the limits of a tenant; nil: Limits. It is called a few times for each request.
	LimitsOf func(tenant string) *Limits
	// Meter counts what each tenant writes; nil: nothing is counted.
	Meter Meter
	// Room returns an error while the disk of the data folder is too full to accept data; nil disables
	// the check.
	Room func() error
	// Now returns the time in Unix nanoseconds; nil means the system clock.
	Now        func() int64
	Registerer prometheus.Registerer
	// Logger logs what senders are refused; nil: it is not logged.
	Logger *slog.Logger
}

// Meter counts what each tenant writes. It is safe for concurrent use, and called a few times for each
// request.
type Meter interface {
	// Stored counts durable rows.
	Stored(tenant string, n Counts)
	// Discarded counts rows that were received and not stored, also those that the sender may send again.
	Discarded(tenant, reason string, n Counts)
	// Received counts a request over HTTP that has ended, and its bytes, as sent and as decoded.
	Received(tenant string, bytes int64)
}

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Stored(string, Counts)            {}
func (noMeter) Discarded(string, string, Counts) {}
func (noMeter) Received(string, int64)           {}

// Path is the write path of one process. It is safe for concurrent use.
type Path struct {
	o            Options
	creator      Creator // nil if creation is not limited
	budget       budget
	gate         gate
	metadataSeen metadataSeen
	watchers     watchers
	accounts     accounts
	processors   *model.Processors
	batches      sync.Pool
	scratch      sync.Pool
	refusals     *refusalLog
	metrics      *metrics
}

// New returns a Path.
func New(o Options) *Path {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Room == nil {
		o.Room = func() error { return nil }
	}
	if o.LimitsOf == nil {
		o.LimitsOf = func(string) *Limits { return &o.Limits }
	}
	if o.Meter == nil {
		o.Meter = noMeter{}
	}
	p := &Path{o: o, refusals: newRefusalLog(o.Logger)}
	p.creator, _ = o.Head.(Creator)
	p.processors = &model.Processors{Count: pressure.Processors(), Shared: func() bool { return p.accounts.shared(o.Now()) }}
	p.budget.init(o.Limits.MaxInflightBytes)
	p.batches.New = func() any { return new(model.Batch) }
	p.scratch.New = func() any { return new(scratch) }
	p.metrics = newMetrics(o.Registerer, &p.budget, p.processors)
	return p
}

// Close refuses all further pushes with an error of class closed and waits for the running ones.
// Afterwards the path does not touch the head or the journal.
func (p *Path) Close() { p.gate.close() }

// Seed returns the seed for the keys of this installation.
func (p *Path) Seed() model.KeySeed { return p.o.Seed }

// Limits returns the limits that apply to the requests of a tenant.
func (p *Path) Limits(tenant string) Limits { return *p.limits(tenant) }

func (p *Path) limits(tenant string) *Limits { return p.o.LimitsOf(tenant) }

// Now returns the time in Unix nanoseconds.
func (p *Path) Now() int64 { return p.o.Now() }

// Batch returns an empty batch. The caller returns it with Recycle.
func (p *Path) Batch(tenant string, s model.Signal) *model.Batch {
	b := p.batches.Get().(*model.Batch)
	b.Reset()
	b.Tenant, b.Signal = tenant, s
	return b
}

// Larger batches do not return to the pool.
const (
	maxPooledRows  = 1 << 17
	maxPooledBytes = 4 << 20
)

// Recycle returns a batch to the pool. The caller must not use it afterwards.
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

// maxAwaits is how often a push waits for room for its new series; other pushes may take that room each
// time.
const maxAwaits = 3

// Push makes a batch durable and visible to queries. It drops rows that can never be stored and lists
// them in the result. If all other rows are durable, the error is nil. Otherwise it is a *Refused: the
// rows that the result counts, if any, are durable, and the batch holds the rest and may be pushed
// again.
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
	defer p.putScratch(s)

	if err := p.o.Room(); err != nil {
		return res, p.refuse(err, "disk")
	}
	l := p.limits(b.Tenant)
	if err := p.resolve(b, s, l, &res); err != nil {
		return res, p.refuse(err, "series")
	}
	p.leaveOut(b, s.invalid, l, &res)
	// They are counted now: these rows have left the batch, and a retry does not see them.
	p.Rejected(b.Tenant, res.Rejected)
	charged, err := p.charge(b, l)
	if err != nil {
		return res, err
	}
	if err := p.store(ctx, b, s, &res); err != nil {
		p.refund(b.Tenant, charged, res.ByKind, l)
		return res, err
	}
	return res, nil
}

// store makes the rows of a batch durable, those of new series as soon as these may be created. Its
// error is a *Refused.
func (p *Path) store(ctx context.Context, b *model.Batch, s *scratch, res *Result) error {
	for tries := 0; ; tries++ {
		full := p.create(ctx, b, s)
		if full == nil {
			break
		}
		// Rows of known series do not wait for the creation of the others.
		if err := p.pushAllowed(ctx, b, s, res); err != nil {
			return p.refuse(err, "journal")
		}
		// A waiting request keeps its memory. Waiting requests must not starve pushes to known series.
		model.ProcessorOf(ctx).Leave()
		if tries == maxAwaits || !p.budget.halfFree() || p.creator == nil || !p.creator.Await(ctx, full) {
			return p.refuseSeries(full, b)
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
		model.ProcessorOf(ctx).Leave() // what follows mostly waits
		if err := p.o.Journal.Append(ctx, b); err != nil {
			return err
		}
		p.watchers.notify(b)
	}
	stored := countBatch(b)
	res.ByKind.Add(stored)
	res.Stored = res.ByKind.Total()
	p.metrics.stored(stored)
	p.o.Meter.Stored(b.Tenant, stored)
	p.metrics.labels.Add(float64(b.Labels.Len()))
	return nil
}

// refuseSeries refuses what is left of a batch, rows of new series. If the limit is that of the tenant, it is
// a 429.
func (p *Path) refuseSeries(err error, b *model.Batch) error {
	refused := p.refuse(err, "series")
	var named *model.LimitError
	var r *Refused
	if errors.As(err, &named) && named.Tenant && errors.As(refused, &r) {
		r.Status, r.NewSeries = http.StatusTooManyRequests, true
		p.o.Meter.Discarded(b.Tenant, reasonOf(named.Limit), countBatch(b))
	}
	return refused
}

// reasonOf returns the reason for which series of a tenant are refused.
func reasonOf(limit string) string {
	switch limit {
	case "limits.tenant-series":
		return ReasonSeries
	case "limits.metric-series":
		return ReasonMetricSeries
	case "limits.label-set-series":
		return ReasonLabelSetSeries
	}
	return ReasonSeriesRate
}

// refuse turns an error of the store into a *Refused. Transient errors give 503, which senders retry.
// So does a cancelled request, whose sender does not see the response.
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

// Discard counts floats that a receiver dropped before they became rows.
func (p *Path) Discard(tenant, reason string, samples int) {
	n := Counts{Samples: samples}
	p.metrics.discarded(reason, n)
	p.o.Meter.Discarded(tenant, reason, n)
}

// Rejected counts rows of a tenant that a receiver dropped.
func (p *Path) Rejected(tenant string, left Rejections) {
	for i := range left {
		p.metrics.discarded(left[i].Reason, left[i].ByKind)
		p.o.Meter.Discarded(tenant, left[i].Reason, left[i].ByKind)
	}
}
