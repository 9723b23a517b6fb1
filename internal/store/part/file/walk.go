package file

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

// Ranks are positions in the key column of a part, ascending.
type Ranks []uint32

// Walk finds the pages of a section by rank. It keeps one index page open, so ascending ranks are cheap.
type Walk struct {
	Ctx     context.Context
	Reader  *Reader
	Section *Section
	// index is index page number page-1; page 0 means none.
	page  int
	index indexDir
	// least is the lowest rank for which the current entry is the right one.
	least uint32

	// Copies makes the walk copy what it keeps of a page. A walk that lasts as long as a merge needs that,
	// because pages may be slices of megabytes that were prefetched.
	Copies bool
	copied []byte
}

// NewWalk returns a walk over the pages of a section.
func NewWalk(ctx context.Context, r *Reader, sec *Section) Walk {
	return Walk{Ctx: ctx, Reader: r, Section: sec}
}

// Position returns the current index page and entry, for [Walk.Entry].
func (w *Walk) Position() (page, i int) { return w.page - 1, w.index.at }

// NewStreamWalk returns a walk that copies what it keeps of pages.
func NewStreamWalk(r *Reader, sec *Section) Walk {
	return Walk{Reader: r, Section: sec, Copies: true}
}

// loadIndexPage loads index page i, unless it is the current one.
func (w *Walk) loadIndexPage(i int) error {
	if w.page == i+1 {
		return nil
	}
	w.page = 0
	e := &w.Reader.footer.index[w.Section.Number][i]
	payload, err := w.Reader.indexPayload(w.Ctx, w.Section, e)
	if err != nil {
		return err
	}
	if w.Copies {
		w.copied = append(w.copied[:0], payload...)
		payload = w.copied
	}
	if err := w.index.decode(payload, w.Section, w.Reader.footerOff); err != nil {
		return AtPage(e.Addr, err)
	}
	w.page = i + 1
	return nil
}

// Find moves to the first page whose last rank is not less than rank. It returns nil if there is none.
func (w *Walk) Find(rank uint32) (*Entry, error) {
	if w.page > 0 && w.least <= rank {
		// Most ranks lie in the page of the rank before, or in the next one.
		if last := w.index.entry.Last(); last < rank && w.index.at+1 < w.index.count {
			if err := w.index.next(); err != nil {
				return nil, w.failed(err)
			}
			w.least = last + 1
		}
		if rank <= w.index.entry.Last() {
			return &w.index.entry, nil
		}
	}
	index := w.Reader.footer.index[w.Section.Number]
	i := sort.Search(len(index), func(i int) bool { return index[i].Last() >= rank })
	if i == len(index) {
		return nil, nil
	}
	if err := w.loadIndexPage(i); err != nil {
		return nil, err
	}
	found, err := w.index.search(func(e *Entry) bool { return e.Last() >= rank })
	if err == nil && !found {
		err = column.Corrupt("index page ends before its last rank")
	}
	if err != nil {
		return nil, w.failed(err)
	}
	w.least = rank
	return &w.index.entry, nil
}

// failed names the index page in which something is wrong.
func (w *Walk) failed(err error) error {
	e := &w.Reader.footer.index[w.Section.Number][w.page-1]
	w.page = 0
	return AtPage(e.Addr, err)
}

// Following moves to the next page. It returns nil at the end.
func (w *Walk) Following() (*Entry, error) {
	before, last := w.index.coder, w.index.entry.Last()
	var err error
	switch {
	case w.index.at+1 < w.index.count:
		err = w.index.next()
	case w.page >= len(w.Reader.footer.index[w.Section.Number]):
		return nil, nil
	default:
		if err := w.loadIndexPage(w.page); err != nil {
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

// Last moves to the last page for which beyond returns false, or to the first page if there is none. All
// pages after one that is beyond must be beyond, too. It returns nil if the section has no page.
func (w *Walk) Last(beyond func(e *Entry) bool) (*Entry, error) {
	index := w.Reader.footer.index[w.Section.Number]
	if len(index) == 0 {
		return nil, nil
	}
	i := max(0, sort.Search(len(index), func(i int) bool { return beyond(&index[i]) })-1)
	if err := w.loadIndexPage(i); err != nil {
		return nil, err
	}
	if err := w.index.searchLast(beyond); err != nil {
		return nil, w.failed(err)
	}
	w.least = w.index.entry.Rank0
	return &w.index.entry, nil
}

// PageNumber estimates the number of the current page in the section: index pages are about equally long.
func (w *Walk) PageNumber() int { return (w.page-1)*w.index.count + w.index.at }

// Cover returns the page that covers a rank, of a section that covers all ranks.
func (w *Walk) Cover(rank uint32) (*Entry, error) {
	e, err := w.Find(rank)
	if err == nil && (e == nil || e.Rank0 > rank) {
		return nil, column.Corrupt("no page of %s covers rank %d", w.Section, rank)
	}
	return e, err
}

// Entry moves to an entry of an index page. The next Find starts over.
func (w *Walk) Entry(page, i int) (*Entry, error) {
	if err := w.loadIndexPage(page); err != nil {
		return nil, err
	}
	if err := w.index.seek(i); err != nil {
		return nil, w.failed(err)
	}
	w.least = math.MaxUint32
	return &w.index.entry, nil
}

// Load returns the payload of a page of the section.
func (w *Walk) Load(e *Entry) ([]byte, error) {
	payload, err := w.Reader.Page(w.Ctx, e.Addr)
	if err != nil {
		return nil, fmt.Errorf("part: %s: %w", w.Section, err)
	}
	return payload, nil
}

// RankPages appends, in order, the pages of a section that hold the ranks. Pages of rows must have rows
// within rg.
func (r *Reader) RankPages(ctx context.Context, dst []Addr, sec *Section, ranks Ranks, rg *model.TimeRange) ([]Addr, error) {
	w := NewWalk(ctx, r, sec)
	begin := len(dst)
	for len(ranks) > 0 {
		rank := ranks[0]
		e, err := w.Find(rank)
		for ; err == nil && e != nil && e.Rank0 <= rank; e, err = w.Following() {
			if (rg == nil || e.Times.Overlaps(*rg)) && (len(dst) == begin || dst[len(dst)-1].Off < e.Addr.Off) {
				dst = append(dst, e.Addr)
			}
			if e.Last() > rank {
				break
			}
		}
		switch {
		case err != nil:
			return dst, err
		case e == nil:
			return dst, nil
		}
		ranks = e.SkipTo(ranks)
	}
	return dst, nil
}

// SkipTo returns the ranks that need another page than e; ranks[0] has been looked at. That drops the other
// ranks of the page, except the last one, which may continue in the next page.
func (e *Entry) SkipTo(ranks Ranks) Ranks {
	next := max(e.Rank0, ranks[0]+1)
	if e.Rank0 <= ranks[0] {
		next = max(e.Last(), ranks[0]+1)
	}
	return ranks[sort.Search(len(ranks), func(i int) bool { return ranks[i] >= next }):]
}
