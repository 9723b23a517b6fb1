package tsdbimport

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/prometheus/storage"
	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/move/remote"
)

// send sends what is left of a block.
func (i *Import) send(ctx context.Context, b *Block, r *reader, p Progress) error {
	err := days(max(b.MinTime, i.State.From), min(b.MaxTime, i.State.To), p, func(lo, hi int64, series uint64) error {
		if err := i.sendDay(ctx, b, r, lo, hi, storage.SeriesRef(series)); err != nil {
			return err
		}
		return i.State.update(b, func(p *Progress) { p.Begun, p.Until, p.Series = true, hi, 0 })
	})
	if err != nil {
		return err
	}
	return i.State.update(b, func(p *Progress) { p.Sent = true })
}

// sendDay sends the points of a block in [lo, hi), of the series from a reference on. Requests are made by
// one goroutine and sent by several; a request that is full while others are on their way waits.
func (i *Import) sendDay(ctx context.Context, b *Block, r *reader, lo, hi int64, from storage.SeriesRef) error {
	queue := make(chan numbered)
	acks := &acks{importer: i, block: b, pending: map[int]*request{}, lo: lo}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(queue)
		builder := requestBuilder{Builder: remote.NewBuilder()}
		number, last := 0, from
		enqueue := func(next storage.SeriesRef) error {
			if builder.Samples() == 0 {
				return nil
			}
			number++
			select {
			case queue <- numbered{number, builder.finish(next)}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := r.each(ctx, from, lo, hi, func(p piece) error {
			if builder.Full() {
				if err := enqueue(p.ref); err != nil {
					return err
				}
			}
			last = p.ref
			return builder.add(&p)
		})
		if err != nil {
			return err
		}
		return enqueue(last)
	})
	for range max(1, i.Concurrency) {
		g.Go(func() error {
			for n := range queue {
				if err := i.sender.Send(ctx, &n.Request); err != nil {
					return err
				}
				if err := acks.add(n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("sending samples from %s on: %w", timeOf(lo), err)
	}
	return nil
}

// numbered is a request with its number of those of a day, from 1.
type numbered struct {
	number int
	*request
}

// acks finds out how far the requests of a day are acknowledged without a gap.
type acks struct {
	importer *Import
	block    *Block
	lo       int64

	mu      sync.Mutex
	last    int // all requests up to this one are acknowledged
	pending map[int]*request
}

// add notes an acknowledged request.
func (a *acks) add(n numbered) error {
	a.importer.floats.Add(int64(n.Floats))
	a.importer.histograms.Add(int64(n.Histograms))
	a.importer.done.Add(int64(n.Samples()))
	a.mu.Lock()
	defer a.mu.Unlock()
	n.Body = nil // only its numbers are needed
	a.pending[n.number] = n.request
	var next storage.SeriesRef
	samples := 0
	for a.pending[a.last+1] != nil {
		r := a.pending[a.last+1]
		delete(a.pending, a.last+1)
		a.last++
		next, samples = r.next, samples+r.Samples()
	}
	if samples == 0 {
		return nil
	}
	return a.importer.State.update(a.block, func(p *Progress) {
		p.Begun, p.Until, p.Series = true, a.lo, uint64(next)
		p.Samples += int64(samples)
	})
}
