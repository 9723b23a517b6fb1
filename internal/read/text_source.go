package read

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// TextSource is a source that holds log lines. Sources of metrics only do not implement it.
//
// The querier charges the request's quota for each series that it returns, and pages charge the memory that
// they hold. Otherwise the contract of [Source] applies. A source adds to the request's cost the pages of
// the chunks that it returns, the pages that their filters skip, and the lines and bytes read. It returns
// no chunk of a page that it already knows can be skipped.
type TextSource interface {
	// SelectText returns cursors over the series with lines that satisfy the request. When it returns,
	// everything that the result needs is pinned. Rows that move to a source that is asked later are therefore
	// seen twice, never missed. On an error nothing stays pinned.
	SelectText(ctx context.Context, req *model.Request) ([]model.TextCursor, error)
}

// TextPrefetcher is an optional interface of a text page. A source that knows which pages will be read
// fetches remote ones in parallel, and neighbours with one request.
type TextPrefetcher interface {
	// Prefetch announces that this page and the ones after it in the list will be read soon, in about this
	// order. It removes from the list the pages that it takes care of, which are of the same source, and
	// returns the rest. It does not wait and never fails.
	Prefetch(ctx context.Context, pages []model.TextPage, want model.TextWant) (rest []model.TextPage)
}

// PrefetchText announces that pages will be read soon, in about this order. If the request has a filter,
// the filters come first, then the wanted columns of the pages that pass. It does not wait and never fails.
// A remote page then needs no request of its own. PrefetchText does not keep the list, but changes it.
func PrefetchText(ctx context.Context, pages []model.TextPage, want model.TextWant) {
	for len(pages) > 0 {
		f, ok := pages[0].(TextPrefetcher)
		if !ok {
			pages = pages[1:]
			continue
		}
		if rest := f.Prefetch(ctx, pages, want); len(rest) < len(pages) {
			pages = rest
		} else {
			pages = pages[1:]
		}
	}
}

// TextEnder is an optional interface of a text page that can read the newest lines of a chunk without
// decoding the others.
type TextEnder interface {
	// ReadTextEnd is [model.TextPage.ReadText], but may leave out the lines of the first rows. It calls first
	// with the times of all rows of the chunk, and first returns the index of the first row that is wanted.
	// The page is locked during that call, and first must not keep the times. ReadTextEnd returns the index at
	// which lines begin; rows before it have empty lines.
	ReadTextEnd(ctx context.Context, index int, want model.TextWant, first func(times []int64) int, dst *model.TextRows) (from int, err error)
}

// ReadTextEnd reads a chunk and may leave out the lines before the first one wanted, if the page is a
// [TextEnder].
func ReadTextEnd(ctx context.Context, c *model.TextChunk, want model.TextWant, first func(times []int64) int, dst *model.TextRows) (from int, err error) {
	if p, ok := c.Page.(TextEnder); ok {
		return p.ReadTextEnd(ctx, c.Index, want, first, dst)
	}
	return 0, c.Page.ReadText(ctx, c.Index, want, dst)
}

// TextInside is an optional interface of a text page that is another page without some of its rows. Both have
// the same memory, so that releasing one releases the other.
type TextInside interface {
	Inside() model.TextPage
}

// PageInside returns the page that has the memory of a page: itself, or the one inside.
func PageInside(p model.TextPage) model.TextPage {
	for {
		x, ok := p.(TextInside)
		if !ok {
			return p
		}
		p = x.Inside()
	}
}

// TextSplitter is an optional interface of a text page whose lines can be read without putting them
// together.
type TextSplitter interface {
	// ReadTextSplit fills dst with the rows of a chunk. It returns the lines of the page in their split form,
	// and the number of the chunk's first row there. dst then has no lines but their lengths. If it returns no
	// split form, dst has the lines.
	ReadTextSplit(ctx context.Context, index int, dst *model.TextRows) (s *model.SplitText, first int, err error)
}

// ReadTextSplit reads a chunk, and leaves its lines split if the page is a [TextSplitter].
func ReadTextSplit(ctx context.Context, c *model.TextChunk, dst *model.TextRows) (s *model.SplitText, first int, err error) {
	if p, ok := c.Page.(TextSplitter); ok {
		return p.ReadTextSplit(ctx, c.Index, dst)
	}
	return nil, 0, c.Page.ReadText(ctx, c.Index, model.WantLines, dst)
}
