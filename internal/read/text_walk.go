package read

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// TextWalkOptions say how a [TextWalk] goes.
type TextWalkOptions struct {
	// Range bounds the rows.
	Range model.TimeRange
	// Want says which columns are needed. Where chunks overlap all are read, since rows are compared.
	Want model.TextWant
	// Backward walks from the last row to the first.
	Backward bool
	// Done, if set, is called with each chunk that the walk has read and needs no more. If it is not set, the chunk's page is
	// released then, which is right where no other chunk of that page will be read.
	Done func(c *model.TextChunk)
	// Quota is charged with what is remembered of rows that several chunks may have; nil: no bound.
	Quota *model.Quota
}

// TextWalk joins the chunks of one series, as [TextSet.Chunks] gives them: rows by (time, order, arrival), and of rows that
// are equal in time, line and metadata the first, or all that backwards. It holds one chunk of each order at a time, and those
// only that overlap where it is. It is used by one goroutine.
type TextWalk struct {
	o     TextWalkOptions
	lanes []*textLane // by order
	tie   textTie
	err   error

	rows     *model.TextRows
	from, to int
}

// WalkText returns a walk over chunks, which are not kept.
func WalkText(chunks []model.TextChunk, o TextWalkOptions) *TextWalk {
	w := &TextWalk{o: o}
	all := make([]walkChunk, 0, len(chunks))
	for _, c := range chunks {
		if c.Overlaps(o.Range) {
			all = append(all, walkChunk{TextChunk: c})
		}
	}
	slices.SortStableFunc(all, func(a, b walkChunk) int { return cmp.Compare(a.Min, b.Min) })
	markShared(all)
	byOrder := make(map[uint64]*textLane)
	for _, c := range all {
		l := byOrder[c.Order]
		if l == nil {
			l = &textLane{order: c.Order}
			byOrder[c.Order] = l
			w.lanes = append(w.lanes, l)
		}
		l.chunks = append(l.chunks, c)
	}
	slices.SortFunc(w.lanes, func(a, b *textLane) int { return cmp.Compare(a.order, b.order) })
	if o.Backward {
		for _, l := range w.lanes {
			slices.Reverse(l.chunks)
		}
	}
	return w
}

// walkChunk is a chunk that may share times with chunks of other orders.
type walkChunk struct {
	model.TextChunk
	shared bool
}

// markShared finds the chunks, which are sorted by their least times, that overlap one of another order.
func markShared(all []walkChunk) {
	// The greatest end so far, and the greatest among those of other orders than that one's.
	var first, second *walkChunk
	for i := range all {
		c := &all[i]
		for _, o := range []*walkChunk{first, second} {
			if o != nil && o.Order != c.Order && o.Max >= c.Min {
				c.shared = true
			}
		}
		switch {
		case first == nil || c.Max >= first.Max:
			if first != nil && first.Order != c.Order {
				second = first
			}
			first = c
		case c.Order != first.Order && (second == nil || c.Max >= second.Max):
			second = c
		}
	}
	// Of those that begin later, the next one of another order.
	var next *walkChunk
	for i := len(all) - 2; i >= 0; i-- {
		c := &all[i]
		if all[i+1].Order != c.Order {
			next = &all[i+1]
		}
		if next != nil && next.Min <= c.Max {
			c.shared = true
		}
	}
}

// textLane is the chunks of one order, in the direction of the walk.
type textLane struct {
	order  uint64
	chunks []walkChunk // the first may be open
	open   bool
	rows   model.TextRows
	// The rows [at, end) are left of the open chunk.
	at, end int
}

// Next moves to the next stretch of rows. It returns false at the end or on an error.
func (w *TextWalk) Next(ctx context.Context) bool {
	for w.err == nil {
		if w.err = ctx.Err(); w.err != nil {
			break
		}
		if w.tie.lanes != nil {
			if w.nextTied(ctx) {
				return true
			}
			continue
		}
		first := w.first()
		if first == nil {
			break
		}
		if !first.open {
			w.err = w.open(ctx, first)
			continue
		}
		if w.alone(first) {
			return true
		}
	}
	w.rows, w.from, w.to = nil, 0, 0
	return false
}

// Rows returns the stretch: the rows [from, to), which lie next to each other. Walking backwards they are to be taken from
// the last to the first. The columns are valid until Next, what Line and MetadataAt return as long as it is held.
func (w *TextWalk) Rows() (rows *model.TextRows, from, to int) { return w.rows, w.from, w.to }

// Err returns the error that ended the walk.
func (w *TextWalk) Err() error { return w.err }

