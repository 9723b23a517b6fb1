package prom

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// metadataBytes is the memory of one entry without its texts.
const metadataBytes = 64

// familyMetadata is one entry of the metadata of a metric family.
type familyMetadata struct {
	family string
	model.Metadata
}

// numberParam reads a limit of metadata. A negative one means no limit.
func numberParam(form url.Values, name string) (int, error) {
	s := form.Get(name)
	if s == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, badData("%s must be a number", name)
	}
	return n, nil
}

// metadata returns type, help and unit of metric families, sorted by name before the limit applies.
func (h *Handler) metadata(r *api.Request) (*api.Response, error) {
	limit, err := numberParam(r.Form, "limit")
	if err != nil {
		return nil, err
	}
	perFamily, err := numberParam(r.Form, "limit_per_metric")
	if err != nil {
		return nil, err
	}
	known, err := h.knownMetadata(r)
	if err != nil {
		return nil, err
	}
	return success(func(b *body) {
		b.Raw("{")
		for families := 0; len(known) > 0 && (limit < 0 || families < limit); families++ {
			n := 1
			for n < len(known) && known[n].family == known[0].family {
				n++
			}
			if families > 0 {
				b.Raw(",")
			}
			b.familyMetadata(known[:n], perFamily)
			known = known[n:]
			b.Spill()
		}
		b.Raw("}")
	}), nil
}

// familyMetadata writes the member of one family.
func (b *body) familyMetadata(lines []familyMetadata, limit int) {
	b.Str(lines[0].family)
	b.Raw(":")
	if limit > 0 {
		lines = lines[:min(limit, len(lines))]
	}
	list(b, lines, func(m familyMetadata) {
		b.Raw(`{"type":`)
		b.Str(m.Type)
		b.Raw(`,"unit":`)
		b.Str(m.Unit)
		b.Raw(`,"help":`)
		b.Str(m.Help)
		b.Raw("}")
	})
}

// knownMetadata returns the metadata that the request asks for, sorted and unique.
func (h *Handler) knownMetadata(r *api.Request) ([]familyMetadata, error) {
	if h.o.Metadata == nil {
		return nil, nil
	}
	var known []familyMetadata
	var refused error
	metric := r.Form.Get("metric")
	err := h.o.Metadata(r.Tenant(), metric, r.Cost, func(family string, m model.Metadata) bool {
		if refused = r.Context().Err(); refused == nil {
			refused = r.Quota.TakeBytes(metadataBytes + int64(len(family)+len(m.Type)+len(m.Help)+len(m.Unit)))
		}
		if refused != nil {
			return false
		}
		if metric == "" || metric == family {
			known = append(known, familyMetadata{family, m})
		}
		return true
	})
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(known, func(a, b familyMetadata) int {
		if c := strings.Compare(a.family, b.family); c != 0 {
			return c
		}
		if c := strings.Compare(a.Type, b.Type); c != 0 {
			return c
		}
		if c := strings.Compare(a.Unit, b.Unit); c != 0 {
			return c
		}
		return strings.Compare(a.Help, b.Help)
	})
	return slices.Compact(known), nil
}
