package archive

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// A request to an object store is assumed to take about 20 ms, in which a megabyte could be transferred. So
// one request reads pages that are near each other, with the bytes between them, and several requests run in
// parallel. The numbers below follow from that assumption; no benchmark chose them.
const (
	// spansAhead is the number of requests of one block ahead of the page that was taken last.
	spansAhead = 8
	// Prefetched bytes may take 1/aheadShare of the memory of the query. A span with a page that is needed
	// now may raise the total to 1/askedShare: reading it page by page would take many requests, since its
	// other pages will be needed soon.
	aheadShare, askedShare = 8, 4
	// nearBytes bounds what the bucket is told of the pages next to one for which the query has no room.
	nearBytes = 1 << 20
	// parallelReads bounds the prefetching requests of one query, over all blocks.
	parallelReads = 16
)

// reach bounds the bytes of requests.
type reach struct {
	// tail is the size of the first request of a block: the footer and nearly always the whole index, which
	// comes before it.
	tail int64
	// A block of up to whole bytes is read with one request: reading one series from it would take three
	// more.
	whole int64
	// span bounds a request for several pages, and gap the unneeded bytes between two of them.
	span, gap int64
}

func usualReach(gap int64) reach {
	return reach{tail: 128 << 10, whole: 512 << 10, span: 2 << 20, gap: gap}
}

// lanes bound the prefetching requests.
type lanes chan struct{}

func newLanes() lanes { return make(lanes, parallelReads) }

// ahead prefetches pages of one block. Its memory is charged to the query. It does not prefetch if the query
// has no room to spare, so that a query does not fail because of it.
type ahead struct {
	p      *pages
	lanes  lanes
	quota  *model.Quota
	ctx    context.Context // ends with the cursor
	cancel context.CancelFunc
	reads  sync.WaitGroup

	mu    sync.Mutex
	spans []*span
	of    map[int64]*span // by the offset of each planned page; nil: a reader has asked for it
	held  int64           // bytes of quota
}

// span is a range of the block that one request reads.
type span struct {
	index    int // in ahead.spans, which are in the order of use
	first    int // index of its first page among those of the same plan
	off, end int64
	pages    []part.Addr // by their offsets
	left     int         // pages that have not been taken
	done     chan struct{}
	started  bool
	refused  bool                  // the query has no room for it
	kept     map[int64]cache.Found // pages of the secondary tier, by their offsets
	stored   []byte                // the range from storedOff on that was read from the bucket
	// storedOff is the offset of stored.
	storedOff int64
	err       error
}

func newAhead(ctx context.Context, p *pages, l lanes, q *model.Quota) *ahead {
	h := &ahead{p: p, lanes: l, quota: q, of: make(map[int64]*span)}
	h.ctx, h.cancel = context.WithCancel(model.NotComputing(ctx))
	return h
}

// close ends all reads, waits for them, and gives their memory back.
func (h *ahead) close() {
	h.cancel()
	h.mu.Lock()
	h.spans, h.of = nil, nil // so that no further read begins
	h.mu.Unlock()
	h.reads.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.giveBack(h.held)
}

// hold charges the query if it has memory to spare. For a page that is needed now the bound is higher.
func (h *ahead) hold(n int64, asked bool) bool {
	share := int64(aheadShare)
	if asked {
		share = askedShare
	}
	if !h.quota.TakeSpare(n, share) {
		return false
	}
	h.held += n
	return true
}

// giveBack reverts hold.
func (h *ahead) giveBack(n int64) {
	h.quota.GiveSpare(n)
	h.held -= n
}

// plan groups pages that are neither cached nor planned yet into spans, and starts to read them.
func (h *ahead) plan(wanted []part.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		return
	}
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(a part.Addr) bool {
		// A page that a reader has asked for may be on its way to the cache.
		_, known := h.of[a.Off]
		return known || h.p.Has(a) || h.p.inTail(a)
	})
	place := make(map[int64]int, len(wanted)) // index of each page in the order of use
	for i := len(wanted) - 1; i >= 0; i-- {
		place[wanted[i].Off] = i
	}
	slices.SortFunc(wanted, func(a, b part.Addr) int { return cmp.Compare(a.Off, b.Off) })
	wanted = slices.Compact(wanted) // several values of a matcher may share a page
	first := len(h.spans)
	var s *span
	for _, a := range wanted {
		end := a.Off + int64(a.Len)
		if s == nil || a.Off-s.end > h.p.a.reach.gap || end-s.off > h.p.a.reach.span {
			s = &span{off: a.Off, first: place[a.Off], done: make(chan struct{})}
			h.spans = append(h.spans, s)
		}
		h.of[a.Off], s.end, s.first = s, end, min(s.first, place[a.Off])
		s.pages = append(s.pages, a)
		s.left++
	}
	// Lines may be read from the last to the first.
	slices.SortStableFunc(h.spans[first:], func(a, b *span) int { return cmp.Compare(a.first, b.first) })
	for i, s := range h.spans[first:] {
		s.index = first + i
	}
	h.start(first)
}

