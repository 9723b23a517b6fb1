package deletion

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// Chunks removes from the chunks of a series, from index from on, the rows that the cuts take. It corrects
// the counts, times and sizes of chunks, since some results are computed from them alone. That takes reading
// the times of a chunk that a cut touches, and its lines if the cut has a filter. wrap adds a name to errors.
func (cs Cuts) Chunks(ctx context.Context, chunks []model.TextChunk, from int, wrap func(error) error) ([]model.TextChunk, error) {
	if len(cs) == 0 {
		return chunks, nil
	}
	kept := chunks[:from]
	var times model.TextRows
	for _, x := range chunks[from:] {
		if cs.Cover(x.TimeRange) {
			continue
		}
		if cs.Touch(x.TimeRange) {
			if err := cs.chunk(ctx, &x, &times); err != nil {
				return chunks, wrap(err)
			}
		}
		if x.Rows > 0 {
			kept = append(kept, x)
		}
	}
	return kept, nil
}

// chunk removes the deleted rows of a chunk from its counts.
func (cs Cuts) chunk(ctx context.Context, x *model.TextChunk, times *model.TextRows) error {
	page := &cutPage{TextPage: x.Page, cuts: cs, filtered: cs.Filtered(x.TimeRange)}
	if page.filtered {
		// Of a page without any line that the query wants, nothing is read, and so nothing is counted.
		if skip, err := x.Page.Skip(ctx); err != nil || skip {
			return err
		}
	}
	err := page.ReadText(ctx, x.Index, model.WantLengths, times)
	page.Release()
	if err != nil {
		return err
	}
	if x.Page, x.Rows = page, times.Len(); x.Rows > 0 {
		x.Min, x.Max = times.Times[0], times.Times[x.Rows-1]
		x.Bytes = int64(times.Ends[x.Rows-1] - times.Begin)
	}
	return nil
}

// cutPage is a page without the deleted rows of one series.
type cutPage struct {
	model.TextPage
	cuts     Cuts
	filtered bool // a cut with a filter touches the chunk
}

// Inside returns the page with the deleted rows, which has the memory.
func (p *cutPage) Inside() model.TextPage { return p.TextPage }

// needs returns the columns that are read so that the cuts can be applied.
func (p *cutPage) needs(want model.TextWant) model.TextWant {
	if p.filtered {
		return want | model.WantLines | model.WantMetadata
	}
	return want
}

// ReadText reads a chunk without its deleted rows.
func (p *cutPage) ReadText(ctx context.Context, index int, want model.TextWant, dst *model.TextRows) error {
	if err := p.TextPage.ReadText(ctx, index, p.needs(want), dst); err != nil {
		return err
	}
	p.cuts.Text(dst)
	if !p.filtered {
		return nil
	}
	if want&model.WantLines == 0 {
		if dst.Bytes = nil; want&model.WantLengths == 0 {
			dst.Begin, dst.Ends = 0, dst.Ends[:0]
		}
	}
	if want&model.WantMetadata == 0 {
		dst.Metadata, dst.MetadataOf = dst.Metadata[:0], dst.MetadataOf[:0]
	}
	return nil
}

// Prefetch hands on what the page inside can do.
func (p *cutPage) Prefetch(ctx context.Context, pages []model.TextPage, want model.TextWant) []model.TextPage {
	if f, ok := p.TextPage.(interface {
		Prefetch(ctx context.Context, pages []model.TextPage, want model.TextWant) []model.TextPage
	}); ok {
		f.Prefetch(ctx, []model.TextPage{p.TextPage}, p.needs(want))
	}
	return pages[1:]
}
