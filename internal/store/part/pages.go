package part

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/store/part/file"
)

// PagesOf returns the pages of a part: those of its indexes first, since each query reads them, and then the
// others in the order of the file. It reads the indexes.
func PagesOf(ctx context.Context, r *Reader) ([]Addr, error) {
	c := newChecker(ctx, r)
	pages, err := c.layout()
	if err != nil {
		return nil, err
	}
	index := make(map[file.Addr]bool)
	for _, f := range families {
		for _, sum := range r.Index(f.section) {
			index[sum.Addr] = true
		}
	}
	slices.SortStableFunc(pages, func(a, b file.Addr) int {
		switch {
		case index[a] == index[b]:
			return 0
		case index[a]:
			return -1
		}
		return 1
	})
	return pages, nil
}
