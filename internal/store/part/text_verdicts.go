package part

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// Filters lie side by side, and a query asks for those of units in the order of time, in which those of one page come again and
// again. So a page of filters is read once for a selection, and all that it says is kept: for the selection, and, where there is
// a place for lists, for the next one that asks the same, since it takes less than a hundredth of what the filters take. As long as nearly nothing
// passes, all of the selection is going to be looked at: then pages are read several at a time, as they lie.
const (
	// verdictPages are read at a time: about what one request to a bucket reads.
	verdictPages = 16
	// From verdictUnits units on it is clear what passes.
	verdictUnits = 64
)

// verdicts say of the units of a selection in one part which of them a filter rules out.
type verdicts struct {
	r     *Reader
	skip  *textSkip
	lists Lists  // nil: there is no place for them
	about string // what is asked, in the key of a list

	mu    sync.Mutex
	pages []*verdictPage // in the order of the file
	of    map[int64]int  // their places, by offset
	// units have been looked at, of which so many are ruled out.
	units, ruledOut int
}

// verdictPage is what a page of filters says.
type verdictPage struct {
	addr Addr
	once sync.Once
	// done and recalled, which says that the lists have been asked, are guarded by verdicts.mu.
	done, recalled bool

	// ruledOut is 1 for each filter of the page that rules its unit out. It and err are set once.
	ruledOut []byte
	err      error
}

// newVerdicts returns nil if nothing can be ruled out.
func newVerdicts(r *Reader, s *textSkip) *verdicts {
	if s == nil {
		return nil
	}
	v := &verdicts{r: r, skip: s, of: make(map[int64]int)}
	if l, ok := r.pages.(Lists); ok {
		v.lists, v.about = l, s.key()
	}
	return v
}

// add says that a unit of the selection has its filter in a page, and reports whether it is known already to be ruled out.
func (v *verdicts) add(a Addr, number uint32) (ruledOut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, ok := v.of[a.Off]
	if !ok {
		at = len(v.pages)
		v.of[a.Off] = at
		v.pages = append(v.pages, &verdictPage{addr: a})
	}
	p := v.pages[at]
	v.recallLocked(p)
	return p.done && p.rulesOut(number)
}

// rulesOut is for a page that is done.
func (p *verdictPage) rulesOut(number uint32) bool {
	return p.err == nil && int(number) < len(p.ruledOut) && p.ruledOut[number] != 0
}

// groupLocked returns the page at a, and the pages to read with it, among which it is. Groups have no page in common, so that
// what is left to read of one is mostly all of it.
func (v *verdicts) groupLocked(a Addr) (page *verdictPage, group []*verdictPage, err error) {
	at, ok := v.of[a.Off]
	if !ok {
		return nil, nil, fmt.Errorf("part: filters: the page at %d is not of the selection", a.Off)
	}
	page = v.pages[at]
	v.recallLocked(page)
	if page.done || v.units < verdictUnits || v.ruledOut < v.units-v.units/8 {
		return page, v.pages[at : at+1], nil
	}
	from := at - at%verdictPages
	group = v.pages[from:min(from+verdictPages, len(v.pages))]
	for _, p := range group {
		v.recallLocked(p)
	}
	return page, group, nil
}

// recallLocked takes what an earlier query has found out about a page.
func (v *verdicts) recallLocked(p *verdictPage) {
	if p.recalled || p.done || v.lists == nil {
		return
	}
	p.recalled = true
	if list, ok := v.lists.Kept(v.key(p)); ok {
		v.setLocked(p, list, nil)
	}
}

func (v *verdicts) setLocked(p *verdictPage, ruledOut []byte, err error) {
	p.ruledOut, p.err, p.done = ruledOut, err, true
	v.units += len(ruledOut)
	for _, x := range ruledOut {
		v.ruledOut += int(x)
	}
}

func (v *verdicts) key(p *verdictPage) string { return v.about + strconv.FormatInt(p.addr.Off, 10) }

// ahead appends what asking for a unit will read, and reports whether the unit is known to be ruled out.
func (v *verdicts) ahead(dst []Addr, a Addr, number uint32) (wanted []Addr, known, ruledOut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
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

// ask reports whether a unit is ruled out, whose filter is one of a page that has been added.
func (v *verdicts) ask(ctx context.Context, a Addr, number uint32) (bool, error) {
	v.mu.Lock()
	p, group, err := v.groupLocked(a)
	v.mu.Unlock()
	if err != nil {
		return false, err
	}
	if f, ok := v.r.pages.(Fetcher); ok && len(group) > 1 {
		wanted, _, _ := v.ahead(nil, a, number)
		f.Fetch(ctx, wanted)
	}
	for _, p := range group {
		p.once.Do(func() { v.look(ctx, p) })
	}
	if p.err == nil && int(number) >= len(p.ruledOut) {
		return false, corrupt("page of filters has no filter %d", number)
	}
	if p.err != nil {
		return false, p.err
	}
	return p.ruledOut[number] != 0, nil
}

// look finds out what a page says, unless that is known. Another query may be at it too: one of them reads.
func (v *verdicts) look(ctx context.Context, p *verdictPage) {
	v.mu.Lock()
	done := p.done
	v.mu.Unlock()
	if done {
		return
	}
	var ruledOut []byte
	var err error
	read := func(ctx context.Context) ([]byte, error) { return v.read(ctx, p.addr) }
	if v.lists != nil {
		ruledOut, err = v.lists.List(ctx, v.key(p), read)
	} else {
		ruledOut, err = read(ctx)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.setLocked(p, ruledOut, err)
}

func (v *verdicts) read(ctx context.Context, a Addr) ([]byte, error) {
	payload, err := v.r.pages.Page(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("part: filters: %w", err)
	}
	var f filterPage
	if err := f.open(payload); err != nil {
		return nil, err
	}
	ruledOut := make([]byte, len(f.ends))
	for i := range ruledOut {
		filter, err := f.at(uint32(i))
		if err != nil {
			return nil, err
		}
		none, err := v.skip.none(filter)
		if err != nil {
			return nil, err
		}
		if none {
			ruledOut[i] = 1
		}
	}
	return ruledOut, nil
}
