package changes

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// window is the width of the windows of time. Dashboards end now, so only the end of a range changes often.
const window = int64(15 * time.Minute)

// places is the size of the table: 1 MiB. A thousand tenants that send rows of now note four windows each in
// an hour.
const places = 1 << 17

// maxWindows bounds the windows that are looked at for one response: 40 days. Wider ranges hold until any row
// of the tenant is written.
const maxWindows = 40 * 96

// Log notes changes. It is safe for concurrent use, and takes a constant amount of memory.
type Log struct {
	clock atomic.Uint64
	// whole and lists are the numbers of the last changes that concern every response, and every list.
	whole, lists atomic.Uint64
	seed         maphash.Seed
	table        []atomic.Uint64
	now          func() int64
}

// New returns a log without changes. now returns the time in Unix nanoseconds; nil: the clock of the machine.
func New(now func() int64) *Log {
	if now == nil {
		now = func() int64 { return time.Now().UnixNano() }
	}
	return &Log{seed: maphash.MakeSeed(), table: make([]atomic.Uint64, places), now: now}
}

// Clock returns the number of the last change.
func (l *Log) Clock() uint64 { return l.clock.Load() }

// Applied notes the rows, the new series and the control of a batch that queries see now.
func (l *Log) Applied(b *model.Batch) {
	if b.Control.Kind != 0 {
		l.Whole()
		return
	}
	n, about := l.clock.Add(1), l.about(b.Tenant, b.Signal)
	raise(l.place(about, anyRow), n)
	if b.Labels.Len() > 0 {
		raise(l.place(about, anySeries), n)
	}
	for _, f := range model.Families() {
		l.noteRows(about, b.Columns(f).Times, n)
	}
}

// noteRows notes the windows of some times. Rows of one window mostly follow each other.
func (l *Log) noteRows(about uint64, times []int64, n uint64) {
	var last int64
	for i, t := range times {
		if w := windowOf(t); i == 0 || w != last {
			raise(l.place(about, uint64(w)), n)
			last = w
		}
	}
}

// Rows notes that rows and series of a tenant in a range may have come or gone.
func (l *Log) Rows(tenant string, s model.Signal, r model.TimeRange) {
	first, last := windowOf(r.Min), windowOf(r.Max)
	if last-first >= maxWindows {
		l.Whole()
		return
	}
	n, about := l.clock.Add(1), l.about(tenant, s)
	raise(l.place(about, anyRow), n)
	raise(l.place(about, anySeries), n)
	for w := first; w <= last; w++ {
		raise(l.place(about, uint64(w)), n)
	}
}

// Whole notes a change that may concern every response.
func (l *Log) Whole() { raise(&l.whole, l.clock.Add(1)) }

// Lists notes a change that may concern every list of labels.
func (l *Log) Lists() { raise(&l.lists, l.clock.Add(1)) }

// Cause says why a response does not hold any more.
type Cause string

// The causes.
const (
	None    Cause = ""        // it holds
	Expired Cause = "expired" // retention has come to its rows
	Whole   Cause = "whole"   // a change of the catalogue, or a deletion
	Lists   Cause = "lists"   // new series, or series that have left the head
	Rows    Cause = "rows"    // rows in its range
	Unknown Cause = "unknown" // another server does not say what has changed
)

// Causes returns all causes but None.
func Causes() []Cause { return []Cause{Expired, Whole, Lists, Rows, Unknown} }

// Changed says why a response to some tenants, begun when the clock was at, may be another one now.
func (l *Log) Changed(at uint64, tenants []string, r *model.Reach) Cause {
	if now := l.now(); now > r.Until() || now < r.Since() {
		return Expired
	}
	if l.clock.Load() == at {
		return None
	}
	if l.whole.Load() > at {
		return Whole
	}
	for _, s := range [...]model.Signal{model.Metrics, model.Logs} {
		x := r.Of(s)
		if x.Lists && l.lists.Load() > at {
			return Lists
		}
		for _, t := range tenants {
			if c := l.changed(at, l.about(t, s), &x); c != None {
				return c
			}
		}
	}
	return None
}

func (l *Log) changed(at, about uint64, x *model.Reached) Cause {
	if x.Lists && l.place(about, anySeries).Load() > at {
		return Lists
	}
	if !x.Any || l.place(about, anyRow).Load() <= at {
		return None
	}
	first, last := windowOf(x.Range.Min), windowOf(x.Range.Max)
	if last-first >= maxWindows {
		return Rows
	}
	for w := first; w <= last; w++ {
		if l.place(about, uint64(w)).Load() > at {
			return Rows
		}
	}
	return None
}

// Notes that are not about a window have numbers that no window has: those of all times are below 2^54.
const (
	anyRow    = 1 << 62
	anySeries = 1<<62 + 1
)

// about hashes a tenant and a signal.
func (l *Log) about(tenant string, s model.Signal) uint64 {
	return maphash.String(l.seed, tenant) + uint64(s)*0x9e3779b97f4a7c15
}

// place returns the place of a note.
func (l *Log) place(about, what uint64) *atomic.Uint64 {
	hi, lo := bits.Mul64(about^what*0xff51afd7ed558ccd, 0x9e3779b97f4a7c15)
	return &l.table[(hi^lo)%places]
}

// windowOf rounds down, also before 1970.
func windowOf(t int64) int64 {
	w := t / window
	if t%window < 0 {
		w--
	}
	return w
}

// raise sets a number that only grows.
func raise(p *atomic.Uint64, n uint64) {
	for {
		was := p.Load()
		if was >= n || p.CompareAndSwap(was, n) {
			return
		}
	}
}