// start begins as many reads from the index on as the bounds allow. A read without room is retried when the
// next page is taken.
func (h *ahead) start(index int) {
	for _, s := range h.spans[index:min(index+spansAhead, len(h.spans))] {
		if s.started {
			continue
		}
		if !h.hold(s.end-s.off, false) {
			return
		}
		s.started = true
		h.reads.Go(func() { h.read(s) })
	}
}

func (h *ahead) read(s *span) {
	defer close(s.done)
	select {
	case <-h.ctx.Done():
		s.err = h.ctx.Err()
		return
	case h.lanes <- struct{}{}:
	}
	defer func() { <-h.lanes }()
	s.err = model.Caught(func() (err error) { // whoever takes a page of the span has the error
		if off, end := h.missing(s); off < end {
			s.storedOff = off
			s.stored, err = h.p.read(h.ctx, off, end-off)
		}
		return err
	})
}

// missing asks the secondary tier for the pages of a span, and returns the range of those that it does not
// have. One request reads that range, with the pages of the tier that lie in it: a second request would take
// longer than their bytes.
func (h *ahead) missing(s *span) (off, end int64) {
	if h.p.a.o.Secondary == nil {
		return s.off, s.end
	}
	s.kept = make(map[int64]cache.Found)
	for i, page := range h.p.keptMany(h.ctx, s.pages) {
		a := s.pages[i]
		if page.From != cache.Nowhere {
			s.kept[a.Off] = page
			continue
		}
		if end == 0 {
			off = a.Off
		}
		end = max(end, a.Off+int64(a.Len))
	}
	return off, end
}

// take returns the stored bytes of a page, which the caller may keep; no value means that the page is not
// prefetched.
func (h *ahead) take(ctx context.Context, a part.Addr) (page cache.Found, err error) {
	h.mu.Lock()
	s := h.of[a.Off]
	if h.of != nil {
		h.of[a.Off] = nil
	}
	if s == nil {
		h.mu.Unlock()
		return page, nil
	}
	h.start(s.index)
	switch {
	case s.started:
	case h.hold(s.end-s.off, true):
		s.started = true
		h.reads.Go(func() { h.read(s) })
	default:
		s.started, s.refused = true, true
		close(s.done)
	}
	h.mu.Unlock()
	model.ProcessorOf(ctx).Leave()
	select {
	case <-ctx.Done():
		return page, ctx.Err()
	case <-s.done:
	}
	if s.err != nil {
		return page, s.err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		return page, nil
	}
	if s.refused {
		h.of[a.Off] = s // for near
		return page, nil
	}
	var ok bool
	if page, ok = s.kept[a.Off]; !ok {
		// Copied: an uncompressed page is cached as it is stored, and would keep the whole span in memory.
		page.Value = bytes.Clone(s.stored[a.Off-s.storedOff:][:a.Len])
	}
	if s.left--; s.left == 0 {
		s.stored, s.kept = nil, nil
		h.giveBack(s.end - s.off)
	}
	return page, nil
}

// near tells the bucket of the pages that lie next to one, if the query has no room for their span.
func (h *ahead) near(ctx context.Context, a part.Addr) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.of[a.Off]
	if s == nil || !s.refused {
		return ctx
	}
	// Equal queries find the same runs, in whichever order they read the pages.
	var off, end int64
	for _, page := range s.pages {
		if to := page.Off + int64(page.Len); end == 0 || to-off > nearBytes {
			if a.Off < page.Off {
				break
			}
			off, end = page.Off, to
		} else {
			end = to
		}
	}
	return model.WithNear(ctx, off, end)
}
