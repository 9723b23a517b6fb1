package text

import (
	"context"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Verdicts know which units of a selection in one part are ruled out by the filter of a request. They decide
// which pages of filters are read together (prefetch.go); memo reads each of them once.
type Verdicts struct {
	memo  *memo
	pages []*verdictPage // in the order of the file
	byOff map[int64]int  // indexes in pages, by offset; both are guarded by memo.mu

	// allAsked says that left has all units of the selection that are not ruled out, in the order of the
	// index. Both are set before the first unit is asked for.
	allAsked bool
	left     []file.Entry
}

// newVerdicts returns nil if no unit can be ruled out.
func newVerdicts(r *file.Reader, rule *evaluator) *Verdicts {
	if rule == nil {
		return nil
	}
	return &Verdicts{memo: newMemo(r, rule), byOff: make(map[int64]int)}
}

// add adds a unit of the selection by the page of its filter, and reports whether it is already known to be
// ruled out.
func (v *Verdicts) add(a file.Addr, number uint32) (ruledOut bool) {
	v.memo.mu.Lock()
	defer v.memo.mu.Unlock()
	p := v.pages[v.pageIndex(a)]
	v.memo.recallLocked(p)
	return p.done && p.rulesOut(number)
}

// pageIndex returns the index of a page of filters among those of the selection.
func (v *Verdicts) pageIndex(a file.Addr) int {
	at, ok := v.byOff[a.Off]
	if !ok {
		at = len(v.pages)
		v.byOff[a.Off] = at
		v.pages = append(v.pages, &verdictPage{addr: a})
	}
	return at
}

// ask reports whether a unit is ruled out, whose filter is one of a page that has been added.
func (v *Verdicts) ask(ctx context.Context, a file.Addr, number uint32) (bool, error) {
	v.memo.mu.Lock()
	p, group, err := v.groupLocked(a)
	v.memo.mu.Unlock()
	if err != nil {
		return false, err
	}
	v.decideGroup(ctx, group)
	if p.err == nil && int(number) >= len(p.ruledOut) {
		return false, column.Corrupt("page of filters has no filter %d", number)
	}
	if p.err != nil {
		return false, p.err
	}
	return p.ruledOut[number] != 0, nil
}
