package loki

import (
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// patterns returns the patterns of the selected lines, with their numbers of lines in each step.
func (h *Handler) patterns(r *api.Request) (*api.Response, error) {
	start, end, err := bounds(r.Form, h.o.Now().UnixNano())
	if err != nil {
		return nil, bad(err)
	}
	if end < start {
		return nil, bad(errEndBeforeStart)
	}
	step, err := stepParam(r.Form, start, end)
	if err != nil {
		return nil, bad(err)
	}
	p, err := prepare(r, "")
	if err != nil {
		return nil, err
	}
	// Loki rounds steps down to milliseconds. Here they are whole seconds.
	step = max(step, int64(time.Second))
	r.Cost.Reach.AddLists(model.Logs) // the sample follows how lines lie in parts
	found, err := h.o.Engine.Patterns(r.Context(), &logql.PatternQuery{
		Tenants: r.Tenants, Prepared: p, Start: start, End: end, Step: step, Quota: r.Quota, Cost: r.Cost,
	})
	if err != nil {
		return nil, err
	}
	return response(func(b *api.Body) {
		b.Raw(`{"status":"success","data":[`)
		for i := range found {
			if i > 0 {
				b.Raw(",")
			}
			b.Raw(`{"pattern":`)
			b.Str(found[i].Pattern)
			b.Raw(`,"level":`)
			b.Str(found[i].Level)
			b.Raw(`,"samples":[`)
			for j, s := range found[i].Samples {
				if j > 0 {
					b.Raw(",")
				}
				b.Raw("[")
				b.Buf = strconv.AppendInt(b.Buf, s.Begin, 10)
				b.Raw(",")
				b.Buf = strconv.AppendInt(b.Buf, s.Lines, 10)
				b.Raw("]")
			}
			b.Raw("]}")
			b.Spill()
		}
		b.Raw("]}\n")
	}), nil
}
