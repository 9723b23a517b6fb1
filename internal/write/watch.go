package write

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// watchers are those who look at batches once they are durable. The list is copied when it changes, so that a push pays
// one atomic load for it.
type watchers struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*watcher]
}

type watcher struct {
	mu   sync.RWMutex
	gone bool
	fn   func(*model.Batch)
}

// Watch calls fn with each batch, of either signal, once it is durable and queries see it, and before its sender is
// answered; of a push that is made durable in pieces, with each piece. It is called by many goroutines at once, and what
// it does holds the sender up: it must neither wait nor keep anything of the batch. Of two pushes that overlap, any may
// come first. [model.Batch.BuildLabels] gives the labels of every series, known or new; they come in any order.
//
// After cancel no call is running and none begins. fn must not call it.
func (p *Path) Watch(fn func(*model.Batch)) (cancel func()) {
	w := &watcher{fn: fn}
	p.watchers.change(func(list []*watcher) []*watcher { return append(list, w) })
	return func() {
		p.watchers.change(func(list []*watcher) []*watcher {
			return slices.DeleteFunc(list, func(o *watcher) bool { return o == w })
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.gone = true
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

// show calls all watchers.
func (ws *watchers) show(b *model.Batch) {
	list := ws.list.Load()
	if list == nil {
		return
	}
	for _, w := range *list {
		w.show(b)
	}
}

func (w *watcher) show(b *model.Batch) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if !w.gone {
		w.fn(b)
	}
}
