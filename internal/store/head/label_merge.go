package head

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// forgetLabelsFrom is the number of label sets beyond twice the known ones from which a merge of all label parts is
// worth its work.
const forgetLabelsFrom = 10_000

// labelsToMerge chooses label parts: neighbours, if there are too many parts, or all, if most label sets are of series
// that have left the known set. That is asked after a ship or a sweep only, since nothing else lets labels go.
func (h *Head) labelsToMerge(s model.Signal) []*localPart {
	in := h.group(s, labelPart, young)
	if len(in) > 0 && h.knownFull.Load() && h.labelsMayGo.Swap(false) {
		sets := int64(0)
		for _, p := range in {
			sets += int64(p.info.Series)
		}
		if sets > 2*h.known.size()+forgetLabelsFrom {
			return in
		}
	}
	return neighbours(in)
}

// mergeLabels makes one label part of several, and lets go the labels of series that are neither known nor have rows
// in a local part. Buffers are flushed first, so that their rows are in local parts too; rows that come meanwhile are
// of series that have just been marked as active.
func (h *Head) mergeLabels(ctx context.Context, s model.Signal, in []*localPart) error {
	var keep keepFunc
	if h.knownFull.Load() {
		if err := h.Flush(ctx); err != nil {
			return err
		}
		keep = h.labelKeeper(ctx, s)
	}
	e := edit{remove: in}
	o := h.writerOptions(s, in[0].info.SeqLo, in[len(in)-1].info.SeqHi)
	o.Labels = true
	if err := h.writePart(ctx, o, labelPart, young, streams(in), keep, &e); err != nil {
		return fmt.Errorf("merge labels: %w", err)
	}
	h.metrics.merges.WithLabelValues(string(labelPart)).Inc()
	return h.commit(ctx, e)
}

// labelKeeper returns the rule for keys that come in the order of a merge. The caller holds merging; a flush may add
// data parts meanwhile, whose keys are known or come with labels of their own.
func (h *Head) labelKeeper(ctx context.Context, s model.Signal) keepFunc {
	var tenant string
	var id uint16
	var cursors []keyCursor
	return func(name string, k model.Key) (bool, error) {
		if name != tenant || cursors == nil {
			tenant, id, cursors = name, h.tenants.must(name), make([]keyCursor, 0, 16)
			for _, p := range h.snapshot() {
				if i := &p.info; i.Kind == dataPart && i.Signal == s && p.reader.Meta().Tenant(name) != nil {
					c := keyCursor{p.reader.Keys(ctx, name), p}
					if c.Next() {
						cursors = append(cursors, c)
					} else if err := c.Err(); err != nil {
						return false, p.named(err)
					}
				}
			}
		}
		if h.known.has(id, s, k) {
			return true, nil
		}
		for i := 0; i < len(cursors); {
			c := cursors[i]
			if c.Key().Less(k) && !c.SeekGE(k) {
				if err := c.Err(); err != nil {
					return false, c.part.named(err)
				}
				cursors = append(cursors[:i], cursors[i+1:]...)
				continue
			}
			if c.Key() == k {
				return true, nil
			}
			i++
		}
		return false, nil
	}
}

// keyCursor knows which part it walks.
type keyCursor struct {
	*part.KeyCursor
	part *localPart
}

// joinLabels makes one label part of several. Whether a series is still known is asked for each only when that may let many
// labels go, since asking takes a quarter of the time of a merge; otherwise its labels stay until the next time.
func (h *Head) joinLabels(ctx context.Context, s model.Signal, in []*localPart) error {
	sets := int64(0)
	for _, p := range in {
		sets += int64(p.info.Series)
	}
	if sets > h.known.size() {
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
