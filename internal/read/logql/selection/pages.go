package selection

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// rowBytes is about what a row takes in memory besides its line.
const rowBytes = 24

// heldPage is a page of a layout. A page of which several pieces have chunks stays in memory between them,
// unless others need its room.
type heldPage struct {
	page   model.TextPage
	wanted int32 // chunks that are still to be scanned
	users  int32 // that read it now
	held   bool  // it was read and not released
	read   bool  // it was read at any time
	skip   skipState
	bytes  int64 // about what of it was asked for takes in memory
}

type skipState uint8

const (
	unknown skipState = iota
	mustRead
	skipped
)

// pages decide when the pages of a layout leave memory.
type pages struct {
	all []heldPage
	max int64 // most bytes of the pages that are not being read
	// freed counts how often memory was given back: by pages that were released, and by tasks that were ended.
	freed atomic.Int64

	mu   sync.Mutex
	idle int64   // bytes that they take
	fifo []int32 // those that became idle, in this order; some may be in use again
}

// skip reports whether no line of the page can be wanted, by the filter of the request. It asks the page
// once.
func (p *pages) skip(ctx context.Context, at int32) (bool, error) {
	h := &p.all[at]
	p.mu.Lock()
	known := h.skip
	p.mu.Unlock()
	if known != unknown {
		return known == skipped, nil
	}
	skip, err := h.page.Skip(ctx) // two workers may ask at once, which is rare and does no harm
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.skip != unknown {
		return h.skip == skipped, nil
	}
	if h.skip = mustRead; skip {
		h.skip = skipped
	}
	return skip, nil
}

// use says that a page is going to be read. It stays in memory until done is called as often.
func (p *pages) use(at int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := &p.all[at]
	if h.users++; h.users == 1 && h.held {
		p.idle -= h.bytes
	}
	h.held, h.read = true, true
}

func (p *pages) done(at int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := &p.all[at]
	if h.users--; h.users > 0 {
		return
	}
	if h.wanted <= 0 {
		p.release(h)
		return
	}
	p.idle += h.bytes
	p.fifo = append(p.fifo, at)
	for p.idle > p.max && len(p.fifo) > 0 {
		p.evictLocked()
	}
}

// evictLocked releases the page that has been idle for longest.
func (p *pages) evictLocked() {
	h := &p.all[p.fifo[0]]
	p.fifo = p.fifo[1:]
	if h.users == 0 && h.held {
		p.idle -= h.bytes
		p.release(h)
	}
}

func (p *pages) release(h *heldPage) {
	h.held = false
	h.page.Release()
	p.freed.Add(1)
}

// forget says that n chunks of the page are not needed any more, whether they were read or not.
func (p *pages) forget(at, n int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := &p.all[at]
	if h.wanted -= n; h.wanted <= 0 && h.users == 0 && h.held {
		p.idle -= h.bytes
		p.release(h)
	}
}

// close releases all pages. No worker may be left.
func (p *pages) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.all {
		if h := &p.all[i]; h.held {
			p.release(h)
		}
	}
}

// wereRead counts the pages that were read.
func (p *pages) wereRead() int64 {
	n := int64(0)
	for i := range p.all {
		if p.all[i].read {
			n++
		}
	}
	return n
}
