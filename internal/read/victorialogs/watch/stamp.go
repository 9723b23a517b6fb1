package watch

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// Stamp is what is known of the lines of a range.
type Stamp struct {
	Text    []byte // the counts and sums
	Changed int64  // when the last of them did, by Elapsed
	Settled bool   // queries find all lines that were counted
	Unique  bool   // no line is there twice
}

// Stamp returns the stamp of a range. ok is false where there is none.
func (l *Ledger) Stamp(r model.TimeRange) (s Stamp, ok bool) {
	first, last := windowsOf(r)
	if first < l.from || last >= l.to {
		return s, false
	}
	s.Settled, s.Unique = last < l.settled, true
	for _, c := range l.within(r) {
		if !c.summed {
			return s, false
		}
		s.Text = binary.AppendVarint(s.Text, c.lines)
		s.Text = binary.LittleEndian.AppendUint64(s.Text, math.Float64bits(c.sum))
		s.Settled, s.Changed, s.Unique = s.Settled && !c.unsettled, max(s.Changed, c.changed), s.Unique && !c.mayHaveCopies()
	}
	return s, true
}

// HasCounted reports whether lines of an account were counted, so that the next count is not the first one.
func (w *Watch) HasCounted(a Account) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.accounts[a]
	return l != nil && l.to != 0
}

// Began returns when the last count began, by Elapsed.
func (l *Ledger) Began() int64 { return l.at }

// Stamps calls each with the stamps of some ranges of an account, which are in order, where they have one. It
// waits for a count where none is fresh.
func (w *Watch) Stamps(ctx context.Context, a Account, n int, at func(i int) model.TimeRange, each func(i int, s Stamp)) {
	from, _, ok := w.needs(model.TimeRange{Min: at(0).Min, Max: at(n - 1).Max}, w.Now())
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.elapsed()
	l := w.askLocked(a, from)
	if now-l.at >= w.every || from < l.from || l.to == 0 {
		w.startLocked(a, l)
		if running := l.running; running != nil {
			w.mu.Unlock()
			select {
			case <-running:
			case <-ctx.Done():
			}
			w.mu.Lock()
		}
		if l = w.accounts[a]; l == nil || now-l.at >= w.every {
			return
		}
	}
	if now-l.summedAt >= max(2*int64(SumEvery), w.every+int64(SumEvery)) {
		return // sums are left out for a while, and those of before do not show lines that were replaced
	}
	for i := range n {
		if s, ok := l.Stamp(at(i)); ok {
			each(i, s)
		}
	}
}
