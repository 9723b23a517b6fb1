package loki

import (
	"strconv"

	"github.com/shaledb/shale/internal/api"
)

// detectedLabels returns the labels that people browse by, with the number of their values.
func (h *Handler) detectedLabels(r *api.Request) (*api.Response, error) {
	s, err := h.selection(r)
	if err != nil {
		return nil, err
	}
	if err := h.selector(r, s); err != nil {
		return nil, err
	}
	found, err := h.o.Engine.DetectedLabels(r.Context(), s)
	if err != nil {
		return nil, err
	}
	if wantsProtobuf(r) {
		return protobufDetectedLabels(found), nil
	}
	return response(func(b *api.Body) {
		b.Raw("{")
		for i, l := range found {
			if i == 0 {
				b.Raw(`"detectedLabels":[`)
			} else {
				b.Raw(",")
			}
			b.Raw(`{"label":`)
			b.Str(l.Name)
			b.Raw(`,"cardinality":`)
			b.Buf = strconv.AppendInt(b.Buf, int64(l.Cardinality), 10)
			b.Raw("}")
		}
		// Loki leaves out an empty list.
		if len(found) > 0 {
			b.Raw("]")
		}
		b.Raw("}\n")
	}), nil
}
