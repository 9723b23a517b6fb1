package promql

import (
	"context"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

// prefetch reads the series of a set on its own goroutine while the caller computes.
type prefetch struct {
	set    *read.SeriesSet
	unread bool // the current series of the set is not in a batch yet
	quota  *model.Quota
	from   int64 // nanoseconds; rows before it tell only whether a histogram follows a reset

	cancel  context.CancelFunc // nil: reading has not begun
	filled  chan *batch
	empty   chan *batch
	reading sync.WaitGroup
	err     error // the reader's error, once filled is closed

	current *batch
	index   int       // in it
	key     model.Key // of the last series
}

// batch is series that were read together.
type batch struct {
	rows   model.Rows
	labels []byte
	series []batchSeries
	bytes  int64 // charged
}

// batchSeries says where the rows and the labels of a series end, and how many of its rows are early.
type batchSeries struct {
	rows, labels, early int
	key                 model.Key
}

// bytesBounded reports whether the batch may get another series.
func (b *batch) bytesBounded() bool {
	return len(b.labels) < maxBatchLabelBytes && len(b.rows.Bytes) < maxBatchBlobBytes
}

// A batch is full when it has this many samples, series, or bytes of labels or histograms, about 200 KB. The
// first batch has fewer series, so that computing begins early. These sizes were chosen without a benchmark.
const (
	maxBatchSamples    = 8192
	firstBatchSeries   = 128
	maxBatchSeries     = 512
	maxBatchLabelBytes = 64 << 10
	maxBatchBlobBytes  = 64 << 10
	batches            = 3
)

// emptyBatches keeps the memory of batches between queries: a small query allocates little else. The
// garbage collector gets batches of more than keptRows.
var emptyBatches = sync.Pool{New: func() any { return new(batch) }}

const keptRows = 1 << 16

func (b *batch) keep() {
	if cap(b.rows.Times) <= keptRows && cap(b.rows.Bytes) <= keptRows {
		emptyBatches.Put(b)
	}
}

// begin starts to read. The caller reads the first batch itself, because many queries need only one, and
// waking another goroutine on a busy machine can take longer than a small query.
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
		ctx, done := model.Computing(ctx)
		defer done()
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

// readOne reads a batch of at most so many series. It reports whether there are more.
func (p *prefetch) readOne(ctx context.Context, most int) (more bool, err error) {
	processor := model.ProcessorOf(ctx)
	processor.Leave()
	select {
	case b := <-p.empty:
		processor.Enter(ctx)
		if more, err = p.fill(ctx, b, most); err == nil {
			p.filled <- b // has room for all batches
		}
		return more, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// fill reads at most so many series, or until the batch is full. It looks for one more series and reports
// whether there is one. Otherwise a single long series would fill a batch and wake another goroutine just
// to find nothing.
func (p *prefetch) fill(ctx context.Context, b *batch, most int) (more bool, err error) {
	processor := model.ProcessorOf(ctx)
	b.rows.Reset()
	b.labels, b.series = b.labels[:0], b.series[:0]
	if !p.unread && !p.set.Next(ctx) {
		return false, p.set.Err()
	}
	for p.unread = true; p.unread && b.rows.Len() < maxBatchSamples && len(b.series) < most && b.bytesBounded(); p.unread = p.set.Next(ctx) {
		processor.Enter(ctx) // it may have waited for a page
		begin := b.rows.Len()
		if err := p.set.AppendRows(ctx, &b.rows); err != nil {
			return false, err
		}
		early, err := p.forgetEarly(&b.rows, begin)
		if err != nil {
			return false, err
		}
		b.labels = append(b.labels, p.set.Labels()...)
		b.series = append(b.series, batchSeries{b.rows.Len(), len(b.labels), early, p.set.Key()})
		b.bytes += p.set.Charged()
	}
	return p.unread, p.set.Err()
}

// forgetEarly gives back the charge for the early ones of the rows of the current series, which begin at the
// given index. There is at most a millisecond of them.
func (p *prefetch) forgetEarly(rows *model.Rows, begin int) (early int, err error) {
	for begin+early < rows.Len() && rows.Times[begin+early] < p.from {
		early++
	}
	if early == 0 {
		return 0, nil
	}
	one := rowsBetween(rows, begin, rows.Len())
	return early, p.set.Forget(&one, early)
}

// rowsBetween returns some of the rows. They share the memory.
func rowsBetween(r *model.Rows, begin, end int) model.Rows {
	rows := model.Rows{Times: r.Times[begin:end], Values: r.Values[begin:end], Bytes: r.Bytes}
	if len(r.Kinds) > 0 {
		rows.Kinds = r.Kinds[begin:end]
	}
	if len(r.Starts) > 0 {
		rows.Starts = r.Starts[begin:end]
	}
	return rows
}

// next returns the labels and rows of the next series, and how many of the rows are early. They are valid
// until the next call, and the caller may change them. It returns false at the end or on an error, which is
// then in err.
func (p *prefetch) next(ctx context.Context) (l model.Labels, rows model.Rows, early int, ok bool) {
	if p.cancel == nil {
		p.begin(ctx)
	}
	if err := ctx.Err(); err != nil {
		_ = p.close() // the set is closed once more at the end and returns the same error
		p.err = err
		return nil, rows, 0, false
	}
	for p.current == nil || p.index == len(p.current.series) {
		if p.current != nil {
			p.giveBack(p.current)
			p.empty <- p.current
			p.current = nil
		}
		processor := model.ProcessorOf(ctx)
		processor.Leave()
		b, ok := <-p.filled
		processor.Enter(ctx)
		if !ok {
			return nil, rows, 0, false
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
	p.key = end.key
	return b.labels[begin.labels:end.labels], rowsBetween(&b.rows, begin.rows, end.rows), end.early, true
}

func (p *prefetch) giveBack(b *batch) {
	_ = p.quota.TakeBytes(-b.bytes) // giving back never fails
	b.bytes = 0
}

// close stops reading, releases all memory and unpins the set: a query may have many sets and keeps them to
// its end. It may be called more than once. next must not be called after it.
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
