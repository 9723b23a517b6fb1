package watch

import (
	"context"
	"math"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// VictoriaLogs keeps a line that it received twice, and LogQL counts it once. Looking for such lines takes a
// count as long as the rest of it. So the watch finds out in the background in which windows no two lines of
// a stream have the same time, and remembers that for as long as the count of the window stays the same. It
// begins with the newest windows, and looks in as many at a time as VictoriaLogs can do without strain.

// proof is what is known of the copies in a window.
type proof uint8

const (
	unknown proof = iota
	unique        // no two lines of a stream have the same time
	copies        // some have, and may be there twice, or that takes too long to find out
)

const (
	// proofLimit is the time that a search may take. After one that took longer, or failed, the next one of the
	// account is of a quarter of the lines, and waits for a pause that doubles up to longestProofPause.
	proofLimit        = 15 * time.Second
	longestProofPause = 10 * time.Minute
	// proofLines is how many lines a search is of, if several windows have them. VictoriaLogs holds the times of
	// all of them.
	proofLines = 1 << 20
	// mostProofShift is how often that may be halved: to 1,024 lines.
	mostProofShift = 10
)

// Unproven returns the part of a range in which lines may be there twice. Its Min is greater than its Max if
// there is none. It may wait for a count. What is not proven yet may be later.
func (w *Watch) Unproven(ctx context.Context, a Account, r model.TimeRange) model.TimeRange {
	if w.Prove == nil {
		return r
	}
	_, ok := w.Check(ctx, []Account{a}, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ok {
		return w.unprovenLocked(a, r)
	}
	if l := w.accounts[a]; l != nil { // the count that may be running goes on with a search
		l.toProve = l.toProve.joined(r)
	}
	return r
}

func (w *Watch) unprovenLocked(a Account, r model.TimeRange) model.TimeRange {
	l, hull, missing := w.accounts[a], windows{}, windows{}
	first, last := windowsOf(r)
	if l == nil || first < l.from { // another count has begun later since
		return r
	}
	for at, c := range l.within(r) {
		if l.lacksProof(at) {
			missing = missing.with(at)
		}
		if c.mayHaveCopies() {
			hull = hull.with(at)
		}
	}
	if from := max(first, l.to); from <= last {
		hull = hull.with(from).with(last)
	}
	if missing.from < missing.to {
		w.proveLocked(a, l, missing)
	}
	if hull.from >= hull.to {
		return model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	}
	// The last window of all times has no end.
	out := r
	if hull.from > first {
		out.Min = hull.from * Window
	}
	if hull.to <= last {
		out.Max = hull.to*Window - 1
	}
	return out
}

// windows are those from one number to another one.
type windows struct{ from, to int64 }

// with returns the windows up to a later one.
func (w windows) with(at int64) windows {
	if w.from >= w.to {
		w.from = at
	}
	return windows{w.from, at + 1}
}

// joined returns the windows from the first to the last one of these and of a range.
func (w windows) joined(r model.TimeRange) windows {
	first, last := windowsOf(r)
	if w.from >= w.to {
		return windows{first, last + 1}
	}
	return windows{min(w.from, first), max(w.to, last+1)}
}

// proveCountedLocked looks for copies in what could not be told when a query asked, since it was not counted.
func (w *Watch) proveCountedLocked(a Account, l *Ledger) {
	missing := windows{}
	for at := max(l.toProve.from, l.from); at < min(l.toProve.to, l.to); at++ {
		if l.lacksProof(at) {
			missing = missing.with(at)
		}
	}
	if l.toProve = (windows{}); missing.from < missing.to {
		w.proveLocked(a, l, missing)
	}
}

// mayHaveCopies reports whether lines of a window may be there twice.
func (c *counted) mayHaveCopies() bool { return c.lines > 0 && c.proof != unique }

// lacksProof reports whether it is not known whether a window has copies.
func (l *Ledger) lacksProof(at int64) bool {
	c := &l.windows[at-l.from]
	return c.lines > 0 && c.proof == unknown
}

// proveLocked looks for copies in some windows, unless that is being done, or was in vain lately.
func (w *Watch) proveLocked(a Account, l *Ledger, of windows) {
	if l.proving || w.elapsed() < l.nextProof || w.ctx.Err() != nil {
		return
	}
	l.proving = true
	w.counts.Go(func() {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			l.proving, l.nextProof = false, w.elapsed()+max(w.every, l.proofPause)
		}()
		for of.from < of.to && w.proveNewest(a, l, &of) {
		}
	})
}

// proveNewest looks for copies in the newest of some windows, takes these off, and reports whether to go on.
// One search runs at a time, whatever the account: it takes much of the server's CPU.
func (w *Watch) proveNewest(a Account, l *Ledger, of *windows) bool {
	select {
	case w.proofTurn <- struct{}{}:
	case <-w.ctx.Done():
		return false
	}
	defer func() { <-w.proofTurn }()
	w.mu.Lock()
	alive := w.accounts[a] == l && w.elapsed()-l.last < int64(askedFor) // somebody still asks
	part := l.newest(*of)
	w.mu.Unlock()
	if of.to = part.from; !alive || part.from >= part.to {
		return false
	}
	began := w.elapsed()
	found, err := w.search(a, part)
	took := w.elapsed() - began
	w.mu.Lock()
	w.takeProofLocked(l, part, found, took, err)
	w.mu.Unlock()
	w.Proved(outcomeOf(err))
	select { // at most half of the time is spent looking
	case <-time.After(time.Duration(took)):
	case <-w.ctx.Done():
	}
	return err == nil
}

// newest returns the newest of some windows that lack a proof and follow each other: one, or as many as have
// the lines of one search.
func (l *Ledger) newest(of windows) windows {
	from, at := max(of.from, l.from), min(of.to, l.to)
	for at > from && !l.lacksProof(at-1) {
		at--
	}
	out, lines := windows{at, at}, int64(0)
	for ; at > from && (l.lacksProof(at-1) || l.windows[at-1-l.from].lines == 0); at-- {
		n := l.windows[at-1-l.from].lines
		if lines += n; lines > proofLines>>l.proofShift && lines > n {
			break
		}
		if n > 0 {
			out.from = at - 1
		}
	}
	return out
}

// different is the lines of a window, and the different times of those of each stream.
type different struct{ lines, times int64 }

func (w *Watch) search(a Account, of windows) ([]different, error) {
	ctx, cancel := context.WithTimeout(w.ctx, w.proofLimit)
	defer cancel()
	found := make([]different, of.to-of.from)
	err := model.Caught(func() error { // a hostile response must not end the process
		return w.Prove(ctx, a, model.TimeRange{Min: of.from * Window, Max: of.to*Window - 1}, func(at, lines, times int64) {
			if at >= of.from && at < of.to {
				c := &found[at-of.from]
				c.lines, c.times = c.lines+lines, c.times+times
			}
		})
	})
	return found, err
}

// takeProofLocked takes what a search has found in some windows, or how it failed.
func (w *Watch) takeProofLocked(l *Ledger, of windows, found []different, took int64, err error) {
	if err != nil {
		alone := of.from+1 == of.to || l.proofShift >= mostProofShift
		l.proofShift = min(l.proofShift+2, mostProofShift)
		l.proofPause = min(max(2*l.proofPause, w.every), int64(longestProofPause))
		if !alone || outcomeOf(err) != "late" {
			return
		}
		l.proofPause = int64(longestProofPause)
	} else {
		l.proofPause = 0
		if took < int64(w.proofLimit/8) {
			l.proofShift = max(l.proofShift-1, 0)
		}
	}
	for at := max(of.from, l.from); at < min(of.to, l.to); at++ {
		c, x := &l.windows[at-l.from], found[at-of.from]
		switch {
		case err != nil: // others are not to wait for it
			c.proof = copies
		case c.lines != x.lines: // some came or went since the count
		case x.lines == x.times:
			c.proof = unique
		default:
			c.proof = copies
		}
	}
}
