package whisperimport

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/move/remote"
)

// numbered is a request, and what is done when it and all before it are acknowledged.
type numbered struct {
	number int // from 1
	remote.Request
	// until is the last file of which the request has the end, and tally counts these files. "": none.
	until string
	tally Tally
}

// send sends what is left of the files. Requests are made by one goroutine and sent by several.
func (i *Import) send(ctx context.Context) error {
	queue := make(chan *numbered)
	acks := &acks{importer: i, pending: map[int]*numbered{}}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(queue)
		m := maker{builder: remote.NewBuilder(), queue: queue}
		err := i.reader().each(ctx, i.State.Until, max(1, i.Concurrency), func(s *series) error { return m.add(ctx, s) })
		if err != nil {
			return err
		}
		return m.flush(ctx)
	})
	for range max(1, i.Concurrency) {
		g.Go(func() error {
			for n := range queue {
				if n.Samples() > 0 {
					if err := i.sender.Send(ctx, &n.Request); err != nil {
						return err
					}
				}
				if err := acks.add(n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("sending files after %q: %w; run the command again to go on", i.State.Until, err)
	}
	return nil
}

// maker makes requests of series.
type maker struct {
	builder *remote.Builder
	queue   chan<- *numbered
	number  int
	until   string
	tally   Tally
}

// maxFiles bounds the files of a request: those that have no points make it no larger.
const maxFiles = 10_000

func (m *maker) add(ctx context.Context, s *series) error {
	if s.rows != nil {
		for n, at := range s.rows.Times {
			full := m.builder.Full()
			if full {
				if err := m.flush(ctx); err != nil {
					return err
				}
			}
			if n == 0 || full { // servers refuse a series without samples
				m.builder.Begin(s.labels)
			}
			m.builder.Float(at/1e6, s.rows.Start(n)/1e6, s.rows.Values[n])
		}
	}
	m.until = s.path
	m.tally.add(&s.tally)
	if m.tally.seen() >= maxFiles {
		return m.flush(ctx)
	}
	return nil
}

func (m *maker) flush(ctx context.Context) error {
	m.number++
	n := &numbered{number: m.number, Request: m.builder.Finish(), until: m.until, tally: m.tally}
	m.until, m.tally = "", Tally{}
	select {
	case m.queue <- n:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acks finds out how far the requests are acknowledged without a gap.
type acks struct {
	importer *Import

	mu      sync.Mutex
	last    int // all requests up to this one are acknowledged
	pending map[int]*numbered
}

func (a *acks) add(n *numbered) error {
	a.importer.points.Add(int64(n.Floats))
	a.mu.Lock()
	defer a.mu.Unlock()
	n.Body = nil // only its numbers are needed
	a.pending[n.number] = n
	var done Tally
	until := ""
	for a.pending[a.last+1] != nil {
		n := a.pending[a.last+1]
		delete(a.pending, n.number)
		a.last++
		if n.until != "" {
			until = n.until
			done.add(&n.tally)
		}
	}
	if until == "" {
		return nil
	}
	a.importer.done.Add(done.seen())
	state := a.importer.State
	return state.update(func() {
		state.Until = until
		state.Tally.add(&done)
	})
}
