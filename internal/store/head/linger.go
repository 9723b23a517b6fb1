package head

import (
	"context"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
)

// lingering is a part whose rows are in the bucket. Queries still see it: they may run in other processes,
// whose view of the bucket is older. They see the rows twice then, and never not at all.
type lingering struct {
	part  *local.Part
	until time.Time
}

// lingerLocked keeps parts that a ship has taken to the bucket.
func (h *Head) lingerLocked(shipped []*local.Part) {
	until := time.Now().Add(h.o.Linger)
	for _, p := range shipped {
		h.mu.lingering = append(h.mu.lingering, lingering{p, until})
	}
}

// withLingeringLocked adds the lingering data parts of a signal to some parts, in their order, each with a
// reference that the caller gives up.
func (h *Head) withLingeringLocked(s model.Signal, parts []*local.Part) []*local.Part {
	for _, l := range h.mu.lingering {
		if l.part.Info.Signal == s {
			l.part.Pin()
			parts = append(parts, l.part)
		}
	}
	if len(h.mu.lingering) > 0 {
		sortParts(parts)
	}
	return parts
}

// holding returns the parts that queries see. The caller holds merging, so that none is dropped.
func (h *Head) holding() []*local.Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.mu.parts)
	for _, l := range h.mu.lingering {
		all = append(all, l.part)
	}
	return all
}

// endLingering drops the parts whose time is over, unless a merge or a ship runs.
func (h *Head) endLingering(now time.Time) {
	if !h.merging.TryLock() {
		return
	}
	defer h.merging.Unlock()
	var over []*local.Part
	h.mu.Lock()
	h.mu.lingering = slices.DeleteFunc(slices.Clone(h.mu.lingering), func(l lingering) bool {
		if now.Before(l.until) {
			return false
		}
		over = append(over, l.part)
		return true
	})
	h.mu.Unlock()
	for _, p := range over {
		h.rowsLeave(p.Info.Signal, p.Info.Group)
		p.Drop()
	}
}

// lingerEvery is how often parts that linger are looked at.
const lingerEvery = time.Second

// lingerUntil drops parts whose time is over, until the context ends.
func (h *Head) lingerUntil(ctx context.Context) {
	tick := time.NewTicker(lingerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			h.endLingering(now)
		}
	}
}

// Trim drops parts that another process has taken to the bucket: those of batches up to seq. Queries see them
// for Linger, as after a ship. It is for a head that follows a journal and does not ship it.
//
// The other process has chosen seq, so parts of this head may have rows of both sides. These stay whole, and
// queries see rows twice. What is newer than a row of them, for the same time, is in the same part or in a
// later one, and no part has rows of both sides of a deletion. Merges could keep such a part without end. So
// they never join what was flushed before the last Trim that came so far with what was flushed later.
func (h *Head) Trim(ctx context.Context, seq uint64) error {
	h.merging.Lock()
	defer h.merging.Unlock()
	var gone []*local.Part
	for _, p := range h.snapshot() {
		if p.Info.Kind == local.Data && p.Info.SeqHi <= seq {
			gone = append(gone, p)
		}
	}
	if len(gone) > 0 {
		for _, p := range gone {
			h.rowsShipped(p.Info.Signal, p.Info.Group)
		}
		if err := h.commit(ctx, edit{remove: gone, shipped: true}); err != nil {
			return err
		}
	}
	if seq < h.merging.seam {
		return nil
	}
	if err := h.Flush(ctx); err != nil {
		return err
	}
	h.merging.seam = h.Covered()
	return nil
}
