package read

import (
	"context"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// LabelNames returns the label names of the series that satisfy the request, sorted, at most limit of them (0: all),
// and whether there were more.
func (q *Querier) LabelNames(ctx context.Context, req *model.Request, limit int) ([]string, bool, error) {
	return q.union(ctx, req, limit, func(src Source, r *model.Request, emit func([]byte) error) error {
		return src.LabelNames(ctx, r, emit)
	})
}

// LabelValues does the same for the values of one label.
func (q *Querier) LabelValues(ctx context.Context, req *model.Request, name string, limit int) ([]string, bool, error) {
	return q.union(ctx, req, limit, func(src Source, r *model.Request, emit func([]byte) error) error {
		return src.LabelValues(ctx, r, name, emit)
	})
}

// stringBytes is what a string costs in a set, beside its own bytes.
const stringBytes = 48

func (q *Querier) union(ctx context.Context, req *model.Request, limit int,
	walk func(src Source, r *model.Request, emit func([]byte) error) error,
) ([]string, bool, error) {
	r, ok := q.bound(req)
	if !ok {
		return []string{}, false, nil
	}
	// With a limit, the set holds up to twice as many and is then cut to the least ones, so that memory follows the
	// limit and not the number of values.
	set := map[string]struct{}{}
	more := false
	cutTo := func() []string {
		sorted := make([]string, 0, len(set))
		for s := range set {
			sorted = append(sorted, s)
		}
		slices.Sort(sorted)
		if limit > 0 && len(sorted) > limit {
			more = true
			for _, s := range sorted[limit:] {
				delete(set, s)
			}
			sorted = sorted[:limit]
		}
		return sorted
	}
	emit := func(b []byte) error {
		if _, ok := set[string(b)]; ok || len(b) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.Quota.TakeBytes(int64(len(b)) + stringBytes); err != nil {
			return err
		}
		set[string(b)] = struct{}{}
		if limit > 0 && len(set) >= 2*limit+64 {
			cutTo()
		}
		return nil
	}
	for _, src := range q.o.Sources {
		if err := walk(src, &r, emit); err != nil {
			return nil, false, fmt.Errorf("labels: %w", err)
		}
	}
	return cutTo(), more, nil
}
