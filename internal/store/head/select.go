package head

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// Source returns the head as queries see it, through a cache of the pages of its parts; nil means no cache.
func (h *Head) Source(pages part.Cache) *Source { return newSource(h, pages) }

// Pin seals the buffers and takes references to everything that holds data of a signal. The caller releases the view.
func (h *Head) Pin(s model.Signal) *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.buffers.sealRows()
	v := h.pinLabelsLocked(s)
	v.runs = h.mu.buffers.runs[s]
	v.dataParts = h.pinPartsLocked(func(i *partInfo) bool { return i.Signal == s && i.Kind == dataPart })
	return v
}

// PinLabels is Pin for label parts and label runs alone.
func (h *Head) PinLabels(s model.Signal) *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pinLabelsLocked(s)
}

func (h *Head) pinLabelsLocked(s model.Signal) *view {
	h.mu.buffers.sealLabels()
	return &view{
		labelRuns:  h.mu.buffers.labelRuns[s],
		labelParts: h.pinPartsLocked(func(i *partInfo) bool { return i.Signal == s && i.Kind == labelPart }),
		seed:       h.o.Seed,
	}
}

// pinPartsLocked returns the parts that want accepts, each with a reference that the caller gives up.
func (h *Head) pinPartsLocked(want func(*partInfo) bool) []*localPart {
	var pinned []*localPart
	for _, p := range h.mu.parts {
		if want(&p.info) {
			p.pin()
			pinned = append(pinned, p)
		}
	}
	return pinned
}
