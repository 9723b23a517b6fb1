package head

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/part"
)

// forgetLabelsFrom is the number of label sets beyond twice the needed ones from which a merge of all label
// parts is worth its work.
const forgetLabelsFrom = 10_000

// labelsToMerge chooses label parts: neighbours if there are too many parts, or all parts if most label sets
// are needed no more. The latter is checked only after a ship or a sweep, since nothing else makes labels
// unneeded.
//
// Needed are those of known series, and those that the last merge of all has kept for local rows. Series that
// have ended may have such rows until their window is shipped, and each merge before would keep their labels.
// So all labels are written again once a window, at most, besides what new series cost.
func (h *Head) labelsToMerge(s model.Signal) []*local.Part {
	in := h.group(s, local.Labels, local.Young)
	if len(in) > 0 && h.knownComplete.Load() && h.labelsMayGo[s].Swap(false) && !h.labelsMustStay() {
		if setsOf(in) > 2*(h.known.Len()+h.merging.rowLabels[s])+forgetLabelsFrom {
			return in
		}
	}
	return neighbours(in)
}

// labelsMustStay reports whether a merge may drop no labels: writers that decide by themselves do not send
// them again because the known set is full here.
func (h *Head) labelsMustStay() bool { return h.o.KeepStale && h.known.NearlyFull() }

// rowsShipped says that rows are in the bucket. They leave the head at once, or once they have lingered.
func (h *Head) rowsShipped(s model.Signal, g local.Group) {
	if h.o.Linger <= 0 {
		h.rowsLeave(s, g)
	}
}

// rowsLeave says that rows leave the head, so that labels may be needed no more. The caller holds merging.
func (h *Head) rowsLeave(s model.Signal, g local.Group) {
	if g != local.Late { // few series have late rows, which may be shipped often
		h.merging.rowLabels[s] = 0
	}
	h.labelsMayGo[s].Store(true)
}

func setsOf(in []*local.Part) (sets int64) {
	for _, p := range in {
		sets += int64(p.Info.Series)
	}
	return sets
}

// mergeLabels makes one label part of several, and drops the labels of series that are neither known nor have
// rows in a local part. Buffers are flushed first, so that their rows are in local parts too. Rows that come
// meanwhile belong to series that have just been marked as active.
func (h *Head) mergeLabels(ctx context.Context, s model.Signal, in []*local.Part) error {
	var keep keepFunc
	all, forRows := len(in) == len(h.group(s, local.Labels, local.Young)), int64(0)
	if h.knownComplete.Load() && !h.labelsMustStay() {
		if err := h.Flush(ctx); err != nil {
			return err
		}
		keep = h.labelKeeper(ctx, s, &forRows)
	}
	e := edit{remove: in}
	o := h.writerOptions(s, in[0].Info.SeqLo, in[len(in)-1].Info.SeqHi)
	o.Labels = true
	if err := h.writePart(ctx, o, local.Labels, local.Young, streams(in), keep, &e); err != nil {
		return fmt.Errorf("merge labels: %w", err)
	}
	h.metrics.merges.WithLabelValues(string(local.Labels)).Inc()
	if all {
		h.merging.rowLabels[s] = forRows
	}
	return h.commit(ctx, e)
}

// labelKeeper returns the rule for keys that come in the order of a merge. It counts those that stay only for
// local rows. The caller holds merging; a flush may add data parts meanwhile, whose keys are known or come
// with labels of their own.
func (h *Head) labelKeeper(ctx context.Context, s model.Signal, forRows *int64) keepFunc {
	var tenant string
	var id uint16
	var cursors []keyCursor
	return func(name string, k model.Key) (bool, error) {
		if name != tenant || cursors == nil {
			tenant, id, cursors = name, h.tenants.must(name), make([]keyCursor, 0, 16)
			for _, p := range h.holding() {
				if i := &p.Info; i.Kind == local.Data && i.Signal == s && p.Reader.Meta().Tenant(name) != nil {
					c := keyCursor{p.Reader.Keys(ctx, name), p}
					if c.Next() {
						cursors = append(cursors, c)
					} else if err := c.Err(); err != nil {
						return false, p.WrapError(err)
					}
				}
			}
		}
		if h.known.Has(id, s, k) {
			return true, nil
		}
		for i := 0; i < len(cursors); {
			c := cursors[i]
			if c.Key().Less(k) && !c.SeekGE(k) {
				if err := c.Err(); err != nil {
					return false, c.part.WrapError(err)
				}
				cursors = append(cursors[:i], cursors[i+1:]...)
				continue
			}
			if c.Key() == k {
				*forRows++
				return true, nil
			}
			i++
		}
		return false, nil
	}
}

// keyCursor is a cursor over the keys of a part.
type keyCursor struct {
	*part.KeyCursor
	part *local.Part
}

// joinLabels makes one label part of several. It checks whether each series is still known only when that may
// drop many labels, since the check slows down the merge. Otherwise all labels stay until the next merge.
func (h *Head) joinLabels(ctx context.Context, s model.Signal, in []*local.Part) error {
	if setsOf(in) > h.known.Len() {
		return h.mergeLabels(ctx, s, in)
	}
	e := edit{remove: in}
	o := h.writerOptions(s, in[0].Info.SeqLo, in[len(in)-1].Info.SeqHi)
	o.Labels = true
	if err := h.writePart(ctx, o, local.Labels, local.Young, streams(in), nil, &e); err != nil {
		return fmt.Errorf("merge labels: %w", err)
	}
	h.metrics.merges.WithLabelValues(string(local.Labels)).Inc()
	return h.commit(ctx, e)
}
