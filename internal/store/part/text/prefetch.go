package text

import (
	"context"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/store/part/file"
)

const (
	// verdictPages are read at a time, and after that the slices that most likely decide.
	verdictPages = 8
	// From verdictUnits units on it is clear what passes.
	verdictUnits = 64
)

// askAll asks all pages of the selection, several at a time, if a few of them say that nearly nothing passes,
// and reports whether it did. Units that are ruled out then cost no more than those that a query before has
// ruled out. It does not ask all pages for words alone, unless an earlier query did: most units have most
// words, and a query may end with the first match. Errors are not returned: they recur when a unit is asked.
func (v *Verdicts) askAll(ctx context.Context) bool {
	if len(v.pages) == 0 || !v.memo.rule.selective() && !v.memo.known(v.pages[0]) {
		return false
	}
	// Words that are frequent in one stream may be missing in another.
	v.decideGroup(ctx, slices.Compact([]*verdictPage{v.pages[0], v.pages[len(v.pages)/2], v.pages[len(v.pages)-1]}))
	for from := 0; v.memo.units > 0 && v.memo.ruledOut >= v.memo.units-v.memo.units/8 && ctx.Err() == nil; from += verdictPages {
		if from >= len(v.pages) {
			return true
		}
		v.decideGroup(ctx, v.pages[from:min(from+verdictPages, len(v.pages))])
	}
	return false
}

// decideGroup reads the verdicts of several pages. It prefetches the pages, then the slices that will most
// likely decide.
func (v *Verdicts) decideGroup(ctx context.Context, group []*verdictPage) {
	if f, ok := v.memo.r.Pages().(file.Fetcher); ok {
		var heads []file.Addr
		for _, p := range group {
			if !v.memo.known(p) {
				heads = append(heads, p.addr)
			}
		}
		if len(heads) > 1 {
			f.Fetch(ctx, heads)
		}
		if wanted := v.likelySlices(ctx, group); len(wanted) > 0 {
			f.Fetch(ctx, wanted)
		}
	}
	for _, p := range group {
		p.once.Do(func() { v.memo.decide(ctx, p) })
	}
}

// groupLocked returns the page at a, and the group of pages to read with it. Groups are disjoint, so mostly a
// whole group is still unread.
func (v *Verdicts) groupLocked(a file.Addr) (page *verdictPage, group []*verdictPage, err error) {
	at, ok := v.byOff[a.Off]
	if !ok {
		return nil, nil, fmt.Errorf("part: filters: the page at %d is not of the selection", a.Off)
	}
	page = v.pages[at]
	v.memo.recallLocked(page)
	if page.done || v.memo.units < verdictUnits || v.memo.ruledOut < v.memo.units-v.memo.units/8 {
		return page, v.pages[at : at+1], nil
	}
	from := at - at%verdictPages
	group = v.pages[from:min(from+verdictPages, len(v.pages))]
	for _, p := range group {
		v.memo.recallLocked(p)
	}
	return page, group, nil
}

// appendReads appends the pages that asking for a unit will read, and reports whether the unit is already
// known to be ruled out.
func (v *Verdicts) appendReads(dst []file.Addr, a file.Addr, number uint32) (wanted []file.Addr, known, ruledOut bool) {
	v.memo.mu.Lock()
	defer v.memo.mu.Unlock()
	page, group, err := v.groupLocked(a)
	switch {
	case err != nil:
		return dst, false, false // asking will tell
	case page.done:
		return dst, true, page.rulesOut(number)
	}
	for _, p := range group {
		if !p.done && !slices.Contains(dst, p.addr) {
			dst = append(dst, p.addr)
		}
	}
	return dst, false, false
}

// likelySlices returns the slices of some pages that will most likely be needed. It waits for the heads of
// the pages.
func (v *Verdicts) likelySlices(ctx context.Context, group []*verdictPage) (wanted []file.Addr) {
	for _, p := range group {
		if v.memo.known(p) {
			continue
		}
		if head, err := v.memo.openHead(ctx, p); err == nil && head != nil {
			wanted = v.memo.rule.likelySlices(wanted, head)
		}
	}
	return wanted
}
