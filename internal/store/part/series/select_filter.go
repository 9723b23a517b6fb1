package series

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// worthFiltering decides, when some matchers have narrowed the series down to a few, whether the rest should
// look at the labels of those few instead of at every value that their label has. Of a metric with a hundred
// series, one label may have a million values elsewhere. What is compared is pages, because fetching and
// decoding them is the cost.
func worthFiltering(ctx context.Context, r *file.Reader, t *file.Tenant, w *postingWalk, result rankRuns, rest []selector) (bool, error) {
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
	labelPages, err := labelPages(ctx, r, t, result, postingPages)
	return labelPages < postingPages, err
}

// labelPages estimates what reading the labels of a set costs, in pages; beyond limit it stops counting.
func labelPages(ctx context.Context, r *file.Reader, t *file.Tenant, set rankRuns, limit int) (int, error) {
	const setsPerPage = 200 // about as many as take as long as a page of values
	n := set.count() / setsPerPage
	pages := file.NewWalk(ctx, r, LabelSection)
	for i := 0; i < len(set) && n < limit; n++ {
		e, err := pages.Cover(t.Rank0 + set[i].from)
		if err != nil {
			return 0, err
		}
		end := e.Last() - t.Rank0
		for i < len(set) && set[i].to-1 <= end {
			i++
		}
		if i < len(set) && set[i].from <= end {
			// A run over several pages.
			n += int((set[i].to - end) / e.Ranks)
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

// filterByLabels keeps the series whose labels satisfy all selectors.
func filterByLabels(ctx context.Context, r *file.Reader, t *file.Tenant, set rankRuns, rest []selector, memory *scratch) (rankRuns, error) {
	u := rankUnion{series: t.Series, memory: memory}
	err := eachLabels(ctx, r, t, set, func(rank uint32, l model.Labels) error {
		if satisfiesAll(l, rest) {
			u.add(rank, rank+1)
		}
		return u.err
	})
	if err != nil {
		return nil, err
	}
	return u.result()
}

// eachLabels reads the labels of a set. An error of fn ends the walk and is returned.
func eachLabels(ctx context.Context, r *file.Reader, t *file.Tenant, set rankRuns, fn func(rank uint32, l model.Labels) error) error {
	err := r.Announce(ctx, func() ([]file.Addr, error) { return r.RankPages(ctx, nil, LabelSection, set.ranks(t.Rank0), nil) })
	if err != nil {
		return err
	}
	labels := LabelCursor{Pages: file.NewWalk(ctx, r, LabelSection)}
	for _, run := range set {
		for rank := run.from; rank < run.to; rank++ {
			if err := labels.Seek(t.Rank0 + rank); err != nil {
				return err
			}
			if err := fn(rank, labels.Labels()); err != nil {
				return err
			}
		}
	}
	return nil
}
