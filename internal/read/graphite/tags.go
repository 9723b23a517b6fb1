package graphite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/graphite/function"
)

// TagQuery asks for the tags of series that have any besides their names.
type TagQuery struct {
	Tenant string
	Range  model.TimeRange
	// Expressions are those of seriesByTag, which series must satisfy; none: all do.
	Expressions []string
	// Prefix is the beginning of the wanted texts, and Filter a regular expression that matches at their
	// beginning. Empty: all are wanted.
	Prefix, Filter string
	// Limit is the most texts that are wanted; 0: all.
	Limit int
	Quota *model.Quota
	Cost  *model.Cost
}

// CountedValue is the value of a tag, and the number of series that have it.
type CountedValue struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// TaggedSeries returns the sorted paths of the series that satisfy the expressions.
func (e *Engine) TaggedSeries(ctx context.Context, q *TagQuery) ([]string, error) {
	paths := []string{}
	err := e.eachTagged(ctx, q, q.Expressions, func(path string, _ map[string]string) error {
		paths = append(paths, path)
		return q.Quota.TakeBytes(int64(len(path)) + 16)
	})
	slices.Sort(paths)
	return slices.Compact(paths), err
}

// TagNames returns the sorted tags of the series that satisfy the expressions, without those in the
// expressions.
func (e *Engine) TagNames(ctx context.Context, q *TagQuery) ([]string, error) {
	found := make(map[string]struct{})
	if len(q.Expressions) == 0 {
		labels, _, err := e.o.Read.LabelNames(ctx, q.request(nil), 0)
		if err != nil {
			return nil, err
		}
		for _, l := range labels {
			found[tagOf(l)] = struct{}{}
		}
		if len(found) == 1 { // all series have a name and nothing else
			clear(found)
		}
		return q.chosen(found)
	}
	err := e.eachTagged(ctx, q, q.Expressions, func(_ string, tags map[string]string) error {
		for t := range tags {
			found[t] = struct{}{}
		}
		return nil
	})
	for _, x := range q.Expressions {
		delete(found, x[:max(0, strings.IndexAny(x, "=!"))])
	}
	if err != nil {
		return nil, err
	}
	return q.chosen(found)
}

// TagValues returns the sorted values of a tag among the series that satisfy the expressions.
func (e *Engine) TagValues(ctx context.Context, q *TagQuery, tag string) ([]string, error) {
	counts, err := e.countValues(ctx, q, tag)
	if err != nil {
		return nil, err
	}
	found := make(map[string]struct{}, len(counts))
	for v := range counts {
		found[v] = struct{}{}
	}
	return q.chosen(found)
}

// CountedTagValues returns the sorted values of a tag with the number of series of each.
func (e *Engine) CountedTagValues(ctx context.Context, q *TagQuery, tag string) ([]CountedValue, error) {
	counts, err := e.countValues(ctx, q, tag)
	if err != nil {
		return nil, err
	}
	found := make(map[string]struct{}, len(counts))
	for v := range counts {
		found[v] = struct{}{}
	}
	values, err := q.chosen(found)
	out := make([]CountedValue, 0, len(values))
	for _, v := range values {
		out = append(out, CountedValue{v, counts[v]})
	}
	return out, err
}

func (e *Engine) countValues(ctx context.Context, q *TagQuery, tag string) (map[string]int, error) {
	counts := make(map[string]int)
	err := e.eachTagged(ctx, q, append(slices.Clone(q.Expressions), tag+"!="), func(_ string, tags map[string]string) error {
		v := tags[tag]
		if _, known := counts[v]; !known {
			if err := q.Quota.TakeBytes(int64(len(v)) + 64); err != nil {
				return err
			}
		}
		counts[v]++
		return nil
	})
	return counts, err
}

// chosen returns the wanted texts in order.
func (q *TagQuery) chosen(found map[string]struct{}) ([]string, error) {
	all := slices.Sorted(maps.Keys(found))
	if q.Filter != "" {
		text := q.Filter
		if !strings.HasPrefix(text, "^") {
			text = "^(?:" + text + ")"
		}
		re, err := function.CompileRegexp(text)
		if err != nil {
			return nil, fmt.Errorf("%w: filter %q: %w", model.ErrInvalid, q.Filter, err)
		}
		all = slices.DeleteFunc(all, func(s string) bool {
			found, err := re.Search(s)
			return err != nil || !found
		})
		if err := re.Err(); err != nil {
			return nil, err
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, q.Prefix) })
	if q.Limit > 0 {
		all = all[:min(len(all), q.Limit)]
	}
	return append([]string{}, all...), nil
}

func (q *TagQuery) request(ms []model.Matcher) *model.Request {
	return &model.Request{
		Tenant: q.Tenant, Signal: model.Metrics, Matchers: ms, Range: q.Range, LabelsOnly: true, Quota: q.Quota, Cost: q.Cost,
	}
}

// eachTagged calls f with the path and the tags of each series that satisfies expressions.
func (e *Engine) eachTagged(ctx context.Context, q *TagQuery, expressions []string, f func(path string, tags map[string]string) error) error {
	ms, late, err := tagMatchers(expressions)
	if err != nil {
		return err
	}
	set, err := e.o.Read.Select(ctx, q.request(ms))
	if err != nil {
		return err
	}
	defer set.Close()
	if err := eachOf(ctx, set, q.Quota, f); err != nil {
		return err
	}
	return late()
}

func eachOf(ctx context.Context, set *read.SeriesSet, quota *model.Quota, f func(path string, tags map[string]string) error) error {
	for set.Next(ctx) {
		if l := set.Labels(); l.Len() > 1 {
			if err := f(nameOf(l)); err != nil {
				return err
			}
		}
		if err := quota.TakeBytes(-set.Charged()); err != nil {
			return err
		}
	}
	return set.Err()
}

// tagOf returns the tag of a label.
func tagOf(label string) string {
	switch label {
	case nameLabel:
		return "name"
	case "name":
		return "exported_name"
	}
	return label
}
