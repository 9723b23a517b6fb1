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
	times model.TextRows // times of the chunk that is being cut
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

// cut removes the deleted rows of a chunk from its counts. It reads the times, and assumes rows of equal
// size.
func (c *textCursor) cut(ctx context.Context, x *model.TextChunk) error {
	page, rows := &cutPage{TextPage: x.Page, deleted: c.deleted}, x.Rows
	err := page.ReadText(ctx, x.Index, 0, &c.times)
	page.Release()
	if err != nil {
		return err
	}
	if x.Page, x.Rows = page, c.times.Len(); x.Rows > 0 {
		x.Min, x.Max = c.times.Times[0], c.times.Times[x.Rows-1]
		x.Bytes = int64(float64(x.Bytes) * float64(x.Rows) / float64(rows))
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
	// Lines must be adjacent, so the remaining ones are copied: the page owns its own.
	var lines []byte
	var ends []uint32
	out := 0
	for i, t := range dst.Times {
		if gone(t) {
			continue
		}
		if dst.Times[out] = t; len(dst.Ends) > 0 {
			lines = append(lines, dst.Line(i)...)
			ends = append(ends, uint32(len(lines)))
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
