package read

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
	r, ok, err := q.lists(ctx, req)
	if !ok || err != nil {
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
	q.o.Warn(&r)
	return set.finish()
}

// lists prepares a request for lists of labels. It reports whether sources are to be asked.
func (q *Querier) lists(ctx context.Context, req *model.Request) (r model.Request, ok bool, err error) {
	r, ok = q.bound(req)
	r.Cost.Reach.AddLists(r.Signal)
	if ok && r.Cost.Bill != nil && r.Cost.Bill.Coarse {
		_, err = q.billSelect(ctx, &r)
		ok = false
	}
	return r, ok, err
}

// Labels returns the labels of the series that satisfy the request: the sorted values of each name.
func (q *Querier) Labels(ctx context.Context, req *model.Request) (map[string][]string, error) {
	if len(req.Matchers) > 0 {
		q.asks(req)
	}
	r, ok, err := q.lists(ctx, req)
	if !ok || err != nil {
		return nil, err
	}
	sets := map[string]*leastStrings{}
	emit := func(name, value []byte) error {
		set := sets[string(name)]
		if set == nil {
			set = &leastStrings{quota: r.Quota}
			sets[string(name)] = set
		}
		return cmp.Or(ctx.Err(), set.add(value))
	}
	for _, src := range q.o.Sources {
		if err := cmp.Or(labelsOf(ctx, src, &r, emit), ctx.Err()); err != nil {
			return nil, fmt.Errorf("labels: %w", err)
		}
	}
	q.o.Warn(&r)
	all := make(map[string][]string, len(sets))
	for name, set := range sets {
		if all[name], _, err = set.finish(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// labelsOf lists the names of a source, and then the values of each, unless the source has both at once.
func labelsOf(ctx context.Context, src Source, req *model.Request, emit func(name, value []byte) error) error {
	if from, ok := src.(LabelSource); ok {
		return from.Labels(ctx, req, emit)
	}
	var names []string
	err := src.LabelNames(ctx, req, func(name []byte) error {
		names = append(names, string(name))
		return nil
	})
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err == nil {
			err = src.LabelValues(ctx, req, name, func(value []byte) error { return emit([]byte(name), value) })
		}
	}
	return err
}
