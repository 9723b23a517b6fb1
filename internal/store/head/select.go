package head

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/query"
	"github.com/shaledb/shale/internal/store/part"
)

// Source returns the head as queries see it, through a cache of the pages of its parts; nil means no cache.
func (h *Head) Source(pages part.Cache) *query.Source { return query.NewSource(h, pages) }

// Pin seals the buffers and takes references to everything that holds data of a signal. The caller releases
// the view.
func (h *Head) Pin(s model.Signal) *query.View {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.buffers.sealRows()
	v := h.pinLabelsLocked(s)
	v.Runs = h.mu.buffers.runs[s]
	v.DataParts = h.pinPartsLocked(func(i *local.Info) bool { return i.Signal == s && i.Kind == local.Data })
	return v
}

// PinLabels is Pin for label parts and label runs alone.
func (h *Head) PinLabels(s model.Signal) *query.View {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pinLabelsLocked(s)
}

func (h *Head) pinLabelsLocked(s model.Signal) *query.View {
	h.mu.buffers.sealLabels()
	return &query.View{
		LabelRuns:  h.mu.buffers.labelRuns[s],
		LabelParts: h.pinPartsLocked(func(i *local.Info) bool { return i.Signal == s && i.Kind == local.Labels }),
		Fences:     h.viewFencesLocked(s),
		Seed:       h.o.Seed,
	}
}

// pinPartsLocked returns the parts that want accepts, each with a reference that the caller gives up.
func (h *Head) pinPartsLocked(want func(*local.Info) bool) []*local.Part {
	var pinned []*local.Part
	for _, p := range h.mu.parts {
		if want(&p.Info) {
			p.Pin()
			pinned = append(pinned, p)
		}
	}
	return pinned
}
