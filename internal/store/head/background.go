package head

import (
	"context"
	"errors"
	"runtime/pprof"
	"time"
)

// Start begins the background work, which Close ends: it rebuilds the known set, flushes buffers, merges
// parts and ships windows.
func (h *Head) Start() {
	h.goDo("head-known", func(ctx context.Context) {
		h.fillKnown(ctx)
		h.endRetired(ctx)
		h.forgetIdle(ctx)
	})
	h.startFlushing()
	h.goDo("head-merge", h.mergeUntil)
	if h.o.Linger > 0 {
		h.goDo("head-linger", h.lingerUntil)
	}
}

// startFlushing begins to flush, unless that has begun.
func (h *Head) startFlushing() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.mu.flushing {
		h.mu.flushing = true
		h.goDo("head-flush", h.flushUntil)
	}
}

// goDo runs a goroutine that Close waits for.
func (h *Head) goDo(name string, f func(context.Context)) {
	h.background.done.Go(func() {
		pprof.Do(h.background.running, pprof.Labels("shale", name), f)
	})
}

// flushUntil flushes every FlushEvery, or when a buffer is half full, until the context ends.
func (h *Head) flushUntil(ctx context.Context) {
	tick := time.NewTicker(h.o.FlushEvery)
	defer tick.Stop()
	retry := pause{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-h.background.urge:
		}
		for err := h.Flush(ctx); err != nil; err = h.Flush(ctx) {
			h.dropBuilt()
			if !retry.after(ctx, h, "flush", err) {
				return
			}
		}
		retry = pause{}
		select {
		case h.background.flushed <- struct{}{}:
		default:
		}
	}
}

// mergeUntil merges and ships after each flush as long as anything is due, until the context ends.
func (h *Head) mergeUntil(ctx context.Context) {
	retry := pause{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.background.flushed:
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = h.Work(ctx); err == nil {
				retry = pause{}
			} else if more = retry.after(ctx, h, "merge or ship", err); !more {
				return
			}
		}
	}
}

// Work does one merge, or the ships that are due, and reports whether there was one. Start does so in the
// background; tests call Work step by step. A failing bucket does not stop merges, and a damaged part does
// not stop ships.
func (h *Head) Work(ctx context.Context) (bool, error) {
	h.merging.Lock()
	defer h.merging.Unlock()
	more, err := h.merge(ctx)
	if more && err == nil {
		return true, nil
	}
	shipped, shipErr := h.shipDue(ctx)
	return shipped, errors.Join(err, shipErr, h.dropFences(ctx))
}

// pause is the wait between attempts of failing work; it grows from 0.1 to 10 s.
type pause struct{ last time.Duration }

// after reports an error and waits; it returns false when the work must end.
func (p *pause) after(ctx context.Context, h *Head, what string, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	p.last = min(max(2*p.last, 100*time.Millisecond), 10*time.Second)
	h.metrics.workErrors.Inc()
	h.o.Logger.Error("background work failed; trying again after a pause", "work", what, "pause", p.last, "err", err)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(p.last):
		return true
	}
}

// knownTick is the unit of activity in the known set.
const knownTick = 10 * time.Minute

// sweepsPerTick is how often retired series leave the known set in each tick while it is nearly full. When
// all series are replaced, there would be room for the new ones only after one or two ticks, and until then
// these carry their labels with every batch. A sweep of 200 million series takes a few seconds of CPU.
const sweepsPerTick = 10

// forgetIdle removes series without rows for IdleAfter from the known set, and retired ones. It pauses after
// each sweep, however long that took: a batch that was told that a series is known needs the time.
//
// Only a tick may make labels unneeded: the rows of series that have just retired are local.
func (h *Head) forgetIdle(ctx context.Context) {
	ticked := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(knownTick / sweepsPerTick):
		}
		sweep := h.sweepRetired
		tick := time.Since(ticked) >= knownTick
		if tick {
			ticked, sweep = time.Now(), h.sweepKnown
		} else if !h.known.NearlyFull() {
			continue
		}
		if err := sweep(); err != nil {
			h.metrics.workErrors.Inc()
			h.o.Logger.Error("cannot remove idle series from the known set", "err", err)
		}
		if tick {
			h.afterTick()
		}
	}
}

// afterTick says that labels may be needed no more.
func (h *Head) afterTick() {
	for s := range signals {
		h.labelsMayGo[s].Store(true)
	}
}

// sweepKnown starts the next tick of the known set.
func (h *Head) sweepKnown() error {
	if h.known.NearlyFull() {
		return h.known.AdvanceFull(h.crowdedTicks(), h.idleTicks())
	}
	return h.known.Advance(h.idleTicks())
}

// sweepRetired removes the series that had retired before the last sweep. A batch that was told that they are
// known has had at least a minute to arrive, and their labels stay as long as their stale marker is local.
func (h *Head) sweepRetired() error { return h.known.SweepRetired(h.idleTicks()) }

// idleTicks is the number of ticks without a row after which a series is forgotten.
func (h *Head) idleTicks() int { return min(200, int(h.o.IdleAfter/knownTick)+1) }

// crowdedTicks is idleTicks for a set that is nearly full.
func (h *Head) crowdedTicks() int { return max(1, h.idleTicks()/2) }
