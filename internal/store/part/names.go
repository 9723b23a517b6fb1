package part

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// LabelNames emits, ascending and unique, the label names of the tenant's series that satisfy the matchers. What emit gets
// is valid until it returns; its error ends the walk and is returned.
func (r *Reader) LabelNames(ctx context.Context, tenant string, ms []model.Matcher, emit func(name []byte) error) error {
	t := r.Meta().Tenant(tenant)
	if t == nil {
		return nil
	}
	meets, err := r.meets(ctx, t, ms)
	if err != nil || meets == nil {
		return err
	}
	w := r.postings(ctx, t)
	var name []byte
	for ok := w.seek(nil, nil); ok; {
		found, err := meets(w)
		if err != nil {
			return err
		}
		if !found {
			ok = w.next()
			continue
		}
		name = append(name[:0], w.dir.name...)
		if err := emit(name); err != nil {
			return err
		}
		// The least name that is greater.
		name = append(name, 0)
		ok = w.seek(name, nil)
	}
	return w.err
}

// LabelValues emits, ascending and unique, the values of one label among the tenant's series that satisfy the matchers.
// What emit gets is valid until it returns; its error ends the walk and is returned.
func (r *Reader) LabelValues(ctx context.Context, tenant, name string, ms []model.Matcher, emit func(value []byte) error) error {
	t := r.Meta().Tenant(tenant)
	if t == nil {
		return nil
	}
	meets, err := r.meets(ctx, t, ms)
	if err != nil || meets == nil {
		return err
	}
	w := r.postings(ctx, t)
	var last []byte
	any := false
	return w.values([]byte(name), nil, func() error {
		if any && string(last) == string(w.dir.value) {
			return nil
		}
		found, err := meets(w)
		if err != nil || !found {
			return err
		}
		last, any = append(last[:0], w.dir.value...), true
		return emit(last)
	})
}

// meets returns a function that tells whether the current entry of a walk has a series that satisfies the matchers, or
// nil if no series does.
func (r *Reader) meets(ctx context.Context, t *Tenant, ms []model.Matcher) (func(*postingWalk) (bool, error), error) {
	runs, err := r.selectRuns(ctx, t, ms)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	if !r.Meta().Labels {
		return nil, invalid("label names asked of a part without labels")
	}
	if runs.count() == int(t.Series) {
		return func(*postingWalk) (bool, error) { return true, nil }, nil
	}
	set := newRankSet(t.Series, runs)
	return func(w *postingWalk) (bool, error) {
		found := false
		err := w.dir.runs(w.series, func(from, to uint32) { found = found || set.meets(from, to) })
		return found, err
	}, nil
}
