package victorialogs

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// VictoriaLogs keeps a line that it received twice, and LogQL counts it once. Looking for such lines takes a
// count as long as the rest of it. So the watch finds out in the background in which windows no two lines of
// a stream have the same time, and remembers that for as long as the count of the window stays the same.

// proof is what is known of the copies in a window.
type proof uint8

const (
	unknown proof = iota
	unique        // no two lines of a stream have the same time
	copies        // some have, and may be there twice
)

const (
	// proofLimit is the time that a proof may take, and proofPause how long none is tried after one that took
	// longer or failed.
	proofLimit = 15 * time.Second
	proofPause = 10 * time.Minute
)

// unproven returns the part of a range in which lines may be there twice. Its Min is greater than its Max if
// there is none. It may wait for a count. What is not proven yet may be later.
func (w *watch) unproven(ctx context.Context, a Account, r model.TimeRange) model.TimeRange {
	if w.prove == nil {
		return r
	}
	if _, ok := w.check(ctx, []Account{a}, r); !ok {
		return r
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.accounts[a]
	if l == nil {
		return r
	}
	none := model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	hull, missing := none, none // in windows
	grow := func(h *model.TimeRange, at int64) {
		if h.Min > h.Max {
			h.Min = at
		}
		h.Max = at
	}
	for at, last := floorDiv(r.Min, window), floorDiv(r.Max, window); at <= last; at++ {
		if at >= l.settled { // and all later ones
			grow(&hull, at)
			grow(&hull, last)
			break
		}
		switch l.windows[at-l.from].proof {
		case unknown:
			grow(&missing, at)
			fallthrough
		case copies:
			grow(&hull, at)
		}
	}
	if missing.Min <= missing.Max {
		w.proveLocked(a, l, missing)
	}
	if hull.Min > hull.Max {
		return none
	}
	return model.TimeRange{Min: max(r.Min, hull.Min*window), Max: min(r.Max, hull.Max*window+(window-1))}
}

// proveLocked looks for copies in some windows, unless that is being done, or was in vain lately.
func (w *watch) proveLocked(a Account, l *ledger, of model.TimeRange) {
	now := w.elapsed()
	if l.proving || now < l.nextProof || w.ctx.Err() != nil {
		return
	}
	l.proving = true
	w.counts.Go(func() {
		ctx, cancel := context.WithTimeout(w.ctx, w.proofLimit)
		defer cancel()
		found := make([]struct{ lines, times int64 }, of.Max-of.Min+1)
		err := w.turn(ctx)
		if err == nil {
			err = w.prove(ctx, a, model.TimeRange{Min: of.Min * window, Max: of.Max*window + (window - 1)}, func(at, lines, times int64) {
				if at >= of.Min && at <= of.Max {
					c := &found[at-of.Min]
					c.lines, c.times = c.lines+lines, c.times+times
				}
			})
			<-w.turns
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		l.proving, l.nextProof = false, w.elapsed()+w.every
		w.proofs(outcomeOf(err))
		if err != nil {
			l.nextProof = w.elapsed() + int64(proofPause)
			return
		}
		for at := max(of.Min, l.from); at <= of.Max && at < l.to; at++ {
			c, x := &l.windows[at-l.from], found[at-of.Min]
			switch {
			case c.lines != x.lines: // some came or went since the count
			case x.lines == x.times:
				c.proof = unique
			default:
				c.proof = copies
			}
		}
	})
}

// countTimes counts the lines of an account in windows, and the different times of those of each stream.
func (c *client) countTimes(ctx context.Context, a Account, r model.TimeRange, each func(w, lines, times int64)) error {
	f := filter{}
	text := f.in(r) + " | stats by (_stream_id, _time:5m) count() n, count_uniq(_time) times | stats by (_time) sum(n) n, sum(times) times"
	return c.try(ctx, access{Account: a}, kindCopies, text, func(row []field) error {
		at, ok := parseTime(valueOf(row, "_time"))
		lines, err := strconv.ParseInt(string(valueOf(row, "n")), 10, 64)
		times, err2 := strconv.ParseInt(string(valueOf(row, "times")), 10, 64)
		if !ok || err != nil || err2 != nil || floorMod(at, window) != 0 {
			return fmt.Errorf("%w: VictoriaLogs at %s has sent a count that is not one: %s", model.ErrCorrupt, c.url, rowText(row))
		}
		each(at/window, lines, times)
		return nil
	})
}
