package part

import (
	"bytes"
	"context"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// Fetcher is what [Pages] may be beside: pages that are far away can be fetched side by side, and neighbours with one
// request, if it is known which ones will be asked for.
type Fetcher interface {
	// Fetch says that pages will be asked for, about in this order. It does not wait, fails at nothing, and keeps pages.
	Fetch(ctx context.Context, pages []Addr)
}

// ahead tells the pages what will be asked for, if they want to know.
func (r *Reader) ahead(ctx context.Context, list func() ([]Addr, error)) error {
	f, ok := r.pages.(Fetcher)
	if !ok {
		return nil
	}
	pages, err := list()
	if err == nil && len(pages) > 0 {
		f.Fetch(ctx, pages)
	}
	return err
}

// FetchSeries fetches what walking the series of the ranks will read: keys, labels if they are wanted, and the rows of a
// family within rg, unless that is 0.
func (r *Reader) FetchSeries(ctx context.Context, ranks Ranks, labels bool, f model.Family, rg model.TimeRange) error {
	return r.ahead(ctx, func() ([]Addr, error) {
		pages, err := r.rankPages(ctx, nil, keySection, ranks, nil)
		if err == nil && labels && r.Meta().Labels {
			pages, err = r.rankPages(ctx, pages, labelSection, ranks, nil)
		}
		if err == nil && f != 0 {
			pages, err = r.rankPages(ctx, pages, sectionOf(f), ranks, &rg)
		}
		return pages, err
	})
}

// FetchValues fetches what LabelValues without matchers will read.
func (r *Reader) FetchValues(ctx context.Context, tenant, name string) error {
	t := r.Meta().Tenant(tenant)
	if t == nil || !r.Meta().Labels {
		return nil
	}
	return r.ahead(ctx, func() ([]Addr, error) { return r.postings(ctx, t).pagesOf(nil, []byte(name), nil, true) })
}

// FetchMasks fetches what Active will read.
func (r *Reader) FetchMasks(ctx context.Context, ranks Ranks, rg model.TimeRange) error {
	m := r.Meta()
	if m.Windows.Count == 0 || rg.Min <= m.Range.Min && m.Range.Max <= rg.Max {
		return nil
	}
	return r.ahead(ctx, func() ([]Addr, error) { return r.rankPages(ctx, nil, windowSection, ranks, nil) })
}

// rankPages appends, in order, the pages of a section that hold the ranks; of rows only those that have some within rg.
func (r *Reader) rankPages(ctx context.Context, dst []Addr, sec section, ranks Ranks, rg *model.TimeRange) ([]Addr, error) {
	w := rankWalk{ctx: ctx, r: r, section: sec}
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
		// Other ranks of the same page add nothing, except the last, which may go on in the next.
		next := max(e.rank0, rank+1)
		if e.rank0 <= rank {
			next = max(e.last(), rank+1)
		}
		ranks = ranks[sort.Search(len(ranks), func(i int) bool { return ranks[i] >= next }):]
	}
	return dst, nil
}

// aheadOf fetches the postings that lists and scans of the selectors will read.
func (w *postingWalk) aheadOf(all []selector) error {
	return w.r.ahead(w.ctx, func() (pages []Addr, err error) {
		for i := range all {
			s := &all[i]
			values, known := s.values()
			if s.match("") {
				values = s.refusedValues()
				known = values != nil
			}
			if !known {
				// Which of the rest are scanned is not known before the lists have been read.
				continue
			}
			for _, v := range values[:min(len(values), manyValues)] {
				if pages, err = w.pagesOf(pages, []byte(s.Name), []byte(v), false); err != nil {
					return nil, err
				}
			}
		}
		return pages, nil
	})
}

// manyValues bounds the values of one matcher that are looked up ahead.
const manyValues = 1024

// pagesOf appends the pages in which entries of the name stand whose value is, or begins with, the given one.
func (w *postingWalk) pagesOf(dst []Addr, name, value []byte, prefix bool) ([]Addr, error) {
	index := w.r.footer.index[postingSection]
	if len(index) == 0 {
		return dst, w.err
	}
	i := max(0, sort.Search(len(index), func(i int) bool { return w.compare(&index[i], name, value) >= 0 })-1)
	for ok := w.openIndex(i) && w.before(name, value); ok; ok = w.advance() {
		e := &w.index.entry
		if w.compare(e, name, value) > 0 && !(prefix && e.tenant == w.tenant && bytes.Equal(e.name, name) && bytes.HasPrefix(e.value, value)) {
			return dst, nil
		}
		dst = append(dst, e.addr)
	}
	return dst, w.err
}
