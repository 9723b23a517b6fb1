package loki

import (
	"strconv"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/fields"
)

// defaultFieldLimit is how many fields, or values of one, are returned.
const defaultFieldLimit = 1000

// detectedFields returns the fields of the newest lines of a query.
func (h *Handler) detectedFields(r *api.Request) (*api.Response, error) {
	q, limit, err := h.sample(r)
	if err != nil {
		return nil, err
	}
	found, err := h.o.Engine.DetectedFields(r.Context(), q, limit)
	if err != nil {
		return nil, err
	}
	if wantsProtobuf(r) {
		return protobufFields(found, nil, limit), nil
	}
	return response(func(b *api.Body) {
		b.Raw("{")
		for i := range found {
			if i == 0 {
				b.Raw(`"fields":[`)
			} else {
				b.Raw(",")
			}
			writeField(b, &found[i])
			b.Spill()
		}
		if len(found) > 0 {
			b.Raw("],")
			writeLimit(b, limit)
		}
		b.Raw("}\n")
	}), nil
}

// detectedValues returns the values of one field of the newest lines of a query.
func (h *Handler) detectedValues(r *api.Request) (*api.Response, error) {
	q, limit, err := h.sample(r)
	if err != nil {
		return nil, err
	}
	values, err := h.o.Engine.DetectedValues(r.Context(), q, r.PathValue("name"), limit)
	if err != nil {
		return nil, err
	}
	if wantsProtobuf(r) {
		return protobufFields(nil, values, limit), nil
	}
	return response(func(b *api.Body) {
		b.Raw("{")
		if len(values) > 0 {
			writeLimit(b, limit)
			b.Raw(`,"values":`)
			b.Texts(values)
		}
		b.Raw("}\n")
	}), nil
}

func writeLimit(b *api.Body, limit int) {
	b.Raw(`"limit":`)
	b.Buf = strconv.AppendInt(b.Buf, int64(limit), 10)
}

func writeField(b *api.Body, f *fields.Field) {
	b.Raw(`{"label":`)
	b.Str(f.Name)
	b.Raw(`,"type":`)
	b.Str(string(f.Type))
	b.Raw(`,"cardinality":`)
	b.Buf = strconv.AppendInt(b.Buf, int64(f.Cardinality), 10)
	if b.Raw(`,"parsers":`); len(f.Parsers) == 0 {
		b.Raw("null")
	} else {
		b.Texts(f.Parsers)
	}
	if len(f.JSONPath) > 0 {
		b.Raw(`,"jsonPath":`)
		b.Texts(f.JSONPath)
	}
	b.Raw("}")
}

// sample returns the query for the newest lines that a request wants to know the fields of, and the limit of
// the result. It reads parameters in Loki's order.
func (h *Handler) sample(r *api.Request) (*logql.Query, int, error) {
	start, end, err := bounds(r.Form, h.o.Now().UnixNano())
	if err != nil {
		return nil, 0, bad(err)
	}
	if end < start {
		return nil, 0, bad(errEndBeforeStart)
	}
	// Which lines of one time are looked at follows how they lie in parts.
	r.Cost.Reach.AddLists(model.Logs)
	lines, err := positive(r.Form, "line_limit", defaultLimit)
	if err != nil {
		return nil, 0, bad(err)
	}
	name := "limit"
	if r.Form.Get(name) == "" {
		name = "field_limit" // the name that it had before
	}
	limit, err := positive(r.Form, name, defaultFieldLimit)
	if err != nil {
		return nil, 0, bad(err)
	}
	if _, err := stepParam(r.Form, start, end); err != nil {
		return nil, 0, bad(err)
	}
	p, err := prepare(r, "")
	switch {
	case err != nil:
		return nil, 0, err
	case !p.WantsLines():
		return nil, 0, badText(textOnlyLines)
	case lines > h.o.Limits.MaxLines:
		return nil, 0, maxEntries(lines, h.o.Limits.MaxLines)
	}
	return &logql.Query{Tenants: r.Tenants, Prepared: p, Start: start, End: end, Limit: lines, Quota: r.Quota, Cost: r.Cost}, limit, nil
}
