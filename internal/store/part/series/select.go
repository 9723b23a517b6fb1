package series

import (
	"context"
	"slices"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Select returns the ranks of the tenant's series that satisfy all matchers, as PromQL means them: a label
// that is absent has the value "". Without matchers it returns all.
//
// If charge is not nil, Select asks it before it takes memory that grows with the series. It leaves
// [RankBytes] charged for each rank that it returns. An error of charge ends it and is returned.
func Select(ctx context.Context, r *file.Reader, tenant string, ms []model.Matcher, charge func(bytes int64) error) (file.Ranks, error) {
	var ranks file.Ranks
	err := withRuns(ctx, r, tenant, ms, charge, func(t *file.Tenant, runs rankRuns) error {
		if charge != nil {
			if err := charge(RankBytes * int64(runs.count())); err != nil {
				return err
			}
		}
		ranks = runs.ranks(t.Rank0)
		return nil
	})
	return ranks, err
}

// SelectRuns is [Select] for callers that need one rank after the other. It leaves [Selection.Bytes] charged.
func SelectRuns(ctx context.Context, r *file.Reader, tenant string, ms []model.Matcher, charge func(bytes int64) error) (Selection, error) {
	var selected Selection
	err := withRuns(ctx, r, tenant, ms, charge, func(t *file.Tenant, runs rankRuns) error {
		s := Selection{t.Rank0, runs}
		if charge != nil {
			if err := charge(s.Bytes()); err != nil {
				return err
			}
		}
		selected = s
		return nil
	})
	return selected, err
}

// withRuns calls use with what the matchers select, while the memory of selecting is still charged.
func withRuns(ctx context.Context, r *file.Reader, tenant string, ms []model.Matcher, charge func(bytes int64) error, use func(*file.Tenant, rankRuns) error) error {
	t := r.Meta().Tenant(tenant)
	if t == nil {
		return nil
	}
	memory := &scratch{charge: charge}
	defer memory.release()
	runs, err := selectRuns(ctx, r, t, ms, memory)
	if err != nil {
		return err
	}
	return use(t, runs)
}

// RankBytes is the memory of a rank.
const RankBytes = 4

// selectRuns evaluates the matchers that absence does not satisfy, the cheapest first, and intersects their
// results, the smallest first. Then it removes the series with a value that another matcher refuses.
func selectRuns(ctx context.Context, r *file.Reader, t *file.Tenant, ms []model.Matcher, memory *scratch) (rankRuns, error) {
	if len(ms) > 0 && !r.Meta().Labels {
		return nil, column.Invalid("matchers asked of a part without labels")
	}
	w := newPostingWalk(ctx, r, t)
	w.memory = memory
	all := make([]selector, len(ms))
	for i := range ms {
		all[i] = selector{Matcher: &ms[i], match: matchOf(&ms[i])}
	}
	if err := w.prefetch(all); err != nil {
		return nil, err
	}
	var known []rankRuns
	var scans, refusals []selector
	for _, s := range all {
		switch values, ok := s.values(); {
		case s.match(""):
			refusals = append(refusals, s)
		case !ok:
			scans = append(scans, s)
		default:
			runs, err := s.union(w, values)
			if err != nil || len(runs) == 0 {
				return nil, err
			}
			known = append(known, runs)
		}
	}
	slices.SortFunc(known, func(a, b rankRuns) int { return a.count() - b.count() })
	result := rankRuns{{0, t.Series}}
	for _, runs := range known {
		result = result.intersect(runs)
	}
	if rest := append(scans, refusals...); len(rest) > 0 && len(known) > 0 && len(result) > 0 {
		few, err := worthFiltering(ctx, r, t, w, result, rest)
		if err != nil {
			return nil, err
		}
		if few {
			return filterByLabels(ctx, r, t, result, rest, memory)
		}
	}
	return scanAndRefuse(w, result, scans, refusals)
}

// scanAndRefuse narrows the result down by the matchers that have to look at many values, and by those that
// absence satisfies.
func scanAndRefuse(w *postingWalk, result rankRuns, scans, refusals []selector) (rankRuns, error) {
	// Those with a literal prefix look at fewer values.
	slices.SortStableFunc(scans, func(a, b selector) int { return len(b.Prefix) - len(a.Prefix) })
	for _, s := range scans {
		if len(result) == 0 {
			return nil, nil
		}
		runs, err := s.scanned(w, true)
		if err != nil {
			return nil, err
		}
		result = result.intersect(runs)
	}
	for _, s := range refusals {
		if len(result) == 0 {
			return nil, nil
		}
		runs, err := s.refused(w)
		if err != nil {
			return nil, err
		}
		result = result.subtract(runs)
	}
	return result, nil
}

// selector is a matcher with its state during a selection.
type selector struct {
	*model.Matcher
	match func(string) bool
}

func matchOf(m *model.Matcher) func(string) bool {
	switch {
	case m.Match != nil:
		return m.Match
	case m.Op == model.MatchNotEqual:
		return func(v string) bool { return v != m.Value }
	}
	return func(v string) bool { return v == m.Value }
}

// values lists the only values, none of them empty, that can satisfy the matcher, if they are known. It is
// meant for matchers that absence does not satisfy.
func (s *selector) values() ([]string, bool) {
	switch {
	case s.Op == model.MatchEqual:
		return []string{s.Value}, true
	case s.Op == model.MatchRegexp && len(s.Set) > 0:
		return s.Set, true
	}
	return nil, false
}

// union returns the series that have one of the values, those of them that the matcher accepts.
func (s *selector) union(w *postingWalk, values []string) (rankRuns, error) {
	return s.lists(w, values, true)
}

// lists returns the series that have one of the values, those of them that the matcher accepts, or refuses.
func (s *selector) lists(w *postingWalk, values []string, accept bool) (rankRuns, error) {
	want := make([]string, 0, len(values))
	for _, v := range values {
		if v != "" && s.match(v) == accept {
			want = append(want, v)
		}
	}
	slices.Sort(want)
	u := rankUnion{series: w.series, memory: w.memory}
	if err := w.lists([]byte(s.Name), want, &u); err != nil {
		return nil, err
	}
	return u.result()
}

// scan tries every value of the label, and returns the series of those that the matcher accepts, or refuses.
// The matcher gets a view of the value, since copying a million values costs more than matching them: see
// BenchmarkSelect of package part.
func (s *selector) scan(w *postingWalk, accept bool) (rankRuns, error) {
	u := rankUnion{series: w.series, memory: w.memory}
	prefix := s.scanPrefix(accept)
	var last []byte
	verdict, any := false, false
	err := w.values([]byte(s.Name), []byte(prefix), func() error {
		// A long list is several entries of one value.
		if !any || string(last) != string(w.dir.value) {
			last, any = append(last[:0], w.dir.value...), true
			verdict = s.match(unsafe.String(unsafe.SliceData(last), len(last))) == accept
		}
		if !verdict {
			return nil
		}
		return w.ranks(&u)
	})
	if err != nil {
		return nil, err
	}
	return u.result()
}

// refused returns the series with a value that the matcher, which absence satisfies, does not accept.
func (s *selector) refused(w *postingWalk) (rankRuns, error) {
	values := s.refusedValues()
	if values == nil {
		return s.scanned(w, false)
	}
	return s.lists(w, values, false)
}

// refusedValues lists the only values that the matcher, which absence satisfies, may refuse, or nil if they
// are not known.
func (s *selector) refusedValues() []string {
	switch {
	case s.Op == model.MatchNotEqual:
		return []string{s.Value}
	case s.Op == model.MatchNotRegexp && len(s.Set) > 0:
		return s.Set
	}
	return nil
}

// scanPrefix returns the common prefix of the values that a scan has to try.
func (s *selector) scanPrefix(accept bool) string {
	if accept && s.Op == model.MatchRegexp {
		return s.Prefix
	}
	return ""
}

func satisfiesAll(l model.Labels, all []selector) bool {
	for i := range all {
		if !all[i].match(string(l.Get(all[i].Name))) {
			return false
		}
	}
	return true
}
