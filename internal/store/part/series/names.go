package series

import (
	"bytes"
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Lister lists names and values of labels. Charge, if set, is called before the lists take memory that grows
// with their results, and with a negative number when memory is free again.
type Lister struct {
	*file.Reader
	Charge func(bytes int64) error
}

// Names emits, ascending and unique, the label names of the tenant's series that satisfy the matchers. What
// emit gets is valid until it returns; its error ends the walk and is returned.
func (r Lister) Names(ctx context.Context, tenant string, ms []model.Matcher, emit func(name []byte) error) error {
	memory := &scratch{charge: r.Charge}
	defer memory.release()
	t, set, err := r.named(ctx, tenant, ms, memory)
	if err != nil || len(set) == 0 {
		return err
	}
	w := newPostingWalk(ctx, r.Reader, t)
	if set.count() < int(t.Series) {
		few, err := r.fewer(ctx, t, w, set, "", "")
		if err != nil {
			return err
		}
		if few {
			return r.collect(ctx, t, set, emit, func(l model.Labels, found func([]byte) error) error {
				for name, _, rest, ok := l.Next(); ok; name, _, rest, ok = rest.Next() {
					if err := found(name); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	meets := newMeeting(t, set)
	var name []byte
	for ok := w.seek(nil, nil); ok; {
		found, err := meets.entry(w)
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

// Values emits, ascending and unique, the values of one label among the tenant's series that satisfy the
// matchers. What emit gets is valid until it returns; its error ends the walk and is returned.
func (r Lister) Values(ctx context.Context, tenant, name string, ms []model.Matcher, emit func(value []byte) error) error {
	memory := &scratch{charge: r.Charge}
	defer memory.release()
	t, set, err := r.named(ctx, tenant, ms, memory)
	if err != nil || len(set) == 0 {
		return err
	}
	w := newPostingWalk(ctx, r.Reader, t)
	if set.count() < int(t.Series) {
		few, err := r.fewer(ctx, t, w, set, name, name+"\x00")
		if err != nil {
			return err
		}
		if few {
			return r.collect(ctx, t, set, emit, func(l model.Labels, found func([]byte) error) error {
				if value := l.Get(name); len(value) > 0 {
					return found(value)
				}
				return nil
			})
		}
	}
	meets := newMeeting(t, set)
	var last []byte
	any := false
	return w.values([]byte(name), nil, func() error {
		if any && string(last) == string(w.dir.value) {
			return nil
		}
		found, err := meets.entry(w)
		if err != nil || !found {
			return err
		}
		last, any = append(last[:0], w.dir.value...), true
		return emit(last)
	})
}

// named returns the tenant and its series that satisfy the matchers.
func (r Lister) named(ctx context.Context, tenant string, ms []model.Matcher, memory *scratch) (*file.Tenant, rankRuns, error) {
	t := r.Meta().Tenant(tenant)
	if t == nil {
		return nil, nil, nil
	}
	if !r.Meta().Labels {
		return nil, nil, column.Invalid("label names asked of a part without labels")
	}
	set, err := selectRuns(ctx, r.Reader, t, ms, memory)
	return t, set, err
}

// fewer reports whether the labels of a set take fewer pages than the postings of the names [from, to); an
// empty to means all names from there on.
func (r Lister) fewer(ctx context.Context, t *file.Tenant, w *postingWalk, set rankRuns, from, to string) (bool, error) {
	first, err := w.pageNumber(from, "")
	if err != nil {
		return false, err
	}
	end := *w
	if to == "" {
		end.tenant++
	}
	last, err := end.pageNumber(to, "")
	if err != nil {
		return false, err
	}
	limit := last - first + 1
	if limit <= 2 {
		return false, nil
	}
	n, err := labelPages(ctx, r.Reader, t, set, limit)
	return n < limit, err
}

// collect emits, ascending and unique, what pick finds in the labels of a set. It holds all results, because
// labels arrive in the order of keys.
func (r Lister) collect(ctx context.Context, t *file.Tenant, set rankRuns, emit func([]byte) error, pick func(l model.Labels, found func([]byte) error) error) error {
	const each = 96 // of two slices and a string with their place in a map, about
	charge, taken := r.Charge, int64(0)
	if charge == nil {
		charge = func(int64) error { return nil }
	}
	defer func() { _ = charge(-taken) }() // giving back never fails
	seen := make(map[string]struct{})
	var all [][]byte
	found := func(b []byte) error {
		if _, ok := seen[string(b)]; ok {
			return nil
		}
		n := int64(2*len(b) + each)
		if err := charge(n); err != nil {
			return err
		}
		taken += n
		b = bytes.Clone(b)
		seen[string(b)] = struct{}{}
		all = append(all, b)
		return nil
	}
	err := eachLabels(ctx, r.Reader, t, set, func(_ uint32, l model.Labels) error { return pick(l, found) })
	if err != nil {
		return err
	}
	slices.SortFunc(all, bytes.Compare)
	for _, b := range all {
		if err := emit(b); err != nil {
			return err
		}
	}
	return nil
}

// meeting returns a function that reports whether the entry of a walk has a series of the set.
type meeting struct {
	all bool
	set rankSet
}

func newMeeting(t *file.Tenant, set rankRuns) *meeting {
	if set.count() == int(t.Series) {
		return &meeting{all: true}
	}
	return &meeting{set: newRankSet(t.Series, set)}
}

func (m *meeting) entry(w *postingWalk) (bool, error) {
	if m.all {
		return true, nil
	}
	found := false
	err := w.dir.runs(w.series, func(from, to uint32) { found = found || m.set.meets(from, to) })
	return found, err
}
