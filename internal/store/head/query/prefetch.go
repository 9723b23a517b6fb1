package query

import (
	"context"
	"slices"
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// seriesPrefetch finds series and their ranks in parts before their rows are read. When a query wants a few
// rows of each of many series, finding takes about as long as reading, and so each gets a core.
type seriesPrefetch struct {
	series *seriesUnion // nil: there are none
	parts  []partKeys
	quota  *model.Quota // is charged for batches

	cancel  context.CancelFunc // nil: finding has not begun
	found   chan *seriesBatch
	empty   chan *seriesBatch
	finding sync.WaitGroup
	err     error // of the finder, once found is closed

	current *seriesBatch
	at      int // in it
	ended   bool
}

// seriesBatch is series that were found together.
type seriesBatch struct {
	keys   []model.Key
	labels []byte
	ends   []int   // of the labels of each series
	ranks  []int64 // of each series, one for each part
	held   int64   // charged
}

// noRank is the rank of a series that a part does not have.
const noRank = -1

// A batch is full when it has batchSeries series or batchLabelBytes bytes of labels. The first batch is
// smaller, for a short wait; the later ones are larger, since each wakes two goroutines. The sizes were
// chosen without a benchmark.
const (
	firstBatchSeries = 128
	batchSeries      = 512
	batchLabelBytes  = 64 << 10
	batchesPerQuery  = 3
)

// seriesBatches keeps the memory of batches between queries. A batch that has grown large is left to the
// garbage collector.
var seriesBatches = sync.Pool{New: func() any { return new(seriesBatch) }}

// drop releases a batch.
func (a *seriesPrefetch) drop(b *seriesBatch) {
	_ = a.quota.TakeBytes(-b.held) // giving back does not fail
	b.held = 0
	if cap(b.labels) <= 2*batchLabelBytes && cap(b.ranks) <= 64*batchSeries {
		seriesBatches.Put(b)
	}
}

// next moves to the next series. It returns false at the end or on an error, and from then on.
func (a *seriesPrefetch) next(ctx context.Context) (more bool, err error) {
	if a.series == nil || a.ended {
		return false, nil
	}
	if a.at++; a.current != nil && a.at < len(a.current.keys) {
		return true, nil
	}
	if err = ctx.Err(); err == nil {
		more, err = a.nextBatch(ctx)
	}
	a.ended = !more
	return more, err
}

// nextBatch moves to the next batch. The first one is found by the caller: many queries need no other, and
// waking a goroutine takes time.
func (a *seriesPrefetch) nextBatch(ctx context.Context) (ok bool, err error) {
	a.at = 0
	switch {
	case a.current == nil:
		a.current = seriesBatches.Get().(*seriesBatch)
		more, err := a.fill(ctx, a.current, firstBatchSeries)
		if err != nil {
			return false, err
		}
		if more {
			a.startFinder(ctx)
		}
	case a.found == nil:
		return false, nil
	default:
		a.empty <- a.current // has room for all
		processor := model.ProcessorOf(ctx)
		processor.Leave()
		a.current, ok = <-a.found
		processor.Enter(ctx)
		if !ok {
			return false, a.err
		}
	}
	return len(a.current.keys) > 0, nil
}

// startFinder starts the goroutine that finds the following batches. It ends with the context of the call
// that found the first one.
func (a *seriesPrefetch) startFinder(ctx context.Context) {
	ctx, a.cancel = context.WithCancel(ctx)
	a.found, a.empty = make(chan *seriesBatch, batchesPerQuery), make(chan *seriesBatch, batchesPerQuery)
	for range batchesPerQuery - 1 {
		a.empty <- seriesBatches.Get().(*seriesBatch)
	}
	a.finding.Go(func() {
		defer close(a.found)
		ctx, done := model.Computing(ctx)
		defer done()
		a.err = model.Caught(func() error { return a.find(ctx) })
	})
}

func (a *seriesPrefetch) find(ctx context.Context) error {
	processor := model.ProcessorOf(ctx)
	for {
		processor.Leave()
		select {
		case b := <-a.empty:
			processor.Enter(ctx)
			more := false
			err := model.Caught(func() (err error) {
				more, err = a.fill(ctx, b, batchSeries)
				return err
			})
			if err != nil {
				a.drop(b)
				return err
			}
			if a.found <- b; !more {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fill finds series until the batch has the given number or is full, and reports whether there may be more.
func (a *seriesPrefetch) fill(ctx context.Context, b *seriesBatch, most int) (more bool, err error) {
	b.keys, b.labels, b.ends = b.keys[:0], b.labels[:0], b.ends[:0]
	for more = true; more && len(b.keys) < most && len(b.labels) < batchLabelBytes; {
		if err = ctx.Err(); err == nil {
			more, err = a.series.next()
		}
		if err != nil {
			return false, err
		}
		if more {
			b.keys = append(b.keys, a.series.key)
			b.labels = append(b.labels, a.series.labels...)
			b.ends = append(b.ends, len(b.labels))
		}
	}
	if err = a.rank(b); err == nil {
		err = a.hold(b)
	}
	return more, err
}

// hold charges a batch to the quota. Only its contents count: its capacity may come from an earlier query.
func (a *seriesPrefetch) hold(b *seriesBatch) error {
	bytes := int64(len(b.labels) + 16*len(b.keys) + 8*len(b.ends) + 8*len(b.ranks))
	if bytes <= b.held {
		return nil
	}
	if err := a.quota.TakeBytes(bytes - b.held); err != nil {
		return err
	}
	b.held = bytes
	return nil
}

// rank finds the ranks of the series of a batch, part by part.
func (a *seriesPrefetch) rank(b *seriesBatch) error {
	b.ranks = slices.Grow(b.ranks[:0], len(b.keys)*len(a.parts))[:len(b.keys)*len(a.parts)]
	for i := range a.parts {
		p := &a.parts[i]
		for k, key := range b.keys {
			rank, err := p.rank(key)
			if err != nil {
				return err
			}
			b.ranks[k*len(a.parts)+i] = rank
		}
	}
	return nil
}

// The current series: its key, its labels, and its rank in each part.

func (a *seriesPrefetch) key() model.Key { return a.current.keys[a.at] }

func (a *seriesPrefetch) labels() model.Labels {
	begin := 0
	if a.at > 0 {
		begin = a.current.ends[a.at-1]
	}
	return a.current.labels[begin:a.current.ends[a.at]]
}

func (a *seriesPrefetch) ranks() []int64 {
	n := len(a.parts)
	return a.current.ranks[a.at*n:][:n]
}

// close ends the prefetch and releases the batches. It may be called more than once.
func (a *seriesPrefetch) close() {
	if a.cancel != nil {
		a.cancel()
		for b := range a.found {
			a.drop(b)
		}
		a.finding.Wait()
		for len(a.empty) > 0 {
			a.drop(<-a.empty)
		}
	}
	if a.current != nil {
		a.drop(a.current)
	}
	*a = seriesPrefetch{}
}
