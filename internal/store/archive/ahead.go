package archive

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// A request to a bucket takes some 20 ms, in which as much as a megabyte could have come. So pages that are near each other
// are read with one request, over what lies between them, and several requests are under way at one time.
const (
	// spansAhead is how many requests of one block go ahead of the page that was asked for last.
	spansAhead = 8
	// What goes ahead takes no more than an aheadShare-th of the memory that the query may have. A span of which a page is asked
	// for may take the total to an askedShare-th: read page by page it would be many requests, for the others of its pages will be
	// asked for soon.
	aheadShare, askedShare = 8, 4
	// parallelReads bounds the requests that one query has under way ahead of what it asks for, in all blocks together.
	parallelReads = 16
)

// reach says how far a request goes, in bytes.
type reach struct {
	// tail is what the first request of a block reads: the footer, and with it nearly always all pages of the index, which
	// stand before it.
	tail int64
	// A block of no more than whole is read with one request, since what it has for one series would take three more.
	whole int64
	// span bounds what one request reads of several pages, gap what it reads in vain between two of them.
	span, gap int64
}

func usualReach() reach {
	return reach{tail: 128 << 10, whole: 512 << 10, span: 1 << 20, gap: 128 << 10}
}

// lanes bound the requests that go ahead.
type lanes chan struct{}

func newLanes() lanes { return make(lanes, parallelReads) }

// ahead reads pages of one block before they are asked for. What it holds is charged to the query, and where the query has
// no room to spare for it, nothing is read ahead: a query must not fail for what it could do without.
type ahead struct {
	p      *pages
	lanes  lanes
	quota  *model.Quota
	ctx    context.Context // ends with the cursor
	cancel context.CancelFunc
	reads  sync.WaitGroup

	mu    sync.Mutex
	spans []*span
	of    map[int64]*span // by the offset of each page that has not been taken yet
	held  int64           // bytes of quota
}

// span is a range of the block that one request reads.
type span struct {
	index    int // in ahead.spans, in the order in which they will be wanted
	first    int // place of its first page among those that were planned together
	off, end int64
	left     int // pages that have not been taken
	done     chan struct{}
	started  bool
	refused  bool // the query has no room for it
	stored   []byte
	err      error
}

func newAhead(ctx context.Context, p *pages, l lanes, q *model.Quota) *ahead {
	h := &ahead{p: p, lanes: l, quota: q, of: make(map[int64]*span)}
	h.ctx, h.cancel = context.WithCancel(ctx)
	return h
}

// close ends all reads, waits for them, and gives back what is held.
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

// hold charges the query if it has memory to spare; for what is asked for already it has more.
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

// giveBack is the opposite of hold.
func (h *ahead) giveBack(n int64) {
	h.quota.GiveSpare(n)
	h.held -= n
}

// plan makes spans of pages that are neither cached nor planned yet, and begins to read them.
func (h *ahead) plan(wanted []part.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		return
	}
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(a part.Addr) bool {
		return h.of[a.Off] != nil || h.p.Has(a) || h.p.inTail(a)
	})
	place := make(map[int64]int, len(wanted)) // of each page, in the order in which they will be asked for
	for i := len(wanted) - 1; i >= 0; i-- {
		place[wanted[i].Off] = i
	}
	slices.SortFunc(wanted, func(a, b part.Addr) int { return cmp.Compare(a.Off, b.Off) })
	wanted = slices.Compact(wanted) // values of one matcher stand in one page
	first := len(h.spans)
	var s *span
	for _, a := range wanted {
		end := a.Off + int64(a.Len)
		if s == nil || a.Off-s.end > h.p.a.reach.gap || end-s.off > h.p.a.reach.span {
			s = &span{off: a.Off, first: place[a.Off], done: make(chan struct{})}
			h.spans = append(h.spans, s)
		}
		h.of[a.Off], s.end, s.first = s, end, min(s.first, place[a.Off])
		s.left++
	}
	// Lines may be read from the last to the first.
	slices.SortStableFunc(h.spans[first:], func(a, b *span) int { return cmp.Compare(a.first, b.first) })
	for i, s := range h.spans[first:] {
		s.index = first + i
	}
	h.start(first)
}

// start begins the reads from the index on that may go ahead. One that there is no room for is tried again when the next
// page is taken.
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
	s.stored, s.err = h.p.read(h.ctx, s.off, s.end-s.off)
	<-h.lanes
}

// take returns the stored bytes of a page, which the caller may keep; nil means that the page is not read ahead.
func (h *ahead) take(ctx context.Context, a part.Addr) ([]byte, error) {
	h.mu.Lock()
	s := h.of[a.Off]
	if s == nil {
		h.mu.Unlock()
		return nil, nil
	}
	delete(h.of, a.Off)
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
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.done:
	}
	if s.err != nil {
		return nil, s.err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.refused || h.of == nil {
		return nil, nil
	}
	// A page that is not compressed is kept as it is stored, and must not keep the whole span.
	stored := bytes.Clone(s.stored[a.Off-s.off:][:a.Len])
	if s.left--; s.left == 0 {
		s.stored = nil
		h.giveBack(s.end - s.off)
	}
	return stored, nil
}
