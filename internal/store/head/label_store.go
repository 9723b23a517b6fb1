package head

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// The label store is the label parts and, before those, the label runs: labels of every key that is known or has rows
// that are not shipped, each written once. The oldest source of a key is the one that counts.

// labelWalks are walks over all labels of one tenant after the other, oldest first. Whoever uses them holds merging, so
// label parts stay.
type labelWalks struct {
	h      *Head
	signal model.Signal
	parts  []*partLabelWalk
	walks  []labelWalk // of the tenant
}

func (h *Head) labelWalks(ctx context.Context, s model.Signal) *labelWalks {
	lw := &labelWalks{h: h, signal: s}
	for _, p := range h.group(s, labelPart, young) {
		lw.parts = append(lw.parts, &partLabelWalk{part: p, keys: p.reader.Keys(ctx, ""), series: p.reader.SeriesAt(ctx, "", true)})
	}
	return lw
}

// enter makes the walks those of a tenant.
func (lw *labelWalks) enter(tenant string) {
	lw.walks = lw.walks[:0]
	for _, w := range lw.parts {
		if w.keys.Enter(tenant) && w.series.Enter(tenant) {
			w.valid = w.keys.Next()
			lw.walks = append(lw.walks, w)
		}
	}
	lw.h.mu.Lock()
	runs := lw.h.mu.buffers.labelRuns[lw.signal]
	lw.h.mu.Unlock()
	for _, r := range runs {
		if entries := r.tenant(tenant); len(entries) > 0 {
			lw.walks = append(lw.walks, &runLabelWalk{entries})
		}
	}
}

// partLabelWalk finds labels in a label part.
type partLabelWalk struct {
	part   *localPart
	keys   *part.KeyCursor
	series *part.SeriesCursor
	valid  bool
}

func (w *partLabelWalk) seek(_ context.Context, k model.Key) (model.Labels, error) {
	if w.valid && w.keys.Key().Less(k) {
		w.valid = w.keys.SeekGE(k)
	}
	if !w.valid {
		return nil, w.part.named(w.keys.Err())
	}
	if w.keys.Key() != k {
		return nil, nil
	}
	if err := w.series.Seek(w.keys.Rank()); err != nil {
		return nil, w.part.named(err)
	}
	return w.series.Labels(), nil
}
