package read

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// NewestSource is an optional interface of a [TextSource] that finds out where the newest lines of a range
// are.
type NewestSource interface {
	// Newest finds the newest n lines of a request for lines. It returns a time from which on the range has
	// them, and what it knows of them. SelectText for the range from that time on then need not look again.
	// There may be fewer lines since that time, and more. Nil: the source is to be asked as others are.
	Newest(ctx context.Context, req *model.Request, n int) (ahead model.Ahead, from int64, err error)
}

// Newest is for a caller that wants the newest n lines of a request, whatever they are. If a source finds
// them, it returns what that source knows of them, and a time from which on they are. The caller then selects
// the range from that time on with what is known, and releases it. Nil: there is no such source, or others
// have lines in a range near the end.
func (q *Querier) Newest(ctx context.Context, req *model.Request, n int, near model.TimeRange) (ahead model.Ahead, from int64, err error) {
	var source NewestSource
	for _, src := range q.o.Sources {
		if s, ok := src.(NewestSource); ok {
			source = s
		}
	}
	r := *req
	oldest, h := q.Horizon(r.Tenant, r.Signal)
	if r.Range.Min = max(r.Range.Min, oldest); source == nil || r.Range.Min > r.Range.Max || r.Cost.Bill != nil {
		return nil, 0, nil
	}
	if h.MayHide(r.Range.Min) {
		r.Horizon = h
	}
	r.Family = model.Text
	others := r
	others.Range = model.TimeRange{Min: max(near.Min, r.Range.Min), Max: near.Max}
	for _, src := range q.o.Sources {
		from, ok := src.(TextSource)
		if _, own := src.(NewestSource); own || !ok {
			continue
		}
		some, err := hasText(ctx, from, &others)
		if err != nil {
			return nil, 0, fmt.Errorf("select: %w", err)
		}
		if some {
			return nil, 0, nil
		}
	}
	if ahead, from, err = source.Newest(ctx, &r, n); err != nil {
		return nil, 0, fmt.Errorf("select: %w", err)
	}
	return ahead, from, nil
}

// hasText reports whether a source has a stream for a request.
func hasText(ctx context.Context, src TextSource, req *model.Request) (some bool, err error) {
	cursors, err := src.SelectText(ctx, req)
	for _, c := range cursors {
		if err == nil && !some {
			some = c.Next(ctx)
			err = c.Err()
		}
		if e := c.Close(); err == nil {
			err = e
		}
	}
	return some, err
}
