package model

import (
	"math"
	"sync"
)

// Reach is what a response depends on: the rows and the lists of labels that its request has looked at. It
// may be used by several goroutines. The zero value depends on nothing.
type Reach struct {
	mu      sync.Mutex
	signals [Logs + 1]Reached
	bounded bool // until is set
	until   int64
	dated   bool // since is set
	since   int64

	further      bool // furtherRange is set
	furtherRange TimeRange
}

// Reached is the reach in one signal.
type Reached struct {
	// Any says that rows were looked at: those of the range.
	Any   bool
	Range TimeRange
	// Lists says that lists of names or values of labels were looked at, whatever their times.
	Lists bool
}

// AddRows adds the rows of a range.
func (r *Reach) AddRows(s Signal, t TimeRange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &r.signals[s]
	if !x.Any {
		x.Any, x.Range = true, t
		return
	}
	x.Range = TimeRange{Min: min(x.Range.Min, t.Min), Max: max(x.Range.Max, t.Max)}
}

// AddLists adds the lists of labels.
func (r *Reach) AddLists(s Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signals[s].Lists = true
}

// Bound says that the response holds no longer than until, in Unix nanoseconds.
func (r *Reach) Bound(until int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.bounded || until < r.until {
		r.bounded, r.until = true, until
	}
}

// Lasts says that the response holds from now on for a time, by a clock in Unix nanoseconds. It does not hold
// longer if the clock is set back.
func (r *Reach) Lasts(now, time int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until := now + time; !r.bounded || until < r.until {
		r.bounded, r.until = true, until
	}
	if !r.dated || now > r.since {
		r.dated, r.since = true, now
	}
}

// AddFurther says that rows of a range were looked at that another server has. Changes of them are noted only
// when somebody looks for them.
func (r *Reach) AddFurther(t TimeRange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.further {
		t = TimeRange{Min: min(r.furtherRange.Min, t.Min), Max: max(r.furtherRange.Max, t.Max)}
	}
	r.further, r.furtherRange = true, t
}

// Further returns the range of the rows of another server, and whether there is one.
func (r *Reach) Further() (t TimeRange, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.furtherRange, r.further
}

// Of returns the reach in a signal.
func (r *Reach) Of(s Signal) Reached {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.signals[s]
}

// Until returns the time until which the response holds, if nothing changes.
func (r *Reach) Until() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.bounded {
		return math.MaxInt64
	}
	return r.until
}

// Since returns the time before which the response does not hold, by a clock that was set back.
func (r *Reach) Since() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dated {
		return math.MinInt64
	}
	return r.since
}

// Clone returns a copy.
func (r *Reach) Clone() *Reach {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Reach{signals: r.signals, bounded: r.bounded, until: r.until, dated: r.dated, since: r.since, further: r.further, furtherRange: r.furtherRange}
}
