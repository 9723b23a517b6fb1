package text

import (
	"context"
	"fmt"
	"sync"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// Many filters share a page, and a query asks for those of units in the order of time, in which those of one
// page come again and again. So a page of filters, with those of its slices that are needed, is read once for
// a selection, and all that it says is kept: for the selection, and, where there is a place for lists, for
// the next one that asks the same, since it takes less than a hundredth of what the filters take. As long as
// nearly nothing passes, all of the selection is going to be looked at: then pages are read several at a
// time.

// Verdicts say of the units of a selection in one part which of them a filter rules out.
type Verdicts struct {
	r     *file.Reader
	skip  *evaluator
	lists file.Lists // nil: there is no place for them
	query [16]byte   // what is asked, in the key of a list

	mu    sync.Mutex
	pages []*verdictPage // in the order of the file
	byOff map[int64]int  // their places, by offset
	// units have been looked at, of which so many are ruled out.
	units, ruledOut int

	// allAsked says that left has all units of the selection that are not ruled out, in the order of the
	// index. Both are set before the first unit is asked for.
	allAsked bool
	left     []file.Entry
}

// verdictPage is what a page of filters says.
type verdictPage struct {
	addr         file.Addr
	opened, once sync.Once
	// head and headErr are there from opened until the page is done, and guarded by TextVerdicts.mu.
	head    *filterPage
	headErr error
	// done and recalled, which says that the lists have been asked, are guarded by TextVerdicts.mu.
	done, recalled bool

	// ruledOut is 1 for each filter of the page that rules its unit out. It and err are set once.
	ruledOut []byte
	err      error
}

// newVerdicts returns nil if nothing can be ruled out.
func newVerdicts(r *file.Reader, s *evaluator) *Verdicts {
	if s == nil {
		return nil
	}
	v := &Verdicts{r: r, skip: s, byOff: make(map[int64]int)}
	if l, ok := r.Pages().(file.Lists); ok {
		v.lists, v.query = l, s.key()
	}
	return v
}

// add says that a unit of the selection has its filter in a page, and reports whether it is known already to
// be ruled out.
func (v *Verdicts) add(a file.Addr, number uint32) (ruledOut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.pages[v.pageIndex(a)]
	v.recallLocked(p)
	return p.done && p.rulesOut(number)
}

// pageIndex returns the place of a page of filters among those of the selection.
func (v *Verdicts) pageIndex(a file.Addr) int {
	at, ok := v.byOff[a.Off]
	if !ok {
		at = len(v.pages)
		v.byOff[a.Off] = at
		v.pages = append(v.pages, &verdictPage{addr: a})
	}
	return at
}

// rulesOut is for a page that is done.
func (p *verdictPage) rulesOut(number uint32) bool {
	return p.err == nil && int(number) < len(p.ruledOut) && p.ruledOut[number] != 0
}

// known reports whether it is known what a page says.
func (v *Verdicts) known(p *verdictPage) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.recallLocked(p)
	return p.done
}

// recallLocked takes what an earlier query has found out about a page.
func (v *Verdicts) recallLocked(p *verdictPage) {
	if p.recalled || p.done || v.lists == nil {
		return
	}
	p.recalled = true
	if list, ok := v.lists.Kept(v.key(p)); ok {
		v.setLocked(p, list, nil)
	}
}

func (v *Verdicts) setLocked(p *verdictPage, ruledOut []byte, err error) {
	p.ruledOut, p.err, p.done = ruledOut, err, true
	p.head = nil
	v.units += len(ruledOut)
	for _, x := range ruledOut {
		v.ruledOut += int(x)
	}
}

func (v *Verdicts) key(p *verdictPage) file.ListKey {
	return file.ListKey{Off: p.addr.Off, Query: v.query}
}

// ask reports whether a unit is ruled out, whose filter is one of a page that has been added.
func (v *Verdicts) ask(ctx context.Context, a file.Addr, number uint32) (bool, error) {
	v.mu.Lock()
	p, group, err := v.groupLocked(a)
	v.mu.Unlock()
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

// decide finds out what a page says, unless that is known. Another query may be at it too: one of them reads.
func (v *Verdicts) decide(ctx context.Context, p *verdictPage) {
	v.mu.Lock()
	done := p.done
	v.mu.Unlock()
	if done {
		return
	}
	var ruledOut []byte
	var err error
	read := func(ctx context.Context) ([]byte, error) { return v.read(ctx, p) }
	if v.lists != nil {
		ruledOut, err = v.lists.List(ctx, v.key(p), read)
	} else {
		ruledOut, err = read(ctx)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.setLocked(p, ruledOut, err)
}

// open returns the head of a page, or nil if it is no longer needed.
func (v *Verdicts) open(ctx context.Context, p *verdictPage) (*filterPage, error) {
	p.opened.Do(func() {
		head := new(filterPage)
		payload, err := v.r.Page(ctx, p.addr)
		if err != nil {
			err = fmt.Errorf("part: filters: %w", err)
		} else {
			err = head.decode(payload, p.addr)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		p.head, p.headErr = head, err
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	return p.head, p.headErr
}

// read reads a page of filters and the slices that are needed of it.
func (v *Verdicts) read(ctx context.Context, p *verdictPage) ([]byte, error) {
	head, err := v.open(ctx, p)
	if err != nil {
		return nil, err
	}
	var read [lines.FilterParts][]byte // what many items need is asked for once
	return v.skip.ruledOut(head, func(i int) ([]byte, error) {
		if read[i] == nil {
			if read[i], err = head.readSlice(ctx, v.r.Pages(), i); err != nil {
				return nil, err
			}
		}
		return read[i], nil
	})
}
