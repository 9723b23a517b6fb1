package part

import (
	"context"
	"fmt"
	"sync"
)

// Filters lie side by side, and a query asks for those of units in the order of time, in which those of one page come again and
// again. So a page of filters is read once for a selection, and all that it says is kept. As long as nearly nothing passes, all of
// the selection is going to be looked at: then pages are read several at a time, as they lie.
const (
	// verdictPages are read at a time: about what one request to a bucket reads.
	verdictPages = 16
	// From verdictUnits units on it is clear what passes.
	verdictUnits = 64
)

// verdicts say of the units of a selection in one part which of them a filter rules out.
type verdicts struct {
	skip *textSkip

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
	done bool // guarded by verdicts.mu

	// ruledOut says it of each filter of the page. It and err are set once.
	ruledOut []bool
	err      error
}

// newVerdicts returns nil if nothing can be ruled out.
func newVerdicts(s *textSkip) *verdicts {
	if s == nil {
		return nil
	}
	return &verdicts{skip: s, of: make(map[int64]int)}
}

// add says that units of the selection have their filters in a page.
func (v *verdicts) add(a Addr) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.of[a.Off]; !ok {
		v.of[a.Off] = len(v.pages)
		v.pages = append(v.pages, &verdictPage{addr: a})
	}
}

// groupLocked returns the pages to read together, of which the first is that at a.
func (v *verdicts) groupLocked(a Addr) []*verdictPage {
	at, n := v.of[a.Off], 1
	if v.units >= verdictUnits && v.ruledOut >= v.units-v.units/8 {
		n = verdictPages
	}
	return v.pages[at:min(at+n, len(v.pages))]
}

// ahead appends what asking for a unit will read, and reports whether the unit is known to be ruled out.
func (v *verdicts) ahead(dst []Addr, a Addr, number uint32) (wanted []Addr, known, ruledOut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.pages[v.of[a.Off]]; p.done {
		return dst, true, p.err == nil && int(number) < len(p.ruledOut) && p.ruledOut[number]
	}
	for _, p := range v.groupLocked(a) {
		if !p.done {
			dst = appendNew(dst, p.addr)
		}
	}
	return dst, false, false
}

// ask reports whether a unit is ruled out, whose filter is one of a page that has been added.
func (v *verdicts) ask(ctx context.Context, r *Reader, a Addr, number uint32) (bool, error) {
	v.mu.Lock()
	group := v.groupLocked(a)
	first := group[0]
	if first.done {
		group = group[:1]
	}
	v.mu.Unlock()
	if f, ok := r.pages.(Fetcher); ok && len(group) > 1 {
		wanted, _, _ := v.ahead(nil, a, number)
		f.Fetch(ctx, wanted)
	}
	for _, p := range group {
		p.once.Do(func() { v.look(ctx, r, p) })
	}
	if first.err == nil && int(number) >= len(first.ruledOut) {
		return false, corrupt("page of filters has no filter %d", number)
	}
	if first.err != nil {
		return false, first.err
	}
	return first.ruledOut[number], nil
}

// look reads a page.
func (v *verdicts) look(ctx context.Context, r *Reader, p *verdictPage) {
	ruledOut, n := 0, 0
	p.err = func() error {
		payload, err := r.pages.Page(ctx, p.addr)
		if err != nil {
			return fmt.Errorf("part: filters: %w", err)
		}
		var f filterPage
		if err := f.open(payload); err != nil {
			return err
		}
		p.ruledOut = make([]bool, len(f.ends))
		for i := range p.ruledOut {
			filter, err := f.at(uint32(i))
			if err != nil {
				return err
			}
			if p.ruledOut[i], err = v.skip.none(filter); err != nil {
				return err
			}
			if n++; p.ruledOut[i] {
				ruledOut++
			}
		}
		return nil
	}()
	v.mu.Lock()
	defer v.mu.Unlock()
	p.done = true
	v.units += n
	v.ruledOut += ruledOut
}
