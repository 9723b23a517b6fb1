package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// Biller is an optional interface of a source whose pages lie in the bucket. The others read this machine
// only, which a bill does not count.
type Biller interface {
	// Bill adds to the bill of the request what [Source.Select] and its cursors would read.
	Bill(ctx context.Context, req *model.Request) error
	// BillText returns cursors like those of [TextSource.SelectText]. Their chunks have no rows, and add to the
	// bill what is asked for. Series need no labels.
	BillText(ctx context.Context, req *model.Request) ([]model.TextCursor, error)
}

// billSelect adds what Select would read, and returns no series.
func (q *Querier) billSelect(ctx context.Context, req *model.Request) (*SeriesSet, error) {
	for _, src := range q.o.Sources {
		if b, ok := src.(Biller); ok {
			if err := b.Bill(ctx, req); err != nil {
				return nil, fmt.Errorf("bill: %w", err)
			}
		}
	}
	return newSeriesSet(req, nil, q.metrics), nil
}

// billText is SelectText for a query that is not run. The chunks of local sources are there without their
// rows: whether a chunk of the bucket must be read may depend on them.
func (q *Querier) billText(ctx context.Context, s *TextSet) (*TextSet, error) {
	for _, src := range q.o.Sources {
		var cs []model.TextCursor
		var err error
		if b, ok := src.(Biller); ok {
			cs, err = b.BillText(ctx, s.req)
		} else if from, ok := src.(TextSource); ok && !s.req.Cost.Bill.Coarse {
			cs, err = from.SelectText(ctx, s.req)
			for i := range cs {
				cs[i] = unread{cs[i]}
			}
		}
		for _, c := range cs {
			s.cursors, s.walked = append(s.cursors, c), append(s.walked, c)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bill: %w", err), s.Close())
		}
	}
	return s, nil
}

// unread is a cursor whose chunks have no rows.
type unread struct{ model.TextCursor }

// Chunks appends the chunks of the series without their pages.
func (u unread) Chunks(ctx context.Context, dst []model.TextChunk) ([]model.TextChunk, error) {
	from := len(dst)
	dst, err := u.TextCursor.Chunks(ctx, dst)
	for i := range dst[from:] {
		c := &dst[from+i]
		c.Page = &emptyPage{c.Page}
	}
	return dst, err
}

// emptyPage is a page of which nothing is read.
type emptyPage struct{ model.TextPage }

// Skip returns false.
func (*emptyPage) Skip(context.Context) (bool, error) { return false, nil }

// ReadText returns no rows.
func (*emptyPage) ReadText(_ context.Context, _ int, _ model.TextWant, dst *model.TextRows) error {
	dst.Reset()
	return nil
}

// Release has nothing to give up.
func (*emptyPage) Release() {}
