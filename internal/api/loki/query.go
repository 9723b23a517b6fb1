package loki

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/logql"
)

// Grafana asks this to see whether a data source works. It needs no store.
const healthQuery = "vector(1)+vector(1)"

// query answers a query at one instant, which lines do not have.
func (h *Handler) query(_ http.ResponseWriter, r *request) (*answer, error) {
	if _, err := limitParam(r.form); err != nil {
		return nil, bad(err)
	}
	at, err := timeParam(r.form, "time", h.o.Now().UnixNano())
	if err != nil {
		return nil, bad(err)
	}
	if _, err := directionParam(r.form); err != nil {
		return nil, bad(err)
	}
	switch lines, err := h.isLines(r, r.form.Get("query")); {
	case lines: // also if its stages cannot be carried out
		return nil, logql.ErrInstant
	case err != nil:
		return nil, err
	}
	if strings.ReplaceAll(r.form.Get("query"), " ", "") == healthQuery {
		return &answer{write: func(b *api.Body) { writeHealth(b, r, at) }}, nil
	}
	return nil, logql.ErrMetric
}

// queryRange answers a query over a range; of the old paths, /api/prom/query.
func (h *Handler) queryRange(_ http.ResponseWriter, r *request) (*answer, error) {
	w, err := parseWindow(r.form, h.o.Now().UnixNano())
	if err != nil {
		return nil, bad(err)
	}
	text := r.form.Get("query")
	if r.legacy {
		if text, err = h.withRegexp(r, text); err != nil {
			return nil, err
		}
	}
	lines, err := h.isLines(r, text)
	switch {
	case err != nil:
		return nil, err
	case !lines && r.legacy:
		return nil, badText(textLegacy)
	case !lines:
		return nil, logql.ErrMetric
	case w.limit > h.o.Limits.MaxEntries:
		return nil, maxEntries(w.limit, h.o.Limits.MaxEntries)
	}
	flags := encodingFlags(r.Header)
	got, err := h.o.Engine.Lines(r.ctx, &logql.Query{
		Tenants: r.tenants, Text: text, Start: w.start, End: w.end, Limit: w.limit, Direction: w.direction, Interval: w.interval,
		Categorize: categorizes(flags), Quota: r.quota, Cost: r.cost,
	})
	if err != nil {
		return nil, err
	}
	figures := newFigures(r, &got.Stats)
	if r.legacy {
		return &answer{write: func(b *api.Body) { writeLegacyLines(b, got.Streams, flags, figures) }}, nil
	}
	return &answer{write: func(b *api.Body) { writeLines(b, got.Streams, flags, figures) }}, nil
}

// maxEntries refuses a limit, in Loki's words.
func maxEntries(limit, most int) *apiError {
	return bad(fmt.Errorf("max entries limit per query exceeded, limit > max_entries_limit_per_query (%d > %d)", limit, most))
}

// treeBytes is the memory of the tree of an expression, for each byte of its text.
const treeBytes = 64

// isLines reports whether a query asks for lines. Its tree is charged before it is made.
func (h *Handler) isLines(r *request, text string) (bool, error) {
	if err := r.quota.TakeBytes(treeBytes * int64(len(text))); err != nil {
		return false, err
	}
	return h.o.Engine.IsLines(text)
}

// withRegexp adds the filter of the parameter regexp, which the old paths have.
func (h *Handler) withRegexp(r *request, text string) (string, error) {
	re := r.form.Get("regexp")
	if re == "" {
		return text, nil
	}
	if err := r.quota.TakeBytes(treeBytes * int64(len(text)+len(re))); err != nil {
		return "", err
	}
	text, err := h.o.Engine.WithRegexp(text, re)
	if errors.Is(err, logql.ErrMetric) {
		err = badText(textOnlyLines)
	}
	return text, err
}
