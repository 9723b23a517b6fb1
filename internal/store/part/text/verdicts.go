package text

import (
	"context"
	"fmt"
	"sync"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// Many filters share a page. A query asks for the filters of units in the order of time, which returns to
// each page many times. So a selection reads a page of filters, with the slices that it needs, once and
// keeps all of its verdicts. If there is a cache for lists, it keeps them for the next query with the same
// filter: they are much smaller than the filters. As long as nearly nothing passes, the whole selection
// will be asked, so pages are read several at a time (prefetch.go).

// Verdicts remember which units of a selection in one part are ruled out by the filter of a request.
type Verdicts struct {
	r     *file.Reader
	skip  *evaluator
	lists file.Lists // nil: no cache for lists
	query [16]byte   // what is asked, in the key of a list

	mu    sync.Mutex
	pages []*verdictPage // in the order of the file
	byOff map[int64]int  // indexes in pages, by offset
	// units counts the units asked for, and ruledOut those of them that are ruled out.
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

// newVerdicts returns nil if no unit can be ruled out.
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

// add adds a unit of the selection by the page of its filter, and reports whether it is already known to be
// ruled out.
func (v *Verdicts) add(a file.Addr, number uint32) (ruledOut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.pages[v.pageIndex(a)]
	v.recallLocked(p)
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

// recallLocked takes the verdicts of an earlier query about a page from the cache.
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

// decide reads the verdicts of a page, unless they are known. Of concurrent callers, one reads.
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

// openHead returns the head of a page, or nil if it is no longer needed.
func (v *Verdicts) openHead(ctx context.Context, p *verdictPage) (*filterPage, error) {
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

// read reads a page of filters and the slices that are needed.
func (v *Verdicts) read(ctx context.Context, p *verdictPage) ([]byte, error) {
	head, err := v.openHead(ctx, p)
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
