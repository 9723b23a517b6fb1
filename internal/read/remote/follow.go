package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

const (
	// attachFor is how long holders are sought before following lines fails, attachPause the pause between
	// attempts.
	attachFor   = time.Minute
	attachPause = 500 * time.Millisecond
)

// Follow calls fn with lines that holders apply from now on, maybe more than the request selects, and calls
// lost with lines that a holder had to leave out, until the context ends. It calls ready once every line is
// followed that a later query would not see. Neither may keep a batch.
//
// If a holder goes away or a journal gets another one, Follow ends with an error of class transient: lines
// may have come meanwhile, and only a query from the last line on finds them.
func (s *Source) Follow(ctx context.Context, req *model.Request, ready func(), fn, lost func(*model.Batch)) error {
	streams, err := s.attach(ctx, req)
	if err != nil {
		return endOf(ctx, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(streams)+1)
	var running sync.WaitGroup
	var handing sync.Mutex // fn and lost are for one goroutine
	for _, st := range streams {
		running.Go(func() {
			defer st.close()
			ended <- model.Caught(func() error { return st.follow(ctx, &handing, fn, lost) })
		})
	}
	running.Go(func() {
		ended <- model.Caught(func() error { return s.guard(ctx, heldBy(streams)) })
	})
	ready()
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	if ctx.Err() != nil {
		err = nil
	}
	cancel()
	for _, st := range streams {
		st.cancel(context.Canceled) // a read that waits for a frame
	}
	running.Wait()
	return err
}

// endOf returns an error, unless the context has ended.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// attach opens a stream for each holder, and waits for a while for those that are starting.
func (s *Source) attach(ctx context.Context, req *model.Request) ([]*stream, error) {
	of, _ := request(req)
	of.Family = model.Text
	for began := time.Now(); ; {
		streams, err := s.open(ctx, wire.PathTail, of, req)
		if err == nil {
			if err = s.complete(ctx, streams); err != nil {
				for _, st := range streams {
					st.close()
				}
				streams = nil
			}
		}
		if err == nil || ctx.Err() != nil || !errors.Is(err, model.ErrTransient) || time.Since(began) > attachFor {
			return streams, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(attachPause):
		}
	}
}

// complete reports a journal that takes writes and has no holder. A query needs none while the bucket has
// everything, but lines that come next would not be followed.
func (s *Source) complete(ctx context.Context, streams []*stream) error {
	if s.o.Log == nil {
		return nil
	}
	progress, err := s.o.Log.Journals(ctx, false)
	if err != nil {
		return err
	}
	held, latest := heldBy(streams), uint64(0)
	for _, x := range progress {
		latest = max(latest, x.Epoch)
	}
	for _, x := range progress {
		if x.Epoch == latest && !held[journalID{x.Node, x.Epoch}] {
			return fmt.Errorf("%w: no process that can be asked holds journal %s of epoch %d, so new lines in it cannot be followed", model.ErrTransient, x.Node, x.Epoch)
		}
	}
	return nil
}

// heldBy returns the journals that streams answer for.
func heldBy(streams []*stream) map[journalID]bool {
	held := map[journalID]bool{}
	for _, st := range streams {
		for _, j := range st.held {
			held[journalID{j.Node, j.Epoch}] = true
		}
	}
	return held
}

// guard ends once a journal has a holder that was not asked: lines in it are not followed.
func (s *Source) guard(ctx context.Context, followed map[journalID]bool) error {
	tick := time.NewTicker(s.o.Refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		p, err := s.choose(ctx, false, nil)
		if err != nil {
			continue // the stream of a holder that is gone ends by itself
		}
		for _, needs := range p.needs {
			for _, n := range needs {
				if !followed[journalID{n.Node, n.Epoch}] {
					return fmt.Errorf("%w: journal %s of epoch %d has a holder now, and did not when following began", model.ErrTransient, n.Node, n.Epoch)
				}
			}
		}
	}
}

// follow hands on the frames of a holder.
func (s *stream) follow(ctx context.Context, handing *sync.Mutex, fn, lost func(*model.Batch)) error {
	// Until it is noticed that a machine has vanished, lines are missing.
	s.patience = min(s.patience, 2*wire.TailPulse)
	var b model.Batch
	for {
		kind, body, err := s.next(ctx)
		if err != nil {
			return err
		}
		hand := fn
		switch kind {
		case wire.Strings: // it lives
			continue
		case wire.Record:
		case wire.Dropped:
			hand = lost
		default:
			return s.damaged("expected lines, got a frame of kind %d", kind)
		}
		if err := journal.DecodeBatch(body, &b); err != nil {
			return s.damaged("%v", err)
		}
		if b.Signal != model.Logs || b.Tenant != s.req.Tenant || len(b.Labels.Series) != len(b.Keys) {
			return s.damaged("expected lines of %q with labels", s.req.Tenant)
		}
		b.Source = labelled{&b}
		handOn(handing, hand, &b)
	}
}

// handOn gives a batch to a function that is for one goroutine. A panic of it must not keep the others out.
func handOn(handing *sync.Mutex, to func(*model.Batch), b *model.Batch) {
	handing.Lock()
	defer handing.Unlock()
	to(b)
}

// labelled gives the labels that a batch brings along.
type labelled struct{ b *model.Batch }

// BuildLabels is [model.LabelSource.BuildLabels].
func (l labelled) BuildLabels(i int, to *model.LabelsBuilder) {
	at, has := slices.BinarySearch(l.b.Labels.Series, uint32(i))
	if !has {
		return
	}
	for n, v, rest, ok := l.b.Labels.At(at).Next(); ok; n, v, rest, ok = rest.Next() {
		to.Add(n, v)
	}
}
