package loki

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// maxSelectors bounds match: each selector is a query of its own.
const maxSelectors = 256

// selection reads the range of a request for streams. Its end is inclusive, unlike that of a query for lines.
func (h *Handler) selection(r *api.Request) (*logql.Selection, error) {
	start, end, err := bounds(r.Form, h.o.Now().UnixNano())
	switch {
	case err != nil:
		return nil, bad(err)
	case end < start:
		return nil, bad(errEndBeforeStart)
	}
	return &logql.Selection{Tenants: r.Tenants, Range: model.TimeRange{Min: start, Max: end}, Quota: r.Quota, Cost: r.Cost}, nil
}

// selector adds the selector of the optional parameter query.
func (h *Handler) selector(r *api.Request, s *logql.Selection) error {
	text := r.Form.Get("query")
	if text == "" {
		return nil
	}
	sel, err := parseSelector(r, text)
	s.Selectors = []logql.Selector{sel}
	return err
}

// parseSelector parses a selector. It charges the syntax tree before the text is parsed.
func parseSelector(r *api.Request, text string) (logql.Selector, error) {
	if err := r.Quota.TakeBytes(treeBytes * int64(len(text))); err != nil {
		return logql.Selector{}, err
	}
	return logql.ParseSelector(text)
}

func (h *Handler) labelNames(r *api.Request) (*api.Response, error) {
	return h.strings(r, func(s *logql.Selection) ([]string, error) { return h.o.Engine.LabelNames(r.Context(), s) })
}

func (h *Handler) labelValues(r *api.Request) (*api.Response, error) {
	name := r.PathValue("name")
	return h.strings(r, func(s *logql.Selection) ([]string, error) { return h.o.Engine.LabelValues(r.Context(), s, name) })
}

// strings returns a list of strings.
func (h *Handler) strings(r *api.Request, list func(*logql.Selection) ([]string, error)) (*api.Response, error) {
	s, err := h.selection(r)
	if err != nil {
		return nil, err
	}
	if err := h.selector(r, s); err != nil {
		return nil, err
	}
	all, err := list(s)
	if err != nil {
		return nil, err
	}
	if wantsProtobuf(r) {
		return protobufTexts(r, all)
	}
	return response(func(b *api.Body) {
		b.Raw(`{"status":"success"`)
		// Loki leaves out an empty list.
		if len(all) > 0 {
			b.Raw(`,"data":`)
			b.Texts(all)
		}
		b.Raw("}\n")
	}), nil
}

// isEmpty reports whether a text is the empty selector.
func isEmpty(text string) bool { return strings.ReplaceAll(text, " ", "") == "{}" }

// series returns the label sets of the streams that match any of the selectors.
func (h *Handler) series(r *api.Request) (*api.Response, error) {
	s, err := h.selection(r)
	if err != nil {
		return nil, err
	}
	texts := slices.Concat(r.Form["match"], r.Form["match[]"])
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if n := len(texts); n > maxSelectors {
		return nil, bad(fmt.Errorf("%d selectors; at most %d are allowed", n, maxSelectors))
	}
	// A single empty selector means all streams, and so does the absence of selectors.
	if len(texts) == 1 && isEmpty(texts[0]) {
		texts = nil
	}
	for _, text := range texts {
		if isEmpty(text) {
			return nil, bad(fmt.Errorf("0 matchers in group: %s", text))
		}
		sel, err := parseSelector(r, text)
		if err != nil {
			return nil, err
		}
		s.Selectors = append(s.Selectors, sel)
	}
	found, err := h.o.Engine.Series(r.Context(), s)
	if err != nil {
		return nil, err
	}
	if wantsProtobuf(r) {
		return protobufSeries(r, found)
	}
	return response(func(b *api.Body) {
		b.Raw(`{"status":"success","data":[`)
		for i, l := range found {
			if i > 0 {
				b.Raw(",")
			}
			writeLabels(b, l)
			b.Spill()
		}
		b.Raw("]}\n")
	}), nil
}

// indexStats counts the streams that a selector selects, with their chunks, bytes and lines.
func (h *Handler) indexStats(r *api.Request) (*api.Response, error) {
	w, err := parseWindow(r.Form, h.o.Now().UnixNano())
	if err != nil {
		return nil, bad(err)
	}
	sel, err := parseSelector(r, r.Form.Get("query"))
	if err != nil {
		return nil, err
	}
	r.Cost.Reach.AddLists(model.Logs) // chunks are counted as they lie in parts
	v, err := h.o.Engine.Volume(r.Context(), &logql.Selection{
		Tenants: r.Tenants, Selectors: []logql.Selector{sel}, Range: model.TimeRange{Min: w.start, Max: w.end}, Quota: r.Quota, Cost: r.Cost,
	})
	if err != nil {
		return nil, err
	}
	counts := []member{{"streams", int64(v.Streams)}, {"chunks", int64(v.Chunks)}, {"bytes", int64(v.Bytes)}, {"entries", int64(v.Lines)}}
	if wantsProtobuf(r) {
		return protobufStats(counts), nil
	}
	return response(func(b *api.Body) {
		writeObject(b, counts)
		b.Raw("\n")
	}), nil
}
