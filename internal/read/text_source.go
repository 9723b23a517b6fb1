package read

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// TextSource is what a source is that holds lines of logs. A source that is none has none.
//
// The querier charges the request's quota with every series that it hands on, and pages charge what they hold
// in memory; for all else what [Source] says holds here too. A source counts in the request's cost the pages
// of the chunks that it hands out, those that their filter skips, for which it hands out none if it knows
// that already, and the lines and bytes that are read.
type TextSource interface {
	// SelectText returns cursors over the series with lines that satisfy the request. Everything that the
	// answer needs is pinned when it returns, so that rows which move to a source that is asked later are seen
	// twice, never missed. On an error nothing stays pinned.
	SelectText(ctx context.Context, req *model.Request) ([]model.TextCursor, error)
}

// TextFetcher is what a page of text may be beside: pages that are far away can be fetched side by side, and
// neighbours with one request, if it is known which ones will be asked for.
type TextFetcher interface {
	// FetchText says that this page and those behind it in the list will be read soon, in about this order. It
	// takes out of the list what it can do, which are pages of the same place, and returns the rest. It does
	// not wait and fails at nothing.
	FetchText(ctx context.Context, pages []model.TextPage, want model.TextWant) (rest []model.TextPage)
}

// FetchText says that pages will be read soon, in about this order: first whether they may be skipped, if the
// request has a filter, and then what is wanted of the others. It does not wait and fails at nothing, and a
// page that is far away then takes no request of its own. The list is not kept, and is not as it was
// afterwards.
func FetchText(ctx context.Context, pages []model.TextPage, want model.TextWant) {
	for len(pages) > 0 {
		f, ok := pages[0].(TextFetcher)
		if !ok {
			pages = pages[1:]
			continue
		}
		if rest := f.FetchText(ctx, pages, want); len(rest) < len(pages) {
			pages = rest
		} else {
			pages = pages[1:]
		}
	}
}

// TextEnder is what a page of text may be beside: of a chunk of which the newest lines are wanted, reading
// these alone is less work.
type TextEnder interface {
	// ReadTextEnd is [model.TextPage.ReadText], but that the lines of its first rows may be missing: first
	// says, of the times of all rows of the chunk, at which row those begin that are wanted; it is called
	// while the page is locked, and must not keep them. It returns at which they do begin; the rows before it
	// have empty lines.
	ReadTextEnd(ctx context.Context, index int, want model.TextWant, first func(times []int64) int, dst *model.TextRows) (from int, err error)
}

// ReadTextEnd reads a chunk, of which it may leave out the lines before the first one that is wanted, if the
// page can do that; see [TextEnder].
func ReadTextEnd(ctx context.Context, c *model.TextChunk, want model.TextWant, first func(times []int64) int, dst *model.TextRows) (from int, err error) {
	if p, ok := c.Page.(TextEnder); ok {
		return p.ReadTextEnd(ctx, c.Index, want, first, dst)
	}
	return 0, c.Page.ReadText(ctx, c.Index, want, dst)
}
