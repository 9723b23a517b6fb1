package head

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/labels"
)

// crowdedKey is a series whose labels came although the known set is full of active ones. Such a series is
// stored like all others. It costs its labels with every batch, and once per flush in the label store, where
// merging leaves one set.
type crowdedKey struct {
	tenant uint16
	signal model.Signal
	key    model.Key
}

// crowdedBytes is the approximate size of an entry in the map of such series.
const crowdedBytes = 64

// reportEvery is the least time between log lines about a lasting state.
const reportEvery = time.Minute

// reportCrowded counts label sets of series that the known set has no room for, and logs at most once per
// reportEvery.
func (h *Head) reportCrowded(sets int) {
	if sets == 0 {
		return
	}
	h.metrics.crowded.Add(float64(sets))
	if now := time.Now(); now.Sub(h.adding.reported) >= reportEvery {
		h.adding.reported = now
		h.o.Logger.Warn("the known set is full: further series are stored, but carry their labels with every batch until there is room; give Shale more memory or send fewer series",
			"active", h.known.Len(), "limit", h.known.Cap())
	}
}

// Label gives a batch the labels of some of its series, ascending indexes, and returns those whose labels the
// head does not have. It looks into the label store, since a full known set does not have all that are there.
// The labels go with the rows, because those in the store may be dropped before the rows are applied.
func (h *Head) Label(ctx context.Context, b *model.Batch, some []uint32) (missing []uint32, err error) {
	v := h.PinLabels(b.Signal)
	defer func() {
		for _, p := range v.LabelParts {
			p.Unpin()
		}
	}()
	var walks []labelWalk
	for _, r := range v.LabelRuns {
		if entries := r.Tenant(b.Tenant); len(entries) > 0 {
			walks = append(walks, labels.NewWalk(entries))
		}
	}
	for _, p := range v.LabelParts {
		w := &partLabelWalk{part: p, keys: p.Reader.Keys(ctx, ""), series: p.Reader.SeriesAt(ctx, "", true)}
		if w.keys.Enter(b.Tenant) && w.series.Enter(b.Tenant) {
			w.valid = w.keys.Next()
			walks = append(walks, w)
		}
	}
	byKey := slices.Clone(some)
	slices.SortFunc(byKey, func(x, y uint32) int { return b.Keys[x].Compare(b.Keys[y]) })
	found := make(map[uint32]model.Labels)
	for _, i := range byKey {
		for _, w := range walks {
			l, err := w.Seek(ctx, b.Keys[i])
			if err != nil {
				return nil, err
			}
			if l != nil {
				found[i] = slices.Clone(l)
				break
			}
		}
		if found[i] == nil {
			missing = append(missing, i)
		}
	}
	slices.Sort(missing)
	for i, series := range b.Labels.Series {
		found[series] = b.Labels.At(i)
	}
	var all model.LabelTable
	for _, i := range slices.Sorted(maps.Keys(found)) {
		all.Append(i, found[i])
	}
	b.Labels = all
	return missing, nil
}
