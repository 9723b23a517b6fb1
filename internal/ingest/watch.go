package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// Applied is a batch that was applied, as watchers of a partition see it.
type Applied struct {
	*model.Batch
	Seq uint64
	p   *Partition
}

// Label gives the batch the labels of some of its series, ascending indexes, from the head.
func (a *Applied) Label(ctx context.Context, some []uint32) error {
	missing := slices.DeleteFunc(slices.Clone(some), func(i uint32) bool {
		_, has := slices.BinarySearch(a.Labels.Series, i)
		return has
	})
	if len(missing) == 0 {
		return nil
	}
	missing, err := a.p.head.Label(ctx, a.Batch, missing)
	if err == nil && len(missing) > 0 { // rows without labels stop a partition before they are applied
		err = fmt.Errorf("%w: the labels of %s are gone", model.ErrTransient, a.Keys[missing[0]])
	}
	return err
}

// watchers see what is applied. The list is copied on change, so that reading a partition pays one atomic
// load for it.
type watchers struct {
	mu     sync.Mutex
	closed bool
	list   atomic.Pointer[[]*watcher]
}

type watcher struct {
	mu    sync.Mutex // held by each call of fn
	fn    func(*Applied)
	ended func()
}

// Watch calls fn with each batch of rows after queries see it. fn must neither block nor keep any part of the
// batch. It calls ended when the partition ends, also if it has ended. After cancel returns, no call is
// running and none begins.
func (p *Partition) Watch(fn func(*Applied), ended func()) (cancel func()) {
	ws, w := &p.watchers, &watcher{fn: fn, ended: ended}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		ended()
		return func() {}
	}
	ws.change(func(list []*watcher) []*watcher { return append(list, w) })
	return func() {
		ws.mu.Lock()
		ws.change(func(list []*watcher) []*watcher {
			return slices.DeleteFunc(list, func(o *watcher) bool { return o == w })
		})
		ws.mu.Unlock()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fn = nil
	}
}

func (ws *watchers) change(f func(copied []*watcher) []*watcher) {
	var list []*watcher
	if now := ws.list.Load(); now != nil {
		list = slices.Clone(*now)
	}
	if list = f(list); len(list) == 0 {
		ws.list.Store(nil)
		return
	}
	ws.list.Store(&list)
}

// notify passes a batch on.
func (ws *watchers) notify(a *Applied) {
	list := ws.list.Load()
	if list == nil {
		return
	}
	for _, w := range *list {
		w.mu.Lock()
		if w.fn != nil {
			w.fn(a)
		}
		w.mu.Unlock()
	}
}

// end tells all that the partition ends.
func (ws *watchers) end() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
	if list := ws.list.Load(); list != nil {
		for _, w := range *list {
			w.ended()
		}
	}
}
