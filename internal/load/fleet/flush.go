package fleet

import (
	"math"
	"sort"

	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/random"
)

// Flushes is the order in which an agent sends its points. Rounds are counted from the agent's first one.
// Without disorder a flush has the points of its round. With disorder, every flush delays and repeats the
// same number of points: those of a window of metrics that starts anywhere and wraps around. So a formula
// gives the number of points before any other, and the server's counter of received points proves disordered
// loads too.
//
//	[own points, starting after the window][the first of them repeated][points of an earlier round's window]
type Flushes struct {
	Metrics       int
	Late, Twice   int // points of a flush
	Lag           int // rounds by which late ones are late
	seed          uint64
	Window        bool // whether there is one
	lastThatWaits int  // first round without delayed points
}

// Flushes returns the order of an agent's points.
func (a *Agents) Flushes(t pace.Timeline, agent int) Flushes {
	f := Flushes{Metrics: a.Metrics, seed: a.Seed, lastThatWaits: math.MaxInt}
	d := &a.Disorder
	// No flush is empty.
	f.Late = min(int(math.Round(d.Late.Share*float64(a.Metrics))), a.Metrics-1)
	f.Twice = min(int(math.Round(d.Twice*float64(a.Metrics))), a.Metrics-f.Late)
	f.Window = f.Late+f.Twice > 0
	if f.Late > 0 {
		f.Lag = max(1, int(int64(d.Late.By)/t.Step))
	}
	if d.Rounds > 0 {
		f.lastThatWaits = max(0, d.Rounds-a.First(agent)-f.Lag)
	}
	return f
}

// putOff returns how many points of a round are delayed.
func (f *Flushes) putOff(round int) int {
	if round < f.lastThatWaits {
		return f.Late
	}
	return 0
}

// own returns how many points of its own round a flush has, repeats not counted.
func (f *Flushes) own(round int) int { return f.Metrics - f.putOff(round) }

// Size returns how many points a flush has.
func (f *Flushes) Size(round int) int {
	n := f.own(round) + f.Twice
	if f.Late > 0 && round >= f.Lag {
		n += f.putOff(round - f.Lag)
	}
	return n
}

// Before returns how many points go before a flush.
func (f *Flushes) Before(round int) uint64 {
	n := round * (f.Metrics + f.Twice)
	if f.Late > 0 {
		n -= f.Late * min(round, f.lastThatWaits)
		n += f.Late * min(max(0, round-f.Lag), f.lastThatWaits)
	}
	return uint64(n)
}

// Reached returns how many flushes have at least one of the first n points.
func (f *Flushes) Reached(n uint64) int {
	most := int(n/uint64(max(1, f.Metrics-f.Late))) + f.Lag + 1
	return sort.Search(most, func(round int) bool { return f.Before(round) >= n })
}

// From returns the first metric of the window of a round.
func (f *Flushes) From(agent, round int) int {
	if !f.Window {
		return 0
	}
	return int(random.Draw(f.seed^random.SaltLate, uint64(agent), uint64(round)) % uint64(f.Metrics))
}

// Slot returns the metric of a point of a flush, and whether the point is of an earlier round.
func (f *Flushes) Slot(i, round, from, lateFrom int) (metric int, late bool) {
	own := f.own(round)
	switch {
	case i < own:
		metric = from + f.Late + i
	case i < own+f.Twice:
		metric = from + f.Late + i - own
	default:
		metric, late = lateFrom+i-own-f.Twice, true
	}
	if metric >= f.Metrics {
		metric -= f.Metrics
	}
	if metric >= f.Metrics {
		metric -= f.Metrics
	}
	return metric, late
}

// Sent returns the flush in which a metric's point of a round is first sent, and its position there.
func (f *Flushes) Sent(agent, metric, round int) (flush, slot int) {
	at := metric - f.From(agent, round)
	if at < 0 {
		at += f.Metrics
	}
	if at < f.putOff(round) {
		later := round + f.Lag
		return later, f.own(later) + f.Twice + at
	}
	if at -= f.Late; at < 0 {
		at += f.Metrics // the points of its window are not delayed
	}
	return round, at
}
