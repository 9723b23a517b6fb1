package head

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// joinLabels makes one label part of several. Whether a series is still known is asked for each only when that may let many
// labels go, since asking takes a quarter of the time of a merge; otherwise its labels stay until the next time.
func (h *Head) joinLabels(ctx context.Context, s model.Signal, in []*localPart) error {
	sets := int64(0)
	for _, p := range in {
		sets += int64(p.info.Series)
	}
	if sets > h.known.count.Load() {
		return h.mergeLabels(ctx, s, in)
	}
	e := edit{remove: in}
	o := h.writerOptions(s, in[0].info.SeqLo, in[len(in)-1].info.SeqHi)
	o.Labels = true
	if err := h.writePart(ctx, o, labelPart, young, streams(in), nil, &e); err != nil {
		return fmt.Errorf("merge labels: %w", err)
	}
	h.metrics.merges.WithLabelValues(string(labelPart)).Inc()
	return h.commit(ctx, e)
}
