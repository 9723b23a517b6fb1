package prom

import (
	"fmt"
	"net/http"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/api"
)

// queryExemplars returns the exemplars of the series that an expression selects.
func (h *Handler) queryExemplars(r *api.Request) (*api.Response, error) {
	start, bad := timeParam(r.Form, "start", minTime)
	if bad != nil {
		return nil, bad
	}
	end, bad := timeParam(r.Form, "end", maxTime)
	if bad != nil {
		return nil, bad
	}
	if end.Before(start) {
		return nil, badData("end timestamp must not be before start timestamp")
	}
	expr, err := h.parse(r, plainBad)
	if err != nil {
		return nil, err
	}
	selectors := parser.ExtractSelectors(expr)
	switch {
	case len(selectors) == 0:
		return &api.Response{Status: http.StatusNoContent}, nil
	case len(selectors) > maxSelectors:
		return nil, badData("%d selectors; at most %d are allowed", len(selectors), maxSelectors)
	case h.o.Exemplars == nil:
		return constant(`[]`)(r)
	}
	ctx := r.Context()
	q, err := h.o.Exemplars(r.Tenant(), r.Quota, r.Cost).ExemplarQuerier(ctx)
	if err != nil {
		return nil, err
	}
	found, err := q.Select(timestamp.FromTime(start), timestamp.FromTime(end), selectors...)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("exemplars: %w", err)
	}
	return success(func(b *body) { b.exemplars(found) }), nil
}

func (b *body) exemplars(found []exemplar.QueryResult) {
	list(b, found, func(s exemplar.QueryResult) {
		b.Raw(`{"seriesLabels":`)
		b.labels(s.SeriesLabels)
		b.Raw(`,"exemplars":`)
		list(b, s.Exemplars, func(e exemplar.Exemplar) {
			b.Raw(`{"labels":`)
			b.labels(e.Labels)
			b.Raw(`,"value":`)
			b.float(e.Value)
			b.Raw(`,"timestamp":`)
			b.time(e.Ts)
			b.Raw("}")
		})
		b.Raw("}")
	})
}
