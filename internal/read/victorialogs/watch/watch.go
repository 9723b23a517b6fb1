package watch

import (
	"context"
	"errors"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
)

const (
	// Window is the width of the windows of time in which lines are counted. Windows begin at multiples of it.
	Window = int64(5 * time.Minute)
	// maxWindows bounds the windows of an account, to 31 days. Nothing is kept of longer ranges.
	maxWindows = 31 * 24 * 12
	// mostWindows bounds the windows of all accounts, which take 32 bytes each: 16 MiB.
	mostWindows = 512 << 10
	// countLimit is the time that a count may take. One that takes longer is given up.
	countLimit = 3 * time.Second
	// longestPause is the longest time between two counts while counts fail.
	longestPause = 5 * time.Minute
	// Settling is how long lines may be counted before queries find them by their stream.
	Settling = 10 * time.Second
	// SumEvery is how often windows are compared by the sum of hashes, too. Where there are no sums, numbers
	// of lines say nothing after a gap of this time: lines may have been replaced.
	SumEvery = time.Minute
	// sumPause is how long sums are left out after they could not be had in time.
	sumPause = 10 * time.Minute
	// askedFor is how long windows are counted after a query has asked for them, and twice that at most.
	askedFor = 10 * time.Minute
)

// Account names a part of a server that is apart from all others.
type Account struct{ ID, Project uint32 }

// Options build a Watch.
type Options struct {
	// Count counts lines of an account in windows, with sums of hashes of them if these are wanted. It calls
	// each for a window that has lines.
	Count func(ctx context.Context, a Account, r model.TimeRange, sums bool, each func(w, lines int64, sum float64)) error
	// Prove counts lines and their different times by streams in windows, each once or several times; nil:
	// each query looks for copies.
	Prove func(ctx context.Context, a Account, r model.TimeRange, each func(w, lines, times int64)) error
	// Note is told that lines of a range may be others now.
	Note func(a Account, r model.TimeRange)
	// Summed is told of each count with sums, if it is set. It must not call the Watch.
	Summed func(a Account, l *Ledger)
	// Counted and Proved are told how a count ended, and a search for copies: ok, late, or error.
	Counted, Proved func(outcome string)

	Every  time.Duration // how long a count holds
	Lag    time.Duration // the age of windows that are counted
	Limit  time.Duration // of one count; 0: the usual one
	Counts int           // how many run at one time
	// Now returns the time in Unix nanoseconds; nil means the machine's clock.
	Now func() int64
}

// Watch finds out which lines have changed. It counts the lines of an account in windows of time, by one
// request for all queries, and notes the windows whose count is another one than before. It counts only when
// somebody asks. It is safe for concurrent use.
type Watch struct {
	Options
	proofLimit time.Duration // of one search
	// elapsed is the time since some beginning. It never steps back, and all ages are differences of it.
	elapsed func() int64
	every   int64 // how long a count holds
	most    int   // windows of all accounts

	ctx    context.Context
	cancel context.CancelFunc
	counts sync.WaitGroup
	turns  chan struct{} // one for each count that runs
	// proofTurn is that of the search for copies that runs.
	proofTurn chan struct{}

	mu       sync.Mutex
	accounts map[Account]*Ledger
}

