package prom

import (
	"context"
	"slices"
	"strings"

	common "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/shaledb/shale/internal/api"
)

// selection holds the parameters that requests for series and for labels share.
type selection struct {
	limit      int
	start, end int64 // Unix milliseconds
	sets       [][]*labels.Matcher
}

// selection reads the parameters. Upstream names match[] in an error only where it is mandatory; matchError
// is that prefix.
func (h *Handler) selection(r *api.Request, matchError string) (s selection, err error) {
	limit, bad := limitParam(r.Form)
	if bad != nil {
		return s, bad
	}
	start, bad := timeParam(r.Form, "start", minTime)
	if bad != nil {
		return s, bad
	}
	end, bad := timeParam(r.Form, "end", maxTime)
	if bad != nil {
		return s, bad
	}
	sets, err := h.matcherSets(r, func(err error) *api.Error { return badData("%s%w", matchError, err) })
	if err != nil {
		return s, err
	}
	return selection{limit: limit, start: timestamp.FromTime(start), end: timestamp.FromTime(end), sets: sets}, nil
}

// series returns the label sets of the series that match any of the selectors.
func (h *Handler) series(r *api.Request) (*api.Response, error) {
	if len(r.Form["match[]"]) == 0 {
		return nil, badData("no match[] parameter provided")
	}
	sel, err := h.selection(r, `invalid parameter "match[]": `)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	q, err := h.store(r).Querier(sel.start, sel.end)
	if err != nil {
		return nil, err
	}
	found, warnings, err := walkSeries(ctx, q, &sel)
	// The labels are copies, so the result does not refer to the querier.
	if closeErr := q.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	return annotated(func(b *body) { list(b, found, b.labels) }, warnings, ""), nil
}

func walkSeries(ctx context.Context, q storage.Querier, sel *selection) ([]labels.Labels, annotations.Annotations, error) {
	// "series" is not a function: it says that no samples are wanted.
	hints := &storage.SelectHints{Start: sel.start, End: sel.end, Func: "series", Limit: oneMore(sel.limit)}
	var set storage.SeriesSet
	if len(sel.sets) == 1 {
		set = q.Select(ctx, false, hints, sel.sets[0]...)
	} else {
		var sets []storage.SeriesSet
		for _, ms := range sel.sets {
			// Sorted, so that a series that several selectors match comes once.
			sets = append(sets, q.Select(ctx, true, hints, ms...))
		}
		set = storage.NewMergeSeriesSet(sets, 0, storage.ChainedSeriesMerge)
	}
	var found []labels.Labels
	var warnings annotations.Annotations
	for set.Next() {
		if sel.limit > 0 && len(found) == sel.limit {
			warnings.Add(errTruncated)
			return found, warnings, nil
		}
		found = append(found, set.At().Labels())
	}
	return found, warnings.Merge(set.Warnings()), set.Err()
}

func (h *Handler) labelNames(r *api.Request) (*api.Response, error) {
	return h.strings(r, storage.Querier.LabelNames)
}

func (h *Handler) labelValues(r *api.Request) (*api.Response, error) {
	name := r.PathValue("name")
	if strings.HasPrefix(name, "U__") {
		name = common.UnescapeName(name, common.ValueEncodingEscaping)
	}
	if !common.UTF8Validation.IsValidLabelName(name) {
		return nil, badData("invalid label name: %.200q", name)
	}
	return h.strings(r, func(q storage.Querier, ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
		return q.LabelValues(ctx, name, hints, ms...)
	})
}

// strings returns the sorted union of the lists of all selectors. Without a selector, nothing is filtered.
func (h *Handler) strings(r *api.Request,
	list func(storage.Querier, context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error),
) (*api.Response, error) {
	sel, err := h.selection(r, "")
	if err != nil {
		return nil, err
	}
	if len(sel.sets) == 0 {
		sel.sets = [][]*labels.Matcher{nil}
	}
	ctx := r.Context()
	q, err := h.store(r).Querier(sel.start, sel.end)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	var all []string
	var warnings annotations.Annotations
	for _, ms := range sel.sets {
		got, w, err := list(q, ctx, &storage.LabelHints{Limit: oneMore(sel.limit)}, ms...)
		if err != nil {
			return nil, err
		}
		warnings.Merge(w)
		all = append(all, got...)
	}
	if len(sel.sets) > 1 {
		slices.Sort(all)
		all = slices.Compact(all)
	}
	if sel.limit > 0 && len(all) > sel.limit {
		all = all[:sel.limit]
		warnings.Add(errTruncated)
	}
	return annotated(func(b *body) { b.Texts(all) }, warnings, ""), nil
}
