package part

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// Ranks are positions in the key column of a part, ascending.
type Ranks []uint32

// rankWalk finds the pages of a section by rank. It keeps one index page open, so ascending ranks are cheap.
type rankWalk struct {
	ctx     context.Context
	r       *fileReader
	section *section
	// index is index page number page-1; page 0 means none.
	page  int
	index indexDir
	// least is the rank from which on the current entry is the first that ends no earlier.
	least uint32

	// copies is for a walk that goes on for as long as a merge: pages may be pieces of megabytes that were read ahead.
	copies bool
	copied []byte
}

// newWalk returns a walk over the pages of a section.
func newWalk(ctx context.Context, r *fileReader, sec *section) rankWalk {
	return rankWalk{ctx: ctx, r: r, section: sec}
}

// position returns the index page and the entry there on which the walk stands, see entry.
func (w *rankWalk) position() (page, i int) { return w.page - 1, w.index.at }

// newStreamWalk returns a walk that copies what it keeps of pages.
func newStreamWalk(r *fileReader, sec *section) rankWalk {
	return rankWalk{r: r, section: sec, copies: true}
}

// open opens index page i, unless it is the current one.
func (w *rankWalk) open(i int) error {
	if w.page == i+1 {
		return nil
	}
	w.page = 0
	e := &w.r.footer.index[w.section.number][i]
	payload, err := w.r.indexPayload(w.ctx, w.section, e)
	if err != nil {
		return err
	}
	if w.copies {
		w.copied = append(w.copied[:0], payload...)
		payload = w.copied
	}
	if err := w.index.open(payload, w.section, w.r.footerOff); err != nil {
		return atPage(e.addr, err)
	}
	w.page = i + 1
	return nil
}

// find moves to the first page whose last rank is not less than rank. It returns nil if there is none.
func (w *rankWalk) find(rank uint32) (*pageEntry, error) {
	if w.page > 0 && w.least <= rank {
		// Ranks mostly lie in the page where the one before was, or in the next.
		if last := w.index.entry.last(); last < rank && w.index.at+1 < w.index.count {
			if err := w.index.next(); err != nil {
				return nil, w.failed(err)
			}
			w.least = last + 1
		}
		if rank <= w.index.entry.last() {
			return &w.index.entry, nil
		}
	}
	index := w.r.footer.index[w.section.number]
	i := sort.Search(len(index), func(i int) bool { return index[i].last() >= rank })
	if i == len(index) {
		return nil, nil
	}
	if err := w.open(i); err != nil {
		return nil, err
	}
	found, err := w.index.search(func(e *pageEntry) bool { return e.last() >= rank })
	if err == nil && !found {
		err = corrupt("index page ends before its last rank")
	}
	if err != nil {
		return nil, w.failed(err)
	}
	w.least = rank
	return &w.index.entry, nil
}

// failed names the index page in which something is wrong.
func (w *rankWalk) failed(err error) error {
	e := &w.r.footer.index[w.section.number][w.page-1]
	w.page = 0
	return atPage(e.addr, err)
}

// following moves to the next page. It returns nil at the end.
func (w *rankWalk) following() (*pageEntry, error) {
	before, last := w.index.coder, w.index.entry.last()
	var err error
	switch {
	case w.index.at+1 < w.index.count:
		err = w.index.next()
	case w.page >= len(w.r.footer.index[w.section.number]):
		return nil, nil
	default:
		if err := w.open(w.page); err != nil {
			return nil, err
		}
		if err = w.index.head(0); err == nil {
			err = w.index.follows(&before)
		}
	}
	if err != nil {
		return nil, w.failed(err)
	}
	w.least = last + 1
	return &w.index.entry, nil
}

// last moves to the last page that is not beyond something, or to the first page if all are. All pages after one that is
// beyond must be, too. It returns nil if the section has no page.
func (w *rankWalk) last(beyond func(e *pageEntry) bool) (*pageEntry, error) {
	index := w.r.footer.index[w.section.number]
	if len(index) == 0 {
		return nil, nil
	}
	i := max(0, sort.Search(len(index), func(i int) bool { return beyond(&index[i]) })-1)
	if err := w.open(i); err != nil {
		return nil, err
	}
	if err := w.index.searchLast(beyond); err != nil {
		return nil, w.failed(err)
	}
	w.least = w.index.entry.rank0
	return &w.index.entry, nil
}

// number returns about which page of the section the walk stands on.
func (w *rankWalk) number() int { return (w.page-1)*w.index.count + w.index.at } // index pages are about equally long

// cover returns the page that covers a rank, of a section that covers all ranks.
func (w *rankWalk) cover(rank uint32) (*pageEntry, error) {
	e, err := w.find(rank)
	if err == nil && (e == nil || e.rank0 > rank) {
		return nil, corrupt("no page of %s covers rank %d", w.section, rank)
	}
	return e, err
}

// entry moves to an entry of an index page. Ranks are found anew from there.
func (w *rankWalk) entry(page, i int) (*pageEntry, error) {
	if err := w.open(page); err != nil {
		return nil, err
	}
	if err := w.index.seek(i); err != nil {
		return nil, w.failed(err)
	}
	w.least = math.MaxUint32
	return &w.index.entry, nil
}

// load returns the payload of a page of the section.
func (w *rankWalk) load(e *pageEntry) ([]byte, error) {
	payload, err := w.r.Page(w.ctx, e.addr)
	if err != nil {
		return nil, fmt.Errorf("part: %s: %w", w.section, err)
	}
	return payload, nil
}

// RankPages appends, in order, the pages of a section that hold the ranks; of rows only those that have some within rg.
func (r *fileReader) RankPages(ctx context.Context, dst []Addr, sec *section, ranks Ranks, rg *model.TimeRange) ([]Addr, error) {
	w := newWalk(ctx, r, sec)
	begin := len(dst)
	for len(ranks) > 0 {
		rank := ranks[0]
		e, err := w.find(rank)
		for ; err == nil && e != nil && e.rank0 <= rank; e, err = w.following() {
			if (rg == nil || e.times.Overlaps(*rg)) && (len(dst) == begin || dst[len(dst)-1].Off < e.addr.Off) {
				dst = append(dst, e.addr)
			}
			if e.last() > rank {
				break
			}
		}
		switch {
		case err != nil:
			return dst, err
		case e == nil:
			return dst, nil
		}
		ranks = e.skipTo(ranks)
	}
	return dst, nil
}

// skipTo returns the ranks from which on a page other than that of e is needed, where ranks[0] has been looked at. Other
// ranks of the page add nothing, except the last, which may go on in the next page.
func (e *pageEntry) skipTo(ranks Ranks) Ranks {
	next := max(e.rank0, ranks[0]+1)
	if e.rank0 <= ranks[0] {
		next = max(e.last(), ranks[0]+1)
	}
	return ranks[sort.Search(len(ranks), func(i int) bool { return ranks[i] >= next }):]
}
