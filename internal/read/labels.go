package read

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// LabelNames returns the sorted label names of the series that satisfy the request, at most limit of them
// (0 means all), and whether there were more.
func (q *Querier) LabelNames(ctx context.Context, req *model.Request, limit int) ([]string, bool, error) {
	if len(req.Matchers) > 0 { // a list of all names does not use them
		q.asks(req)
	}
	return q.union(ctx, req, limit, func(src Source, r *model.Request, emit func([]byte) error) error {
		return src.LabelNames(ctx, r, emit)
	})
}

// LabelValues returns the sorted values of one label in the same way.
func (q *Querier) LabelValues(ctx context.Context, req *model.Request, name string, limit int) ([]string, bool, error) {
	if len(req.Matchers) > 0 {
		q.asks(req)
	}
	if q.o.Asked != nil && req.Signal == model.Metrics && name != model.NameLabel {
		q.o.Asked.Named(req.Tenant, name)
	}
	return q.union(ctx, req, limit, func(src Source, r *model.Request, emit func([]byte) error) error {
		return src.LabelValues(ctx, r, name, emit)
	})
}

func (q *Querier) union(ctx context.Context, req *model.Request, limit int,
	walk func(src Source, r *model.Request, emit func([]byte) error) error,
) ([]string, bool, error) {
	r, ok := q.bound(req)
	r.Cost.Reach.AddLists(r.Signal)
	if !ok {
		return []string{}, false, nil
	}
	if r.Cost.Bill != nil && r.Cost.Bill.Coarse {
		_, err := q.billSelect(ctx, &r)
		return []string{}, false, err
	}
	set := leastStrings{limit: limit, quota: r.Quota}
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
	return set.finish()
}
