package write

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// watchers holds the functions that see batches once they are durable. The list is copied on change, so
// that a push pays one atomic load for it.
type watchers struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*watcher]
}

type watcher struct {
	mu        sync.RWMutex
	cancelled bool
	fn        func(*model.Batch)
}

// Watch calls fn with each batch of either signal after it is durable and visible to queries, and
// before its sender gets a response. If a push becomes durable in pieces, fn sees each piece.
// Concurrent pushes are seen in any order.
//
// fn is called concurrently and delays the sender: it must not block and must not keep any part of the
// batch. [model.Batch.BuildLabels] gives the labels of every series, known or new, in any order.
//
// After cancel returns, no call is running and none begins. fn must not call cancel.
func (p *Path) Watch(fn func(*model.Batch)) (cancel func()) {
	w := &watcher{fn: fn}
	p.watchers.change(func(list []*watcher) []*watcher { return append(list, w) })
	return func() {
		p.watchers.change(func(list []*watcher) []*watcher {
			return slices.DeleteFunc(list, func(o *watcher) bool { return o == w })
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cancelled = true
	}
}

func (ws *watchers) change(f func(copied []*watcher) []*watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
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

// notify passes the batch to all watchers.
func (ws *watchers) notify(b *model.Batch) {
	list := ws.list.Load()
	if list == nil {
		return
	}
	for _, w := range *list {
		w.notify(b)
	}
}

func (w *watcher) notify(b *model.Batch) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if !w.cancelled {
		w.fn(b)
	}
}
