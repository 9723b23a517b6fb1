package text

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Prefetch prefetches the listed pages of the same part, and returns the other pages. For a page whose filter
// has not been asked yet it prefetches the filter, otherwise the wanted content. It does not wait and never
// fails.
func (p *page) Prefetch(ctx context.Context, pages []model.TextPage, want model.TextWant) (rest []model.TextPage) {
	announce := announceText(ctx, p.r)
	var wanted []file.Addr
	rest = pages[:0]
	for _, x := range pages {
		q, mine := x.(*page)
		if !mine || q.r != p.r {
			rest = append(rest, x)
			continue
		}
		if announce != nil {
			wanted = q.appendReads(wanted, want)
		}
	}
	if len(wanted) > 0 {
		announce(wanted)
	}
	return rest
}

// announceText returns the function that prefetches pages of text, or nil if there is none.
func announceText(ctx context.Context, r *file.Reader) func([]file.Addr) {
	switch p := r.Pages().(type) {
	case file.Fetcher:
		return func(pages []file.Addr) { p.Fetch(ctx, pages) }
	case file.Prefetcher:
		return p.Prefetch
	}
	return nil
}

// maxPrefetchFilters is how many pages of filters are prefetched at most. The first ones decide for many of
// the units that follow, and a query has no memory to spare for pages that it needs much later.
const maxPrefetchFilters = 4 * verdictPages

// appendReads appends the pages that the next Skip or ReadText will read.
func (p *page) appendReads(dst []file.Addr, want model.TextWant) []file.Addr {
	if !p.mu.TryLock() {
		return dst // the one that holds it is reading already
	}
	defer p.mu.Unlock()
	if p.skipped {
		return dst
	}
	if p.verdicts != nil && p.e.Text.Filter.Len > 0 && !p.asked {
		if len(dst) >= maxPrefetchFilters {
			return dst
		}
		var known, ruledOut bool
		if dst, known, ruledOut = p.verdicts.appendReads(dst, p.e.Text.Filter, p.e.Text.Number); !known || ruledOut {
			return dst
		}
	}
	if p.unit == nil {
		dst = append(dst, p.e.Addr)
	}
	if p.readsLines(want) {
		dst = append(dst, p.e.Text.Lines)
	}
	return dst
}
