package head

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/labels"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/part"
)

// The label store is the label parts and, before those, the label runs: labels of every key that is known or
// has rows that are not shipped, each written once. The oldest source of a key is the one that counts.

// labelWalk finds the labels of keys that come in ascending order.
type labelWalk interface {
	// Seek returns the labels of a key, valid until the next call, or nil if the source does not have it.
	Seek(ctx context.Context, k model.Key) (model.Labels, error)
}

// labelWalks are walks over all labels of one tenant after the other, oldest first. The caller holds merging,
// so label parts stay.
type labelWalks struct {
	h      *Head
	signal model.Signal
	parts  []*partLabelWalk
	walks  []labelWalk // of the tenant
}

func (h *Head) labelWalks(ctx context.Context, s model.Signal) *labelWalks {
	lw := &labelWalks{h: h, signal: s}
	for _, p := range h.group(s, local.Labels, local.Young) {
		lw.parts = append(lw.parts, &partLabelWalk{part: p, keys: p.Reader.Keys(ctx, ""), series: p.Reader.SeriesAt(ctx, "", true)})
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
		if entries := r.Tenant(tenant); len(entries) > 0 {
			lw.walks = append(lw.walks, labels.NewWalk(entries))
		}
	}
}

// partLabelWalk finds labels in a label part.
type partLabelWalk struct {
	part   *local.Part
	keys   *part.KeyCursor
	series *part.SeriesCursor
	valid  bool
}

func (w *partLabelWalk) Seek(_ context.Context, k model.Key) (model.Labels, error) {
	if w.valid && w.keys.Key().Less(k) {
		w.valid = w.keys.SeekGE(k)
	}
	if !w.valid {
		return nil, w.part.WrapError(w.keys.Err())
	}
	if w.keys.Key() != k {
		return nil, nil
	}
	if err := w.series.Seek(w.keys.Rank()); err != nil {
		return nil, w.part.WrapError(err)
	}
	return w.series.Labels(), nil
}
