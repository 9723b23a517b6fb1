package head

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/query"
	"github.com/shaledb/shale/internal/store/head/rows"
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
	v.DataParts = h.withLingeringLocked(s, h.pinPartsLocked(func(i *local.Info) bool { return i.Signal == s && i.Kind == local.Data }))
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
		LabelsLost: h.o.LabelsLost(),
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

// appliedLocked notes that queries see everything up to a sequence number.
func (h *Head) appliedLocked(seq uint64) {
	h.mu.applied = seq
	if h.mu.awaiting > 0 {
		h.mu.room.Broadcast()
	}
}

// Applied returns the sequence number up to which queries see everything.
func (h *Head) Applied() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.applied
}

// AwaitApplied waits until queries see everything up to a sequence number.
func (h *Head) AwaitApplied(ctx context.Context, seq uint64) error {
	defer context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.mu.room.Broadcast()
	})()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.awaiting++
	defer func() { h.mu.awaiting-- }()
	for h.mu.applied < seq {
		if h.mu.shut {
			return fmt.Errorf("%w: the head", model.ErrClosed)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		h.mu.room.Wait()
	}
	return nil
}

// SourceAfter is [Head.Source] for a query that reads rows of batches up to a sequence number elsewhere.
// Parts and runs that have no others are left out.
func (h *Head) SourceAfter(seq uint64, pages part.Cache) *query.Source {
	if seq == 0 {
		return h.Source(pages)
	}
	return h.SourceWithout(seq, nil, pages)
}

// SourceWithout is [Head.SourceAfter] with deletions that hide rows, in the order of their sequence numbers,
// besides those that the head knows itself. The head has their records, or has no rows from before them.
func (h *Head) SourceWithout(seq uint64, hide []query.Fence, pages part.Cache) *query.Source {
	return query.NewSource(&later{h, seq, hide}, pages)
}

// later pins what is not wholly at or below a sequence number.
type later struct {
	*Head
	after uint64
	hide  []query.Fence
}

// PinLabels is [Head.PinLabels].
func (l *later) PinLabels(s model.Signal) *query.View {
	v := l.Head.PinLabels(s)
	v.Fences = append(v.Fences, l.hide...)
	return v
}

// Pin is [Head.Pin] without older rows.
func (l *later) Pin(s model.Signal) *query.View {
	v := l.Head.Pin(s)
	var runs []*rows.Run // the others may be read by other queries, so the list stays as it is
	for _, r := range v.Runs {
		if r.SeqHi > l.after {
			runs = append(runs, r)
		}
	}
	var parts []*local.Part
	for _, p := range v.DataParts {
		if p.Info.SeqHi > l.after {
			parts = append(parts, p)
		} else {
			p.Unpin()
		}
	}
	v.Runs, v.DataParts = runs, parts
	v.Fences = append(v.Fences, l.hide...)
	return v
}
