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

// Newest is for a caller that wants the newest n lines of a request, whatever they are, or the newest ones
// that may pass its filter. If a source finds them, it returns what that source knows of them, and since
// when they are there. The caller selects the range from that time on with what is known, and releases it.
// Nil: there is no such source, or others have lines since that time. These are looked for in ranges that
// grow, of which near is the first, so that no more of their data is opened than by such ranges.
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
	if some, err := q.othersHaveText(ctx, &others); err != nil || some {
		return nil, 0, err
	}
	if ahead, from, err = source.Newest(ctx, &r, n); err != nil {
		return nil, 0, fmt.Errorf("select: %w", err)
	}
	for some := false; ahead != nil && from < others.Range.Min; {
		width := uint64(others.Range.Max) - uint64(others.Range.Min)
		others.Range.Max = others.Range.Min - 1
		if others.Range.Min = from; uint64(others.Range.Max)-uint64(from) > nearGrowth*width && width < 1<<60 {
			others.Range.Min = others.Range.Max - int64(nearGrowth*width)
		}
		if some, err = q.othersHaveText(ctx, &others); err != nil || some {
			ahead.Release()
			return nil, 0, err
		}
	}
	return ahead, from, nil
}

// nearGrowth is how many times as long each range is in which other sources are asked for lines.
const nearGrowth = 8

// othersHaveText reports whether a source has a stream for a request that is not a NewestSource.
func (q *Querier) othersHaveText(ctx context.Context, req *model.Request) (some bool, err error) {
	for _, src := range q.o.Sources {
		from, ok := src.(TextSource)
		if _, own := src.(NewestSource); own || !ok || some || err != nil {
			continue
		}
		if some, err = hasText(ctx, from, req); err != nil {
			err = fmt.Errorf("select: %w", err)
		}
	}
	return some, err
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
