package text

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// unitRef is a unit of a selection: the place of its entry in the index, and its filter. A filter below 0
// means that it has none.
type unitRef struct {
	page, entry int32
	filter      int32 // its page of filters, in Verdicts.pages
	number      uint32
}

// Prefetch fetches what the Chunks of the ranks will read. If there are filters, and nearly all units are
// ruled out by them, it finds out by which first, and then all else is left to the others.
func Prefetch(ctx context.Context, r *file.Reader, ranks file.Ranks, req *model.Request) (*Verdicts, error) {
	v := newVerdicts(r, newEvaluator(req.TextFilter))
	var refs []unitRef
	var shared []sharedUnit
	last := unitRef{page: -1}
	w := file.NewWalk(ctx, r, Section)
	err := eachUnit(&w, ranks, req.Range, func(e *file.Entry) {
		page, i := w.Position()
		ref := unitRef{page: int32(page), entry: int32(i), filter: -1, number: e.Text.Number}
		if ref.page == last.page && ref.entry == last.entry {
			return // a rank at the end of a unit may have further ones
		}
		last = ref
		if v != nil {
			if e.Text.Filter.Len > 0 {
				ref.filter = int32(v.pageIndex(e.Text.Filter))
			}
			refs = append(refs, ref)
		}
		if e.Ranks > 1 {
			shared = append(shared, sharedUnit{e.Addr, ref})
		}
	})
	if err != nil {
		return v, err
	}
	var wanted []file.Addr
	if v != nil && v.askAll(ctx) {
		wanted, err = v.leave(&w, refs, req)
	} else {
		for _, u := range shared {
			if u.filter < 0 || !v.memo.known(v.pages[u.filter]) || !v.pages[u.filter].rulesOut(u.number) {
				wanted = append(wanted, u.addr)
			}
		}
	}
	if f, ok := r.Pages().(file.Fetcher); ok && err == nil && len(wanted) > 0 {
		f.Fetch(ctx, wanted)
	}
	return v, err
}

// sharedUnit is a unit of several series. Its page of rows says which rows are whose.
type sharedUnit struct {
	addr file.Addr
	unitRef
}

// leave keeps the entries of the units that are not ruled out, counts the others, and returns the pages of
// the units that are left and of several series. The walk is one that has found the units.
func (v *Verdicts) leave(w *file.Walk, refs []unitRef, req *model.Request) (shared []file.Addr, err error) {
	out := int64(0)
	for i := range refs {
		ref := &refs[i]
		if ref.filter >= 0 && v.pages[ref.filter].rulesOut(ref.number) {
			out++
			continue
		}
		e, err := w.Entry(int(ref.page), int(ref.entry))
		if err != nil {
			return nil, err
		}
		v.left = append(v.left, *e)
		if e.Ranks > 1 {
			shared = append(shared, e.Addr)
		}
	}
	v.allAsked = true
	req.Cost.TextPages.Add(out)
	req.Cost.TextPagesSkipped.Add(out)
	return shared, nil
}

// eachUnit calls fn for units of the ranks with rows in a range, while the walk stands on them. If a unit
// ends with a rank that has further units, it comes twice.
func eachUnit(w *file.Walk, ranks file.Ranks, times model.TimeRange, fn func(*file.Entry)) error {
	for len(ranks) > 0 {
		rank := ranks[0]
		e, err := w.Find(rank)
		for ; err == nil && e != nil && e.Rank0 <= rank; e, err = w.Following() {
			if e.Times.Overlaps(times) {
				fn(e)
			}
			if e.Last() > rank {
				break
			}
		}
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		ranks = e.SkipTo(ranks)
	}
	return nil
}
