package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// SelectText returns the series with lines that may lie in the request's range, in key order; their family is
// text, whatever the request says. The request is not kept. The set must be closed, after which no chunk of
// it may be read; on an error there is none and nothing stays open.
func (q *Querier) SelectText(ctx context.Context, req *model.Request) (*TextSet, error) {
	r, ok := q.bound(req)
	r.Family = model.Text
	s := &TextSet{req: &r, cursorMerge: cursorMerge[model.TextCursor]{metrics: q.metrics}}
	if !ok {
		return s, nil
	}
	for _, src := range q.o.Sources {
		from, ok := src.(TextSource)
		if !ok {
			continue
		}
		cs, err := from.SelectText(ctx, &r)
		s.cursors = append(s.cursors, cs...)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("select: %w", err), s.Close())
		}
	}
	return s, nil
}

// TextSet walks the series of a request for lines in key order, every key once. It is used by one goroutine;
// the pages of its chunks may be read by many, until it is closed.
type TextSet struct {
	cursorMerge[model.TextCursor]
	req *model.Request

	origins []chunkOrigin
	closed  bool
	err     error
}

// Range is the request's, cut at the horizon of retention: rows of chunks that lie outside of it are not
// wanted.
func (s *TextSet) Range() model.TimeRange { return s.req.Range }

// Next moves to the next series. It returns false at the end or on an error.
func (s *TextSet) Next(ctx context.Context) bool {
	if s.err != nil || s.closed {
		return false
	}
	if err := ctx.Err(); err != nil {
		return s.fail(err)
	}
	if more, err := s.next(ctx); err != nil {
		return s.fail(err)
	} else if !more {
		return false
	}
	slices.Sort(s.group)
	if s.chooseLabels(); s.labels == nil {
		return s.fail(fmt.Errorf("%w: series %s: no source has its labels", model.ErrCorrupt, s.key))
	}
	if err := s.req.Quota.TakeSeries(1, int64(len(s.labels))+seriesBytes); err != nil {
		return s.fail(err)
	}
	s.req.Cost.Series.Add(1)
	return true
}

// Labels returns the labels of the current series. They are valid until Next.
func (s *TextSet) Labels() model.Labels { return s.labels }

// Chunks appends the chunks of the current series that may have rows in the range, of all sources, by their
// least times. Orders are made anew, from 0: chunks of one order do not overlap, and no row of theirs is
// there twice. Chunks of different orders may overlap and have rows in common: rows belong in the order of
// (time, order, arrival), and of those that are equal in time, line and metadata only the first counts. Who
// reads them joins them so.
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
	// Blocks of one merge have one order, and may meet if two compactors have merged the same: so cursors are
	// told apart.
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

// chunkOrigin is where a chunk comes from: the order that its source gives it, the cursor, and its index.
type chunkOrigin struct {
	order         uint64
	cursor, chunk int
}

// Err returns the error that ended the walk.
func (s *TextSet) Err() error { return s.err }

// Close gives up what the set pins. It may be called more than once.
func (s *TextSet) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return closeAll(s.cursors)
}

func (s *TextSet) fail(err error) bool {
	s.err = errors.Join(s.err, err)
	s.stop()
	return false
}
