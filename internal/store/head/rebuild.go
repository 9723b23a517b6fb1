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

// rebuildKnown fills the known set from the label parts, while writes go on: what is not in it yet carries
// its labels once more. The newest part is first: when not all series have room, those that were created last
// are the most likely ones to be active.
//
// The series of a damaged part stay unknown from the damage on: their labels come once more. The error names
// the part, and the set does not count as complete. After any other error it may hold nearly nothing, and
// does not count as rebuilt.
func (h *Head) rebuildKnown(ctx context.Context) error {
	damage, err := h.restoreKnown(ctx)
	h.knownComplete.Store(damage == nil && err == nil)
	if err == nil {
		h.knownRebuilt.Store(true)
	}
	return errors.Join(damage, err)
}

// restoreKnown returns the damage of parts apart from other errors, of which it stops at the first one.
func (h *Head) restoreKnown(ctx context.Context) (damage, err error) {
	h.mu.Lock()
	parts := h.pinPartsLocked(func(i *local.Info) bool { return i.Kind == local.Labels })
	h.mu.Unlock()
	sets := int64(0)
	for _, p := range parts {
		sets += int64(p.Info.Series)
	}
	err = h.known.Reserve(sets)
	for _, p := range slices.Backward(parts) {
		if err == nil {
			err = p.WrapError(h.addKnown(ctx, p))
		}
		if errors.Is(err, model.ErrCorrupt) {
			damage, err = errors.Join(damage, err), nil
		}
		p.Unpin()
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
