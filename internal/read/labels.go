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

func (q *Querier) union(ctx context.Context, req *model.Request, limit int,
	walk func(src Source, r *model.Request, emit func([]byte) error) error,
) ([]string, bool, error) {
	r, ok := q.bound(req)
	if !ok {
		return []string{}, false, nil
	}
	set := leastStrings{limit: limit, quota: r.Quota, held: map[string]struct{}{}}
	emit := func(b []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return set.add(b)
	}
	for _, src := range q.o.Sources {
		err := walk(src, &r, emit)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, false, fmt.Errorf("labels: %w", err)
		}
	}
	least := set.trim() // which sets more
	return least, set.more, nil
}

// leastStrings collects distinct strings, or only the least ones if there is a limit. It holds at most about twice the
// limit, so that memory follows the limit and not the number of values.
type leastStrings struct {
	limit int
	quota *model.Quota
	held  map[string]struct{}
	full  bool   // the set was trimmed, so that
	last  string // nothing after this one is wanted
	more  bool
}

// stringBytes is about what a string costs beside its own bytes: its place in the set and in the sorted list.
const stringBytes = 64

func (s *leastStrings) add(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if s.full && string(b) > s.last {
		s.more = true
		return nil
	}
	if _, ok := s.held[string(b)]; ok {
		return nil
	}
	if err := s.quota.TakeBytes(int64(len(b)) + stringBytes); err != nil {
		return err
	}
	s.held[string(b)] = struct{}{}
	if s.limit > 0 && len(s.held)-s.limit >= max(s.limit, 64) {
		s.trim()
	}
	return nil
}

// trim drops what is beyond the limit and returns the rest, sorted.
func (s *leastStrings) trim() []string {
	sorted := make([]string, 0, len(s.held))
	for v := range s.held {
		sorted = append(sorted, v)
	}
	slices.Sort(sorted)
	if s.limit <= 0 || len(sorted) < s.limit {
		return sorted
	}
	for _, v := range sorted[s.limit:] {
		s.more = true
		delete(s.held, v)
		// Giving back cannot fail.
		_ = s.quota.TakeBytes(-int64(len(v)) - stringBytes)
	}
	sorted = sorted[:s.limit]
	s.full, s.last = true, sorted[s.limit-1]
	return sorted
}
