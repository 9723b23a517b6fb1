package head

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/known"
	"github.com/shaledb/shale/internal/store/part"
)

// fillKnown rebuilds the known set. It does not wait for further attempts, so that idle series leave the set.
func (h *Head) fillKnown(ctx context.Context) {
	err := h.rebuildKnown(ctx)
	switch {
	case ctx.Err() != nil || err == nil:
	case h.knownRebuilt.Load():
		h.metrics.workErrors.Inc()
		h.o.Logger.Error("labels are damaged: the known set lacks their series, senders repeat these labels, and some limits on new series do not apply",
			"err", err, "limits", rateLimits+groupLimits)
	default:
		h.metrics.workErrors.Inc()
		h.o.Logger.Error("cannot rebuild all of the known set: no limit on new series applies until a further attempt succeeds, and senders repeat the labels of the series that it lacks",
			"err", err, "limits", LimitTenantSeries+" "+rateLimits+groupLimits)
		h.goDo("head-known-again", h.rebuildAgain)
	}
}

// The limits that may not apply, for the log.
const (
	rateLimits  = LimitTenantNewSeries + " " + LimitNewSeries
	groupLimits = " limits.metric-series limits.label-set-series"
)

// rebuildAgain tries to rebuild the known set until it succeeds or the context ends. Sweeps may go on
// meanwhile: a series that has left and is added once more leaves again later.
func (h *Head) rebuildAgain(ctx context.Context) {
	retry := pause{}
	for err := h.rebuildKnown(ctx); !h.knownRebuilt.Load(); err = h.rebuildKnown(ctx) {
		if !retry.after(ctx, h, "rebuild the known set; no limit on new series applies", err) {
			return
		}
	}
	h.o.Logger.Info("the known set is rebuilt, and the limits on new series apply", "damaged", !h.knownComplete.Load())
	h.endRetired(ctx)
}

// endRetired is retireEnded in the background.
func (h *Head) endRetired(ctx context.Context) {
	if err := h.retireEnded(ctx); err != nil && ctx.Err() == nil {
		h.metrics.workErrors.Inc()
		h.o.Logger.Error("cannot find the series that have ended; they leave the known set later", "err", err)
	}
}

// rebuildKnown fills the known set from the label parts, while writes go on: what is not in it yet carries
// its labels once more. The newest part is first: when not all series have room, those that were created last
// are the most likely ones to be active.
//
// The series of a damaged part stay unknown from the damage on: their labels come once more. The error names
// the part, and the set does not count as complete. After any other error the set does not count as rebuilt:
// it has the series of the parts that could be read, and the next call reads the others.
func (h *Head) rebuildKnown(ctx context.Context) error {
	damage, err := h.restoreKnown(ctx)
	h.knownComplete.Store(damage == nil && err == nil)
	if err == nil {
		h.restored = nil
		h.knownRebuilt.Store(true)
	}
	return errors.Join(damage, err)
}

// restoreKnown returns the damage of parts apart from other errors.
func (h *Head) restoreKnown(ctx context.Context) (damage, err error) {
	h.mu.Lock()
	parts := h.pinPartsLocked(func(i *local.Info) bool { return i.Kind == local.Labels })
	h.mu.Unlock()
	defer func() {
		for _, p := range parts {
			p.Unpin()
		}
	}()
	sets := int64(0)
	for _, p := range parts {
		sets += int64(p.Info.Series)
	}
	if err := h.known.Reserve(sets); err != nil {
		return nil, err
	}
	if h.restored == nil {
		h.restored = make(map[string]bool, len(parts))
	}
	for _, p := range slices.Backward(parts) {
		if h.restored[p.Info.File] {
			continue
		}
		switch failed := p.WrapError(h.addKnown(ctx, p)); {
		case failed == nil:
			h.restored[p.Info.File] = true
		case ctx.Err() != nil:
			return damage, failed
		case errors.Is(failed, model.ErrCorrupt):
			damage = errors.Join(damage, failed)
		default:
			err = errors.Join(err, failed)
		}
	}
	return damage, err
}

// restoredIdle is for how many ticks the series of label parts count as idle. The rows of many that have
// ended are in the bucket, and after all series have been replaced these fill the set. So a restored series
// that gets no row leaves it after half of the time, and with the second sweep when the set is nearly full.
// retireEnded finds those that have ended lately.
//
// With KeepStale rows do not mark series as active, so each has all of its time.
func (h *Head) restoredIdle() int {
	if h.o.KeepStale {
		return 0
	}
	return h.crowdedTicks() - 1
}

func (h *Head) addKnown(ctx context.Context, p *local.Part) error {
	const many = 1 << 14
	var l known.Lookup
	idle := h.restoredIdle()
	found := make([]model.Key, 0, many)
	keys := p.Reader.Keys(ctx, "")
	for _, t := range p.Reader.Meta().Tenants {
		id := h.tenants.must(t.Name)
		keys.Enter(t.Name)
		for more := true; more; {
			if more = keys.Next(); more {
				found = append(found, keys.Key())
			}
			if !more || len(found) == many {
				h.known.RestoreAll(&l, id, p.Info.Signal, found, idle)
				found = found[:0]
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		if err := keys.Err(); err != nil {
			return err
		}
	}
	return nil
}

// endedLately is how old the rows may be in which retireEnded looks for stale markers. Reading those of an
// hour takes about as much work as merging them once.
const endedLately = time.Hour

// retireEnded makes series leave the known set soon that had ended before a restart, as retireStale did
// before it: the set was rebuilt from labels, which do not tell. A series has ended if its newest row of
// those that are still local is a stale marker. One that has become active since the restart stays.
func (h *Head) retireEnded(ctx context.Context) error {
	if h.o.KeepStale {
		return nil
	}
	// What was read from the journal may fill the buffer, and would stay in memory while it is walked.
	if err := h.Flush(ctx); err != nil {
		return err
	}
	since := h.o.Now() - int64(endedLately)
	h.mu.Lock()
	parts := h.withLingeringLocked(model.Metrics, h.pinPartsLocked(func(i *local.Info) bool {
		return i.Signal == model.Metrics && i.Kind == local.Data && i.Range.Max >= since
	}))
	h.mu.Unlock()
	defer func() {
		for _, p := range parts {
			p.Unpin()
		}
	}()
	inputs := streams(parts)
	for i, s := range inputs {
		inputs[i] = soundStream{s}
	}
	// The newest row may be in any part: late rows arrive after newer ones.
	return part.Merge(ctx, inputs, func(tenant string, k model.Key, _ model.Labels, all *model.SeriesRows, _ []part.Text) error {
		rows := all.Family(model.Samples)
		// A part without a row since then may have a newer row than an older marker.
		if last := rows.Len() - 1; last >= 0 && rows.Times[last] >= since && rows.IsStale(last) {
			h.known.Retire(h.tenants.must(tenant), model.Metrics, k, h.restoredIdle(), h.idleTicks())
		}
		return nil
	}, part.MergeOptions{})
}

// soundStream ends where its part is damaged. Whoever needs the rows reports the damage.
type soundStream struct{ part.Stream }

func (s soundStream) Next(ctx context.Context) (*part.Series, error) {
	next, err := s.Stream.Next(ctx)
	if errors.Is(err, model.ErrCorrupt) {
		return nil, nil
	}
	return next, err
}
