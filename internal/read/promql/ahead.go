package promql

import (
	"context"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

// ahead reads the series of a set on a goroutine of its own, some of them ahead of who computes: reading and computing take
// about as long, and each gets a core.
type ahead struct {
	set    *read.SeriesSet
	stands bool // on a series that is in no batch yet
	quota  *model.Quota

	cancel  context.CancelFunc // nil: reading has not begun
	filled  chan *batch
	empty   chan *batch
	reading sync.WaitGroup
	err     error // of the reader, once filled is closed

	current *batch
	at      int // in it
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

// A batch is full when it has so many samples, series or bytes of labels: some 200 KB, and little for who waits for the first one, which
// has fewer series.
const (
	batchSamples    = 8192
	firstLength     = 128
	batchLength     = 512
	batchLabelBytes = 64 << 10
	batches         = 3
)

// emptyBatches keeps the memory of batches between queries: of a small query it is most of what it allocates. What is larger than
// keptRows, of series of that length, is left to the collector.
var emptyBatches = sync.Pool{New: func() any { return new(batch) }}

const keptRows = 1 << 16

func (b *batch) keep() {
	if cap(b.rows.Times) <= keptRows && cap(b.rows.Bytes) <= keptRows {
		emptyBatches.Put(b)
	}
}

// begin starts to read. The first batch is read by the caller: many queries need no other, and another goroutine has to be woken
// first, on a busy machine for longer than such a query takes.
func (a *ahead) begin(ctx context.Context) {
	ctx, a.cancel = context.WithCancel(ctx)
	a.filled, a.empty = make(chan *batch, batches), make(chan *batch, batches)
	for range batches {
		a.empty <- emptyBatches.Get().(*batch)
	}
	more := false
	a.err = model.Caught(func() (err error) {
		more, err = a.readOne(ctx, firstLength)
		return err
	})
	if a.err != nil || !more {
		close(a.filled)
		return
	}
	a.reading.Go(func() {
		defer close(a.filled)
		a.err = model.Caught(func() error { return a.read(ctx) })
	})
}

func (a *ahead) read(ctx context.Context) error {
	for {
		if more, err := a.readOne(ctx, batchLength); err != nil || !more {
			return err
		}
	}
}

// readOne reads a batch of so many series at most. It reports whether there are more.
func (a *ahead) readOne(ctx context.Context, most int) (more bool, err error) {
	select {
	case b := <-a.empty:
		if more, err = a.fill(ctx, b, most); err == nil {
			a.filled <- b // has room for all
		}
		return more, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// fill reads series until the batch has so many or is full. It reports whether there are more, which it looks for: one long series fills a batch,
// and to find on another goroutine that there is nothing behind it takes 3 % of the processor time of its query.
func (a *ahead) fill(ctx context.Context, b *batch, most int) (more bool, err error) {
	b.rows.Reset()
	b.labels, b.series = b.labels[:0], b.series[:0]
	if !a.stands && !a.set.Next(ctx) {
		return false, a.set.Err()
	}
	for a.stands = true; a.stands && b.rows.Len() < batchSamples && len(b.series) < most && len(b.labels) < batchLabelBytes; a.stands = a.set.Next(ctx) {
		if err := a.set.AppendRows(ctx, &b.rows); err != nil {
			return false, err
		}
		b.labels = append(b.labels, a.set.Labels()...)
		b.series = append(b.series, batchSeries{b.rows.Len(), len(b.labels)})
		b.bytes += a.set.Charged()
	}
	return a.stands, a.set.Err()
}

// next returns the labels and rows of the next series, which are valid until the next call and the caller's to change. It
// returns false at the end or on an error, which is err then.
func (a *ahead) next(ctx context.Context) (l model.Labels, rows model.Rows, ok bool) {
	if a.cancel == nil {
		a.begin(ctx)
	}
	if err := ctx.Err(); err != nil {
		_ = a.close() // its error is that of the set, which is closed once more in the end
		a.err = err
		return nil, rows, false
	}
	for a.current == nil || a.at == len(a.current.series) {
		if a.current != nil {
			a.giveBack(a.current)
			a.empty <- a.current
			a.current = nil
		}
		b, ok := <-a.filled
		if !ok {
			return nil, rows, false
		}
		a.current, a.at = b, 0
	}
	b := a.current
	var begin batchSeries
	if a.at > 0 {
		begin = b.series[a.at-1]
	}
	end := b.series[a.at]
	a.at++
	rows = model.Rows{Times: b.rows.Times[begin.rows:end.rows], Values: b.rows.Values[begin.rows:end.rows]}
	if len(b.rows.Kinds) > 0 {
		rows.Kinds = b.rows.Kinds[begin.rows:end.rows]
	}
	if len(b.rows.Starts) > 0 {
		rows.Starts = b.rows.Starts[begin.rows:end.rows]
	}
	return b.labels[begin.labels:end.labels], rows, true
}

func (a *ahead) giveBack(b *batch) {
	_ = a.quota.TakeBytes(-b.bytes) // giving back does not fail
	b.bytes = 0
}

// close stops reading and gives up what the set pins, and all memory: a query may have many sets, and holds them to its end. It
// may be called more than once; nothing may be asked for after it.
func (a *ahead) close() error {
	if a.cancel != nil {
		a.cancel()
		for b := range a.filled {
			a.giveBack(b)
			b.keep()
		}
		a.reading.Wait()
	}
	if a.current != nil {
		a.giveBack(a.current)
		a.current.keep()
		a.current = nil
	}
	for len(a.empty) > 0 {
		(<-a.empty).keep()
	}
	return a.set.Close()
}
