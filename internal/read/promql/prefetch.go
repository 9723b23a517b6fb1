package promql

import (
	"context"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

// prefetch reads the series of a set on a goroutine of its own, before they are computed. Reading and
// computing take about as long, and each gets a core.
type prefetch struct {
	set    *read.SeriesSet
	unread bool // the set is at a series that is in no batch yet
	quota  *model.Quota

	cancel  context.CancelFunc // nil: reading has not begun
	filled  chan *batch
	empty   chan *batch
	reading sync.WaitGroup
	err     error // of the reader, once filled is closed

	current *batch
	index   int // in it
}

// batch is series that were read together.
type batch struct {
	rows   model.Rows
	labels []byte
	series []batchSeries
	bytes  int64 // charged
}

// batchSeries says where the rows and the labels of a series end.
type batchSeries struct{ rows, labels int }

// A batch is full when it has this many samples, series or bytes of labels, which is about 200 KB. The first
// batch has fewer series, so that computing begins early.
const (
	maxBatchSamples    = 8192
	firstBatchSeries   = 128
	maxBatchSeries     = 512
	maxBatchLabelBytes = 64 << 10
	batches            = 3
)

// emptyBatches keeps the memory of batches between queries, since it is most of what a small query allocates.
// Batches of more than keptRows are left to the garbage collector.
var emptyBatches = sync.Pool{New: func() any { return new(batch) }}

const keptRows = 1 << 16

func (b *batch) keep() {
	if cap(b.rows.Times) <= keptRows && cap(b.rows.Bytes) <= keptRows {
		emptyBatches.Put(b)
	}
}

// begin starts to read. The caller reads the first batch: many queries need no other, and on a busy machine
// waking another goroutine takes longer than a small query.
func (p *prefetch) begin(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(ctx)
	p.filled, p.empty = make(chan *batch, batches), make(chan *batch, batches)
	for range batches {
		p.empty <- emptyBatches.Get().(*batch)
	}
	more := false
	p.err = model.Caught(func() (err error) {
		more, err = p.readOne(ctx, firstBatchSeries)
		return err
	})
	if p.err != nil || !more {
		close(p.filled)
		return
	}
	p.reading.Go(func() {
		defer close(p.filled)
		p.err = model.Caught(func() error { return p.read(ctx) })
	})
}

func (p *prefetch) read(ctx context.Context) error {
	for {
		if more, err := p.readOne(ctx, maxBatchSeries); err != nil || !more {
			return err
		}
	}
}

// readOne reads a batch of up to most series. It reports whether there are more.
func (p *prefetch) readOne(ctx context.Context, most int) (more bool, err error) {
	select {
	case b := <-p.empty:
		if more, err = p.fill(ctx, b, most); err == nil {
			p.filled <- b // has room for all
		}
		return more, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// fill reads up to most series, or until the batch is full. It looks for a further series and reports whether
// there is one. A single long series fills a batch, and another goroutine would be woken just to find nothing
// after it.
func (p *prefetch) fill(ctx context.Context, b *batch, most int) (more bool, err error) {
	b.rows.Reset()
	b.labels, b.series = b.labels[:0], b.series[:0]
	if !p.unread && !p.set.Next(ctx) {
		return false, p.set.Err()
	}
	for p.unread = true; p.unread && b.rows.Len() < maxBatchSamples && len(b.series) < most && len(b.labels) < maxBatchLabelBytes; p.unread = p.set.Next(ctx) {
		if err := p.set.AppendRows(ctx, &b.rows); err != nil {
			return false, err
		}
		b.labels = append(b.labels, p.set.Labels()...)
		b.series = append(b.series, batchSeries{b.rows.Len(), len(b.labels)})
		b.bytes += p.set.Charged()
	}
	return p.unread, p.set.Err()
}

// next returns the labels and rows of the next series. They are valid until the next call, and the caller may
// change them. It returns false at the end or on an error, which is then in err.
func (p *prefetch) next(ctx context.Context) (l model.Labels, rows model.Rows, ok bool) {
	if p.cancel == nil {
		p.begin(ctx)
	}
	if err := ctx.Err(); err != nil {
		_ = p.close() // its error is that of the set, which is closed once more in the end
		p.err = err
		return nil, rows, false
	}
	for p.current == nil || p.index == len(p.current.series) {
		if p.current != nil {
			p.giveBack(p.current)
			p.empty <- p.current
			p.current = nil
		}
		b, ok := <-p.filled
		if !ok {
			return nil, rows, false
		}
		p.current, p.index = b, 0
	}
	b := p.current
	var begin batchSeries
	if p.index > 0 {
		begin = b.series[p.index-1]
	}
	end := b.series[p.index]
	p.index++
	rows = model.Rows{Times: b.rows.Times[begin.rows:end.rows], Values: b.rows.Values[begin.rows:end.rows]}
	if len(b.rows.Kinds) > 0 {
		rows.Kinds = b.rows.Kinds[begin.rows:end.rows]
	}
	if len(b.rows.Starts) > 0 {
		rows.Starts = b.rows.Starts[begin.rows:end.rows]
	}
	return b.labels[begin.labels:end.labels], rows, true
}

func (p *prefetch) giveBack(b *batch) {
	_ = p.quota.TakeBytes(-b.bytes) // giving back does not fail
	b.bytes = 0
}

// close stops reading and releases all memory and what the set pins: a query may have many sets and keeps
// them to its end. It may be called more than once. next must not be called after it.
func (p *prefetch) close() error {
	if p.cancel != nil {
		p.cancel()
		for b := range p.filled {
			p.giveBack(b)
			b.keep()
		}
		p.reading.Wait()
	}
	if p.current != nil {
		p.giveBack(p.current)
		p.current.keep()
		p.current = nil
	}
	for len(p.empty) > 0 {
		(<-p.empty).keep()
	}
	return p.set.Close()
}
