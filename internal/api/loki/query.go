package loki

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// query serves instant queries. Lines need a range, so the query must be one for numbers.
func (h *Handler) query(r *api.Request) (*api.Response, error) {
	t, err := parseInstant(r.Form, h.o.Now().UnixNano())
	if err != nil {
		return nil, bad(err)
	}
	text := r.Form.Get("query")
	if err := r.Quota.TakeBytes(treeBytes * int64(len(text))); err != nil {
		return nil, err
	}
	p, err := logql.PrepareInstant(text)
	if err != nil {
		return nil, explain(r, err)
	}
	return h.evaluate(r, p, vector.Steps{Start: t, Count: 1}, true)
}

// tiesHeader repeats the parameter ties, which Loki does not have: of a result that the limit cuts, the lines
// of the last time are there even beyond the limit, all of them or up to so many lines together. Without it,
// lines of one time can be requested only up to the limit.
const tiesHeader = "Shale-Ties"

func parseTies(text string) (int, error) {
	if text == "all" {
		return math.MaxInt, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("ties: expected all or a number of lines, got %.200q", text)
	}
	return n, nil
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
		steps, err := w.steps()
		if err != nil {
			return nil, bad(err)
		}
		return h.evaluate(r, p, steps, false)
	case w.limit > h.o.Limits.MaxLines:
		return nil, maxEntries(w.limit, h.o.Limits.MaxLines)
	}
	ties := 0
	if text := r.Form.Get("ties"); text != "" && !isLegacy(r) {
		if ties, err = parseTies(text); err != nil {
			return nil, bad(err)
		}
		r.W.Header().Set(tiesHeader, text)
	}
	flags := encodingFlags(r.Header)
	got, err := h.o.Engine.Lines(r.Context(), &logql.Query{
		Tenants: r.Tenants, Prepared: p, Start: w.start, End: w.end, Limit: w.limit, Ties: ties, Direction: w.direction, Interval: w.interval,
		Categorize: categorizes(flags), Quota: r.Quota, Cost: r.Cost,
	})
	if err != nil {
		return nil, err
	}
	figures := newFigures(r, &got.Stats)
	if wantsProtobuf(r) {
		return protobufLines(r, got, &w, categorizes(flags), figures)
	}
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
		p, err := logql.Prepare(text)
		return p, explain(r, err)
	}
	p, err := logql.PrepareMatching(text, regexp)
	if errors.Is(err, logql.ErrMetric) {
		err = badText(textOnlyLines)
	}
	return p, explain(r, err)
}

// explain adds a hint to the error about a missing query if the request has a body that is not a form. Loki
// ignores such a body, too.
func explain(r *api.Request, err error) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil || r.Form.Has("query") || r.Method != http.MethodPost || r.ContentLength == 0 ||
		kind == "application/x-www-form-urlencoded" || kind == "multipart/form-data" {
		return err
	}
	return fmt.Errorf("%w; the body, of Content-Type %.100q, is not a form: send query=... as application/x-www-form-urlencoded", err, kind)
}
