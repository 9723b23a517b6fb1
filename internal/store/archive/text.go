package archive

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// textCursor walks the series of one block that satisfy a request for lines.
type textCursor struct {
	*cursor
	text  *part.TextCursor
	times model.TextRows // times and lengths of the chunk that is being cut
}

// Chunks appends the chunks of the current series that have rows left after deletions.
func (c *textCursor) Chunks(ctx context.Context, dst []model.TextChunk) ([]model.TextChunk, error) {
	from := len(dst)
	dst, err := c.text.Chunks(ctx, c.ranks[c.at], dst)
	if err != nil {
		return dst, c.named(err)
	}
	if len(c.deleted) == 0 {
		return dst, nil
	}
	kept := dst[:from]
	for _, x := range dst[from:] {
		if within(c.deleted, x.TimeRange) {
			continue
		}
		if slices.ContainsFunc(c.deleted, x.Overlaps) {
			if err := c.cut(ctx, &x); err != nil {
				return dst, err
			}
		}
		if x.Rows > 0 {
			kept = append(kept, x)
		}
	}
	return kept, nil
}

// cut removes the deleted rows of a chunk from its counts. It reads the times and the lengths of lines.
func (c *textCursor) cut(ctx context.Context, x *model.TextChunk) error {
	page := &cutPage{TextPage: x.Page, deleted: c.deleted}
	err := page.ReadText(ctx, x.Index, model.WantLengths, &c.times)
	page.Release()
	if err != nil {
		return err
	}
	if x.Page, x.Rows = page, c.times.Len(); x.Rows > 0 {
		x.Min, x.Max = c.times.Times[0], c.times.Times[x.Rows-1]
		x.Bytes = int64(c.times.Ends[x.Rows-1] - c.times.Begin)
	}
	return nil
}

// cutPage is a page without the deleted rows of one series.
type cutPage struct {
	model.TextPage
	deleted []model.TimeRange
}

// ReadText reads a chunk without its deleted rows.
func (p *cutPage) ReadText(ctx context.Context, index int, want model.TextWant, dst *model.TextRows) error {
	if err := p.TextPage.ReadText(ctx, index, want, dst); err != nil {
		return err
	}
	gone := func(t int64) bool {
		return slices.ContainsFunc(p.deleted, func(r model.TimeRange) bool { return r.Contains(t) })
	}
	if !slices.ContainsFunc(dst.Times, gone) {
		return nil
	}
	// Lines must be adjacent, so the remaining ones are copied: the page owns its own. If only lengths are
	// wanted, there are no lines to copy.
	var lines []byte
	var ends []uint32
	out, begin, end := 0, dst.Begin, uint32(0)
	for i, t := range dst.Times {
		from := begin
		if len(dst.Ends) > 0 {
			begin = dst.Ends[i]
		}
		if gone(t) {
			continue
		}
		if dst.Times[out] = t; len(dst.Ends) > 0 {
			if len(dst.Bytes) > 0 {
				lines = append(lines, dst.Bytes[from:begin]...)
			}
			end += begin - from
			ends = append(ends, end)
		}
		if len(dst.MetadataOf) > 0 {
			dst.MetadataOf[out] = dst.MetadataOf[i]
		}
		out++
	}
	dst.Times, dst.Bytes, dst.Begin, dst.Ends = dst.Times[:out], lines, 0, ends
	if len(dst.MetadataOf) > 0 {
		dst.MetadataOf = dst.MetadataOf[:out]
	}
	return nil
}

// Prefetch hands on what the page inside can do.
func (p *cutPage) Prefetch(ctx context.Context, pages []model.TextPage, want model.TextWant) []model.TextPage {
	if f, ok := p.TextPage.(interface {
		Prefetch(ctx context.Context, pages []model.TextPage, want model.TextWant) []model.TextPage
	}); ok {
		f.Prefetch(ctx, []model.TextPage{p.TextPage}, want)
	}
	return pages[1:]
}
