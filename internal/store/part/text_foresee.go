package part

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// unitRef is a unit of a selection: the place of its entry in the index, and its filter. A filter below 0 means that it has none.
type unitRef struct {
	page, entry int32
	filter      int32 // its page of filters, in TextVerdicts.pages
	number      uint32
}

// prefetchText fetches what the Chunks of the ranks will read. If there are filters, and nearly all units are ruled out by them, it
// finds out by which first, and then all else is left to the others.
func prefetchText(ctx context.Context, r *fileReader, ranks Ranks, req *model.Request) (*TextVerdicts, error) {
	v := newVerdicts(r, newTextSkip(req.TextFilter))
	var refs []unitRef
	var shared []sharedUnit
	last := unitRef{page: -1}
	w := newWalk(ctx, r, textSection)
	err := eachUnit(&w, ranks, req.Range, func(e *pageEntry) {
		page, i := w.position()
		ref := unitRef{page: int32(page), entry: int32(i), filter: -1, number: e.text.number}
		if ref.page == last.page && ref.entry == last.entry {
			return // a rank at the end of a unit may have further ones
		}
		last = ref
		if v != nil {
			if e.text.filter.Len > 0 {
				ref.filter = int32(v.place(e.text.filter))
			}
			refs = append(refs, ref)
		}
		if e.ranks > 1 {
			shared = append(shared, sharedUnit{e.addr, ref})
		}
	})
	if err != nil {
		return v, err
	}
	var wanted []Addr
	if v != nil && v.foresee(ctx) {
		wanted, err = v.leave(&w, refs, req)
	} else {
		for _, u := range shared {
			if u.filter < 0 || !v.known(v.pages[u.filter]) || !v.pages[u.filter].rulesOut(u.number) {
				wanted = append(wanted, u.addr)
			}
		}
	}
	if f, ok := r.Pages().(Fetcher); ok && err == nil && len(wanted) > 0 {
		f.Fetch(ctx, wanted)
	}
	return v, err
}

// sharedUnit is a unit of several series. Its page of rows says which rows are whose.
type sharedUnit struct {
	addr Addr
	unitRef
}

// leave keeps the entries of the units that are not ruled out, counts the others, and returns the pages of the units that are left
// and of several series. The walk is one that has found the units.
func (v *TextVerdicts) leave(w *rankWalk, refs []unitRef, req *model.Request) (shared []Addr, err error) {
	out := int64(0)
	for i := range refs {
		ref := &refs[i]
		if ref.filter >= 0 && v.pages[ref.filter].rulesOut(ref.number) {
			out++
			continue
		}
		e, err := w.entry(int(ref.page), int(ref.entry))
		if err != nil {
			return nil, err
		}
		v.left = append(v.left, *e)
		if e.ranks > 1 {
			shared = append(shared, e.addr)
		}
	}
	v.foreseen = true
	req.Cost.TextPages.Add(out)
	req.Cost.TextPagesSkipped.Add(out)
	return shared, nil
}

// eachUnit calls fn for units of the ranks with rows in a range, while the walk stands on them. If a unit ends with a rank that has
// further units, it comes twice.
func eachUnit(w *rankWalk, ranks Ranks, times model.TimeRange, fn func(*pageEntry)) error {
	for len(ranks) > 0 {
		rank := ranks[0]
		e, err := w.find(rank)
		for ; err == nil && e != nil && e.rank0 <= rank; e, err = w.following() {
			if e.times.Overlaps(times) {
				fn(e)
			}
			if e.last() > rank {
				break
			}
		}
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		ranks = e.skipTo(ranks)
	}
	return nil
}
