package loki

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/logql"
)

// healthQuery is the query by which Grafana tests a data source. It needs no store.
const healthQuery = "vector(1)+vector(1)"

// query serves instant queries. Lines need a range, so only the health query succeeds.
func (h *Handler) query(r *api.Request) (*api.Response, error) {
	if _, err := limitParam(r.Form); err != nil {
		return nil, bad(err)
	}
	at, err := timeParam(r.Form, "time", h.o.Now().UnixNano())
	if err != nil {
		return nil, bad(err)
	}
	if _, err := directionParam(r.Form); err != nil {
		return nil, bad(err)
	}
	text := r.Form.Get("query")
	if err := r.Quota.TakeBytes(treeBytes * int64(len(text))); err != nil {
		return nil, err
	}
	if _, err := logql.PrepareInstant(text); err != nil {
		return nil, err
	}
	if strings.ReplaceAll(text, " ", "") == healthQuery {
		return response(func(b *api.Body) { writeHealth(b, r, at) }), nil
	}
	return nil, logql.ErrMetric
}

// queryRange serves queries over a range. Its old path is /api/prom/query.
func (h *Handler) queryRange(r *api.Request) (*api.Response, error) {
	w, err := parseWindow(r.Form, h.o.Now().UnixNano())
	if err != nil {
		return nil, bad(err)
	}
	regexp := ""
	if isLegacy(r) {
		regexp = r.Form.Get("regexp")
	}
	p, err := prepare(r, regexp)
	switch {
	case err != nil:
		return nil, err
	case !p.WantsLines() && isLegacy(r):
		return nil, badText(textLegacy)
	case !p.WantsLines():
		return nil, logql.ErrMetric
	case w.limit > h.o.Limits.MaxLines:
		return nil, maxEntries(w.limit, h.o.Limits.MaxLines)
	}
	flags := encodingFlags(r.Header)
	got, err := h.o.Engine.Lines(r.Context(), &logql.Query{
		Tenants: r.Tenants, Prepared: p, Start: w.start, End: w.end, Limit: w.limit, Direction: w.direction, Interval: w.interval,
		Categorize: categorizes(flags), Quota: r.Quota, Cost: r.Cost,
	})
	if err != nil {
		return nil, err
	}
	figures := newFigures(r, &got.Stats)
	if isLegacy(r) {
		return response(func(b *api.Body) { writeLegacyLines(b, got.Streams, flags, figures) }), nil
	}
	return response(func(b *api.Body) { writeLines(b, got.Streams, flags, figures) }), nil
}

// maxEntries refuses a limit, in Loki's words.
func maxEntries(limit, most int) *api.Error {
	return bad(fmt.Errorf("max entries limit per query exceeded, limit > max_entries_limit_per_query (%d > %d)", limit, most))
}

// treeBytes is the memory of a syntax tree for each byte of its text.
const treeBytes = 64

// prepare parses and compiles the query of a request, with a line filter by the regular expression if there
// is one. It charges the syntax tree before the text is parsed.
func prepare(r *api.Request, regexp string) (*logql.Prepared, error) {
	text := r.Form.Get("query")
	if err := r.Quota.TakeBytes(treeBytes * int64(len(text)+len(regexp))); err != nil {
		return nil, err
	}
	if regexp == "" {
		return logql.Prepare(text)
	}
	p, err := logql.PrepareMatching(text, regexp)
	if errors.Is(err, logql.ErrMetric) {
		err = badText(textOnlyLines)
	}
	return p, err
}
