package following

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/remote"
)

// heldLines are the lines that other processes apply.
type heldLines struct{ *remote.Source }

// Follow is [logql.Follower.Follow].
func (h heldLines) Follow(ctx context.Context, req *model.Request, ready func(), fn, lost func(*model.Batch)) error {
	err := h.Source.Follow(ctx, req, ready, fn, lost)
	if errors.Is(err, model.ErrTransient) || errors.Is(err, model.ErrClosed) {
		err = fmt.Errorf("%w: %w", logql.ErrInterrupted, err)
	}
	return err
}

// followers are several sources of lines.
type followers []logql.Follower

// Follow is [logql.Follower.Follow]. The first that fails ends the others.
func (fs followers) Follow(ctx context.Context, req *model.Request, ready func(), fn, lost func(*model.Batch)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var handing sync.Mutex // fn and lost are for one goroutine
	one := func(hand func(*model.Batch)) func(*model.Batch) {
		return func(b *model.Batch) {
			handing.Lock()
			defer handing.Unlock()
			hand(b)
		}
	}
	var starting, running sync.WaitGroup
	errs := make([]error, len(fs))
	for i, f := range fs {
		starting.Add(1)
		done := sync.OnceFunc(starting.Done)
		running.Go(func() {
			defer done()
			errs[i] = model.Caught(func() error { return f.Follow(ctx, req, done, one(fn), one(lost)) })
			if errs[i] != nil {
				cancel()
			}
		})
	}
	starting.Wait()
	if ctx.Err() == nil {
		ready()
	}
	running.Wait()
	return errors.Join(errs...)
}

// Of returns what follows the lines of both sources, or nil. Each may be nil.
func Of(unshipped read.Source, further logql.Follower) logql.Follower {
	var all followers
	if held, ok := unshipped.(*remote.Source); ok {
		all = append(all, heldLines{held})
	}
	if further != nil {
		all = append(all, further)
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}
