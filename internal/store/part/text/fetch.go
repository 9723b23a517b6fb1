package text

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// FetchText fetches what will be read of this page and of those behind it in the list that are of the same
// part, and returns the rest: the filters of those that have not been asked yet whether they may be skipped,
// and of the others what is wanted. It does not wait and fails at nothing.
func (p *page) FetchText(ctx context.Context, pages []model.TextPage, want model.TextWant) (rest []model.TextPage) {
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

// announceText returns what is to be told of pages of text that will be read; nil if there is nothing.
func announceText(ctx context.Context, r *file.Reader) func([]file.Addr) {
	switch p := r.Pages().(type) {
	case file.Fetcher:
		return func(pages []file.Addr) { p.Fetch(ctx, pages) }
	case file.Prefetcher:
		return p.Prefetch
	}
	return nil
}

// maxPrefetchFilters is how many pages of filters are fetched at most before somebody asks. Those that are
// read first answer for many of the units behind, and for what goes far ahead a query has no memory to spare.
const maxPrefetchFilters = 4 * verdictPages

// appendReads appends what the next Skip or ReadText of the page will read.
func (p *page) appendReads(dst []file.Addr, want model.TextWant) []file.Addr {
	if !p.mu.TryLock() {
		return dst // who holds it is reading already
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
		dst = append(dst, p.e.LinesAddr())
	}
	return dst
}