// Close gives up what the walk holds. It may be called at any time.
func (w *TextWalk) Close() {
	for _, l := range w.lanes {
		if l.open {
			w.done(l)
		}
	}
	w.endTie()
	w.lanes = nil
}

// near is the time at which a lane goes on, or may go on if its chunk is not open.
func (w *TextWalk) near(l *textLane) int64 {
	switch {
	case l.open && w.o.Backward:
		return l.rows.Times[l.end-1]
	case l.open:
		return l.rows.Times[l.at]
	case w.o.Backward:
		return min(l.chunks[0].Max, w.o.Range.Max)
	}
	return max(l.chunks[0].Min, w.o.Range.Min)
}

// before reports whether a time comes before another one in the direction of the walk.
func (w *TextWalk) before(a, b int64) bool {
	if w.o.Backward {
		return a > b
	}
	return a < b
}

// first returns the lane that goes on first; among equals one that is not open, since it may turn out to go on later. It
// returns nil at the end.
func (w *TextWalk) first() (first *textLane) {
	var at int64
	for _, l := range w.lanes {
		if len(l.chunks) == 0 {
			continue
		}
		t := w.near(l)
		if first == nil || w.before(t, at) || t == at && first.open && !l.open {
			first, at = l, t
		}
	}
	return first
}

// alone hands out the rows of a lane that come before those of all others, and reports whether there are any. If others have
// rows of the same time, they begin a tie.
func (w *TextWalk) alone(l *textLane) bool {
	t := w.near(l)
	var bound int64
	bounded, tied := false, false
	for _, o := range w.lanes {
		if o == l || len(o.chunks) == 0 {
			continue
		}
		switch other := w.near(o); {
		case other == t:
			tied = true
		case !bounded || w.before(other, bound):
			bound, bounded = other, true
		}
	}
	if tied {
		w.tie.begin(w, t)
		return false
	}
	times := l.rows.Times[l.at:l.end]
	if w.o.Backward {
		n := 0
		if bounded {
			n = sort.Search(len(times), func(i int) bool { return times[i] > bound })
		}
		w.rows, w.from, w.to = &l.rows, l.at+n, l.end
		l.end = w.from
	} else {
		n := len(times)
		if bounded {
			n = sort.Search(n, func(i int) bool { return times[i] >= bound })
		}
		w.rows, w.from, w.to = &l.rows, l.at, l.at+n
		l.at = w.to
	}
	w.leave(l)
	return true
}

// leave closes the chunk of a lane of which nothing is left. Its rows stay as they are until the next one is opened.
func (w *TextWalk) leave(l *textLane) {
	if l.at < l.end {
		return
	}
	w.done(l)
}

func (w *TextWalk) done(l *textLane) {
	c := &l.chunks[0].TextChunk
	if w.o.Done != nil {
		w.o.Done(c)
	} else {
		c.Page.Release()
	}
	l.chunks, l.open = l.chunks[1:], false
}

// open reads the next chunk of a lane.
func (w *TextWalk) open(ctx context.Context, l *textLane) error {
	if err := w.read(ctx, l, 0, &l.rows); err != nil {
		return err
	}
	l.at, l.end = within(l.rows.Times, w.o.Range)
	l.open = true
	w.leave(l)
	return nil
}

// read reads the i-th of the chunks that a lane has left.
func (w *TextWalk) read(ctx context.Context, l *textLane, i int, dst *model.TextRows) error {
	c, want := &l.chunks[i], w.o.Want
	if c.shared {
		want = model.WantLines | model.WantMetadata
	}
	dst.Reset()
	return c.Page.ReadText(ctx, c.Index, want, dst)
}

// within returns which of ascending times lie in a range.
func within(times []int64, r model.TimeRange) (from, to int) {
	from = sort.Search(len(times), func(i int) bool { return times[i] >= r.Min })
	to = from + sort.Search(len(times)-from, func(i int) bool { return times[from+i] > r.Max })
	return from, to
}

// TextClusters walks the groups of chunks, as [TextSet.Chunks] gives them, that overlap each other, by time: rows of different
// groups are never equal, and never of one time. A group whose chunks are all of one order has each row once and in order as
// it is, so that its chunks can be read one by one.
func TextClusters(chunks []model.TextChunk) iter.Seq[[]model.TextChunk] {
	return func(yield func([]model.TextChunk) bool) {
		for from := 0; from < len(chunks); {
			to, end := from+1, chunks[from].Max
			for to < len(chunks) && chunks[to].Min <= end {
				end = max(end, chunks[to].Max)
				to++
			}
			if !yield(chunks[from:to]) {
				return
			}
			from = to
		}
	}
}