// New returns a Watch. It counts nothing yet.
func New(o Options) *Watch {
	w := &Watch{
		Options: o, elapsed: o.Now, every: int64(o.Every), most: mostWindows, proofLimit: proofLimit,
		accounts: map[Account]*Ledger{}, turns: make(chan struct{}, o.Counts), proofTurn: make(chan struct{}, 1),
	}
	if o.Limit == 0 {
		w.Limit = countLimit
	}
	if o.Now == nil {
		begin := time.Now()
		w.Options.Now = func() int64 { return time.Now().UnixNano() }
		// It begins late enough that 0 is the distant past.
		w.elapsed = func() int64 { return int64(time.Hour + time.Since(begin)) }
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Now returns the time that windows are of.
func (w *Watch) Now() int64 { return w.Options.Now() }

// Elapsed returns the time since some beginning. It never steps back.
func (w *Watch) Elapsed() int64 { return w.elapsed() }

// Wait waits for what runs in the background.
func (w *Watch) Wait() { w.counts.Wait() }

// counted is the lines of a window.
type counted struct {
	lines int64
	sum   float64 // of hashes
	// summed says that there is a sum.
	summed bool
	proof  proof
	// unsettled says that the window is noted once more after settling, since queries may not have found the
	// new lines yet. changed is when another number was found; 0: never.
	unsettled bool
	changed   int64
}

// Ledger is the windows of an account, those from one number to another one.
type Ledger struct {
	from, to int64
	windows  []counted
	last     int64 // when somebody asked, by elapsed like all below
	at       int64 // when the last count began
	summedAt int64 // when the last one with sums began
	next     int64 // when the next count may begin
	noSums   int64 // until when sums are left out
	pause    int64 // before the next count, after failures

	// Lines before settled are found by queries if they are counted. pending will be that, from pendingAt on.
	settled, pending, pendingAt int64

	// asked and before are the first windows that were asked for since turned, and before that.
	asked, before, turned int64
	running               chan struct{} // closed when the running count ends; nil: none

	proving    bool
	toProve    windows // that a query has asked for before they were counted
	nextProof  int64   // when copies may be looked for again
	proofPause int64   // before the next search, after failures
	proofShift int     // how often the lines of a search are halved
}

// windowsOf returns the first and the last window of a range.
func windowsOf(r model.TimeRange) (first, last int64) {
	return floorDiv(r.Min, Window), floorDiv(r.Max, Window)
}

// within returns the windows of a range that were counted, with their numbers.
func (l *Ledger) within(r model.TimeRange) iter.Seq2[int64, *counted] {
	return func(yield func(int64, *counted) bool) {
		first, last := windowsOf(r)
		for at := max(first, l.from); at <= last && at < l.to && yield(at, &l.windows[at-l.from]); at++ {
		}
	}
}

// needs returns the windows of a range that are old enough. ok is false if there are none, or too many.
func (w *Watch) needs(r model.TimeRange, now int64) (from, to int64, ok bool) {
	from, to = floorDiv(r.Min, Window), floorDiv(now-int64(w.Lag), Window)
	if r.Max < to*Window {
		to = floorDiv(r.Max, Window) + 1
	}
	return from, to, from < to && floorDiv(now, Window)-from <= maxWindows
}

// Covers reports whether all lines of a range have been counted, so that changes since then will be noted. It
// does not wait: if they have not, they may be later.
func (w *Watch) Covers(a Account, r model.TimeRange) bool {
	now := w.Now()
	from, to, ok := w.needs(r, now)
	if !ok || r.Max >= floorDiv(now-int64(w.Lag), Window)*Window {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.askLocked(a, from)
	if from >= l.from && to <= l.settled {
		return true
	}
	w.startLocked(a, l)
	return false
}

// Check says whether all changes of lines of some accounts from a time on have been noted, but for those of
// the last moments, and up to which time that holds. It counts again where the last count is too old, and
// waits for all such counts at once.
func (w *Watch) Check(ctx context.Context, accounts []Account, r model.TimeRange) (until int64, ok bool) {
	from, to, ok := w.needs(r, w.Now())
	if !ok {
		return 0, false
	}
	now := w.elapsed()
	var running []chan struct{}
	hopeless := false // an account has no count of these windows that could be renewed
	w.mu.Lock()
	for _, a := range accounts {
		l := w.askLocked(a, from)
		old := now-l.at >= w.every
		w.startLocked(a, l) // also a little before the last count is too old
		hopeless = hopeless || from < l.from || l.to == 0 || old && l.running == nil
		if old && l.running != nil {
			running = append(running, l.running)
		}
	}
	if len(running) > 0 && !hopeless {
		w.mu.Unlock()
		for _, ended := range running { // each ends in time, and all have begun
			select {
			case <-ended:
			case <-ctx.Done():
			}
		}
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	until = math.MaxInt64
	for _, a := range accounts {
		l := w.accounts[a]
		// A count that was fresh when the caller came is good enough, however long another one took since.
		if l == nil || from < l.from || min(to, l.settled) <= from || now-l.at >= w.every {
			return 0, false
		}
		until = min(until, l.settled*Window-1)
	}
	return until, true
}

// Lines returns how many lines of a range were counted. ok is false if its beginning was not.
func (w *Watch) Lines(a Account, r model.TimeRange) (n int64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.accounts[a]
	if first, _ := windowsOf(r); l == nil || first < l.from || first >= l.to {
		return 0, false
	}
	for _, c := range l.within(r) {
		n += c.lines
	}
	return n, true
}

// askLocked returns the ledger of an account, and notes the first window that is asked for.
func (w *Watch) askLocked(a Account, from int64) *Ledger {
	l, now := w.accounts[a], w.elapsed()
	if l == nil {
		l = &Ledger{asked: math.MaxInt64, before: math.MaxInt64, turned: now, at: math.MinInt64 / 2, summedAt: math.MinInt64 / 2}
		w.accounts[a] = l
	}
	if now-l.turned >= int64(askedFor) {
		l.before, l.asked, l.turned = l.asked, math.MaxInt64, now
	}
	l.asked, l.last = min(l.asked, from), now
	return l
}

// dropLocked drops the windows of accounts that were not asked for lately, and of those that were asked for
// longest ago while there are too many. They are noted: what becomes of their lines is not seen.
func (w *Watch) dropLocked(now int64) {
	for {
		sum, oldest := 0, Account{}
		var last *Ledger
		for a, l := range w.accounts {
			sum += len(l.windows)
			if l.running == nil && (last == nil || l.last < last.last) {
				oldest, last = a, l
			}
		}
		if last == nil || now-last.last < int64(2*askedFor) && sum <= w.most {
			return
		}
		if len(last.windows) > 0 {
			w.Note(oldest, model.TimeRange{Min: last.from * Window, Max: last.to*Window - 1})
		}
		delete(w.accounts, oldest)
	}
}

// startLocked begins a count, unless one is running or it is too early.
func (w *Watch) startLocked(a Account, l *Ledger) {
	now := w.elapsed()
	if l.running != nil || now < l.next || w.ctx.Err() != nil {
		return
	}
	l.running = make(chan struct{})
	to := floorDiv(w.Now()-int64(w.Lag), Window)
	from := max(min(l.asked, l.before), to-maxWindows)
	sums := now-l.summedAt >= int64(SumEvery) && now >= l.noSums
	w.counts.Go(func() {
		found, err := w.countWindows(a, from, to, sums)
		if err != nil && sums && w.leavesSums(l, now, err) {
			w.Counted(outcomeOf(err))
			now, sums = w.elapsed(), false // what is kept is not to wait for the next turn
			found, err = w.countWindows(a, from, to, sums)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.takeLocked(a, l, now, from, found, sums)
			w.proveCountedLocked(a, l)
		} else {
			w.failedLocked(l, now, err)
		}
		w.Counted(outcomeOf(err))
		close(l.running)
		l.running = nil
		w.dropLocked(w.elapsed())
	})
}

// countWindows counts some windows, in time.
func (w *Watch) countWindows(a Account, from, to int64, sums bool) ([]counted, error) {
	ctx, cancel := context.WithTimeout(w.ctx, w.Limit)
	defer cancel()
	if err := w.turn(ctx); err != nil {
		return nil, err
	}
	defer func() { <-w.turns }()
	found := make([]counted, max(0, to-from))
	each := func(at, lines int64, sum float64) {
		if at >= from && at < to {
			found[at-from] = counted{lines: lines, sum: sum}
		}
	}
	err := model.Caught(func() error {
		return w.Count(ctx, a, model.TimeRange{Min: from * Window, Max: to*Window - 1}, sums, each)
	})
	return found, err
}

// errNoTurn says that as many other counts were running all the time.
var errNoTurn = errors.New("other counts are running")

// turn waits until few enough counts are running.
func (w *Watch) turn(ctx context.Context) error {
	select {
	case w.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errNoTurn
	}
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.DeadlineExceeded):
		return "late"
	}
	return "error"
}

// isLate reports whether a count that began at a time has failed since it took too long.
func (w *Watch) isLate(began int64, err error) bool {
	// The server may give up a little earlier than the client, and says so in words of its own.
	return err != errNoTurn && (errors.Is(err, context.DeadlineExceeded) || w.elapsed()-began >= int64(w.Limit/2))
}

// leavesSums reports whether a count with sums has failed because of them. They are left out for a while
// then.
func (w *Watch) leavesSums(l *Ledger, began int64, err error) bool {
	if w.ctx.Err() != nil || !w.isLate(began, err) && !errors.Is(err, model.ErrInvalid) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.noSums = w.elapsed() + int64(sumPause)
	return true
}

// failedLocked says when it may be tried again, and with less if that may help.
func (w *Watch) failedLocked(l *Ledger, began int64, err error) {
	now := w.elapsed()
	switch {
	case w.isLate(began, err) || l.pause > 0:
		// The next count is of what is asked for then.
		l.asked, l.before = math.MaxInt64, math.MaxInt64
		fallthrough
	default:
		l.pause = min(max(2*l.pause, w.every), int64(longestPause))
	}
	l.next = now + max(l.pause, w.every)
}

// takeLocked takes a count that began at a time, and notes what has changed.
func (w *Watch) takeLocked(a Account, l *Ledger, began, from int64, found []counted, sums bool) {
	gap := began-l.at > int64(SumEvery)
	for i := range found {
		at, c := from+int64(i), &found[i]
		c.summed = sums
		if at >= l.to && l.to > 0 {
			continue // nothing that was kept depends on it
		}
		if at < l.from || at >= l.to {
			c.changed, c.unsettled = began, true
			continue
		}
		old := &l.windows[at-l.from]
		switch {
		// The first sum of a window says nothing about lines that were replaced before it.
		case old.lines != c.lines, sums && !(old.summed && old.sum == c.sum), gap && !sums:
			c.changed, c.unsettled = began, true
			continue
		case !sums:
			c.sum, c.summed = old.sum, old.summed
		}
		c.changed, c.unsettled, c.proof = old.changed, old.unsettled, old.proof
	}
	w.noteLocked(a, began, from, found)
	end := from + int64(len(found))
	if end < l.to {
		// The clock was set back. The windows since then are counted again some day, as if they were new.
		w.Note(a, model.TimeRange{Min: max(end, l.from) * Window, Max: l.to*Window - 1})
		l.settled, l.pending = min(l.settled, end), min(l.pending, end)
	}
	if from < l.from || from > l.from || len(found) != len(l.windows) {
		l.windows = nil // the old ones are not kept alive
	}
	// The next count ends before this one is too old, if somebody asks in time. At most half of the time is
	// spent counting.
	took := w.elapsed() - began
	l.from, l.to, l.windows, l.at, l.pause, l.next = from, end, found, began, 0, began+max(w.every-max(w.every/4, 2*took), 2*took)
	if sums {
		l.summedAt = began
	}
	if began-l.pendingAt >= int64(Settling) {
		l.settled = l.pending
		if l.to > l.pending {
			l.pending, l.pendingAt = l.to, began
		}
	}
	if sums && w.Summed != nil {
		w.Summed(a, l)
	}
}

// noteLocked notes windows that have changed in this count, or have settled.
func (w *Watch) noteLocked(a Account, began, from int64, found []counted) {
	first := -1
	for i := 0; i <= len(found); i++ {
		changed := false
		if i < len(found) && found[i].unsettled {
			c := &found[i]
			settled := began-c.changed >= int64(Settling)
			if changed = settled || c.changed == began; settled {
				c.unsettled = false
			}
		}
		switch {
		case changed && first < 0:
			first = i
		case !changed && first >= 0:
			w.Note(a, model.TimeRange{Min: (from + int64(first)) * Window, Max: (from+int64(i))*Window - 1})
			first = -1
		}
	}
}

// Close ends the running counts.
func (w *Watch) Close() {
	w.mu.Lock() // no count is about to start
	w.cancel()
	w.mu.Unlock()
	w.counts.Wait()
}

func floorDiv(a, b int64) int64 {
	rest := a % b
	if rest < 0 {
		rest += b
	}
	return (a - rest) / b
}
