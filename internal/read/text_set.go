package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// SelectText returns the series with lines that may lie in the request's range, in key order. It sets the
// family to text, and does not keep the request. The caller closes the set, and then reads none of its
// chunks. On an error there is no set and nothing stays open.
func (q *Querier) SelectText(ctx context.Context, req *model.Request) (*TextSet, error) {
	r, ok := q.bound(req)
	r.Cost.Reach.AddRows(r.Signal, r.Range)
	r.Family = model.Text
	s := &TextSet{req: &r, cursorMerge: cursorMerge{metrics: q.metrics}}
	if !ok {
		return s, nil
	}
	if err := q.takeRange(&r); err != nil {
		return nil, err
	}
	if r.Cost.Bill != nil {
		return q.billText(ctx, s)
	}
	for i, src := range q.o.Sources {
		from, ok := src.(TextSource)
		if !ok {
			continue
		}
		own, err := s.requestFor(ctx, i == len(q.o.Sources)-1)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("select: %w", err), s.Close())
		}
		cs, err := from.SelectText(ctx, own)
		for _, c := range cs {
			s.cursors, s.walked = append(s.cursors, c), append(s.walked, c)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("select: %w", err), s.Close())
		}
	}
	q.o.Warn(s.req)
	return s, nil
}

// requestFor returns the request for the next source. Only the last one may count streams together, and only
// if no other one has any: a stream that two sources have is one, and its lines count once.
func (s *TextSet) requestFor(ctx context.Context, last bool) (*model.Request, error) {
	if s.req.Cells == nil || !s.req.Cells.Grouped {
		return s.req, nil
	}
	if last {
		if some, err := s.advance(ctx); err != nil || !some {
			return s.req, err
		}
	}
	apart, cells := *s.req, *s.req.Cells
	cells.Grouped = false
	apart.Cells = &cells
	return &apart, nil
}

// TextSet walks the series of a request for lines in key order, every key once. It is used by one
// goroutine. Many goroutines may read the pages of its chunks until it is closed.
type TextSet struct {
	cursorMerge
	req     *model.Request
	cursors []model.TextCursor

	origins []chunkOrigin
}

// Range returns the request's range, cut at the horizon of retention. Chunks may hold rows outside of it,
// which the caller drops.
func (s *TextSet) Range() model.TimeRange { return s.req.Range }

// Next moves to the next series. It returns false at the end or on an error.
func (s *TextSet) Next(ctx context.Context) bool {
	if !s.next(ctx) {
		return false
	}
	slices.Sort(s.group)
	if s.chooseLabels(); s.labels == nil && s.req.Cost.Bill == nil {
		return s.fail(fmt.Errorf("%w: series %s: no source has its labels", model.ErrCorrupt, s.key))
	}
	if err := s.req.Quota.TakeSeries(1, int64(len(s.labels))+seriesBytes); err != nil {
		return s.fail(err)
	}
	s.req.Cost.Series.Add(1)
	return true
}

// Chunks appends the chunks of all sources that may have rows of the current series in the range, sorted by
// their least times. It renumbers orders from 0. Chunks of one order do not overlap and have no duplicate
// rows. Chunks of different orders may overlap and share rows. The caller joins them: rows are sorted by
// (time, order, arrival), and of rows with equal time, line and metadata only the first counts.
func (s *TextSet) Chunks(ctx context.Context, dst []model.TextChunk) ([]model.TextChunk, error) {
	if s.err != nil {
		return dst, s.err
	}
	from := len(dst)
	s.origins = s.origins[:0]
	for _, i := range s.group {
		begin := len(dst)
		var err error
		if dst, err = s.cursors[i].Chunks(ctx, dst); err != nil {
			s.fail(fmt.Errorf("series %s: %w", s.key, err))
			return dst, s.err
		}
		for k := begin; k < len(dst); k++ {
			s.origins = append(s.origins, chunkOrigin{dst[k].Order, i, k})
		}
	}
	// Blocks of one merge share an order, and two compactors may have merged the same blocks. The cursor
	// tells such blocks apart.
	slices.SortFunc(s.origins, func(a, b chunkOrigin) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.cursor, b.cursor))
	})
	order := uint64(0)
	for i, p := range s.origins {
		if i > 0 && (p.order != s.origins[i-1].order || p.cursor != s.origins[i-1].cursor) {
			order++
		}
		dst[p.chunk].Order = order
	}
	slices.SortStableFunc(dst[from:], func(a, b model.TextChunk) int {
		return cmp.Or(cmp.Compare(a.Min, b.Min), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Max, b.Max))
	})
	return dst, nil
}

// chunkOrigin says where a chunk comes from: the order that its source gives it, the cursor, and its index.
type chunkOrigin struct {
	order         uint64
	cursor, chunk int
}
