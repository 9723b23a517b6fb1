package series

import (
	"context"

	"github.com/shaledb/shale/internal/store/part/file"
)

// prefetch fetches the postings that lists and scans of the selectors will read.
func (w *postingWalk) prefetch(all []selector) error {
	return w.pages.Reader.Announce(w.pages.Ctx, func() (pages []file.Addr, err error) {
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

// manyValues bounds the values of one matcher whose pages are prefetched.
const manyValues = 1024

// PrefetchValues prefetches the pages that listing the values of a label will read.
func PrefetchValues(ctx context.Context, r *file.Reader, tenant, name string) error {
	t := r.Meta().Tenant(tenant)
	if t == nil || !r.Meta().Labels {
		return nil
	}
	return r.Announce(ctx, func() ([]file.Addr, error) { return newPostingWalk(ctx, r, t).pagesOf(nil, []byte(name), nil, true) })
}
