package part

import (
	"context"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// worthFiltering decides, when some matchers have narrowed the series down to a few, whether the rest should look at the
// labels of those few instead of at every value that their label has. Of a metric with a hundred series, one label may
// have a million values elsewhere. What is compared is pages, because fetching and decoding them is the cost.
func (r *Reader) worthFiltering(ctx context.Context, t *Tenant, w *postingWalk, result rankRuns, rest []selector) (bool, error) {
	postingPages := 0
	for i := range rest {
		n, err := rest[i].pages(w)
		if err != nil {
			return false, err
		}
		postingPages += n
	}
	// Every rest matcher reads a page at least; with no more than that there is nothing to gain.
	if postingPages <= 2*len(rest) {
		return false, nil
	}
	labelPages, err := r.labelPages(ctx, t, result, postingPages)
	return labelPages < postingPages, err
}

// labelPages estimates what reading the labels of a set costs, in pages; beyond limit it stops counting.
func (r *Reader) labelPages(ctx context.Context, t *Tenant, set rankRuns, limit int) (int, error) {
	const setsPerPage = 200 // about as many as take as long as a page of values
	n := set.count() / setsPerPage
	pages := rankWalk{ctx: ctx, r: r, section: labelSection}
	for i := 0; i < len(set) && n < limit; n++ {
		e, err := pages.seek(t.Rank0 + set[i].from)
		if err != nil {
			return 0, err
		}
		end := e.last() - t.Rank0
		for i < len(set) && set[i].to-1 <= end {
			i++
		}
		if i < len(set) && set[i].from <= end {
			// A run over several pages.
			n += int((set[i].to - end) / e.ranks)
			i++
		}
	}
	return n, nil
}

// pages estimates how many pages of postings the matcher would read.
func (s *selector) pages(w *postingWalk) (int, error) {
	if values, ok := s.values(); ok {
		return len(values), nil
	}
	if s.match("") {
		if values := s.refusedValues(); values != nil {
			return len(values), nil
		}
	}
	first, err := w.pageNumber(s.Name, s.scanPrefix(!s.match("")))
	if err != nil {
		return 0, err
	}
	last, err := w.pageNumber(s.Name+"\x00", "")
	return last - first + 1, err
}

// pageNumber returns about which page of postings, from the first of the part on, (name, value) is in.
func (w *postingWalk) pageNumber(name, value string) (int, error) {
	index := w.r.footer.index[postingSection]
	n, v := []byte(name), []byte(value)
	i := max(0, sort.Search(len(index), func(i int) bool { return w.compare(&index[i], n, v) >= 0 })-1)
	if i >= len(index) || !w.openIndex(i) || !w.before(n, v) {
		return 0, w.err
	}
	// Index pages are about equally long.
	return i*w.index.count + w.index.at, nil
}

// filter keeps the series whose labels satisfy all selectors.
func (r *Reader) filter(ctx context.Context, t *Tenant, set rankRuns, rest []selector) (rankRuns, error) {
	u := rankUnion{series: t.Series}
	err := r.eachLabels(ctx, t, set, func(rank uint32, l model.Labels) error {
		if satisfiesAll(l, rest) {
			u.add(rank, rank+1)
		}
		return nil
	})
	return u.take(), err
}

// eachLabels reads the labels of a set. An error of fn ends the walk and is returned.
func (r *Reader) eachLabels(ctx context.Context, t *Tenant, set rankRuns, fn func(rank uint32, l model.Labels) error) error {
	err := r.ahead(ctx, func() ([]Addr, error) { return r.rankPages(ctx, nil, labelSection, set.ranks(t.Rank0), nil) })
	if err != nil {
		return err
	}
	labels := labelCursor{pages: rankWalk{ctx: ctx, r: r, section: labelSection}}
	for _, run := range set {
		for rank := run.from; rank < run.to; rank++ {
			if err := labels.seek(t.Rank0 + rank); err != nil {
				return err
			}
			if err := fn(rank, labels.labels()); err != nil {
				return err
			}
		}
	}
	return nil
}
