package load

import (
	"math"
	"sort"
)

// flushes is the order in which an agent's points leave it, counted in rounds from the agent's first one. Without
// disorder a flush has the points of its round. With it, every flush puts as many off, and repeats as many: those of a
// window of metrics that begins anywhere and goes around. So the number of points before any one is a formula, and the
// proof by what the server has received holds for disorder as well.
//
//	[own points, from behind the window on][the first of them again][those of an earlier round's window]
type flushes struct {
	metrics       int
	late, twice   int // points of a flush
	lag           int // rounds by which late ones are late
	seed          uint64
	window        bool // whether there is one
	lastThatWaits int  // first round of which nothing is put off
}

// flushes returns the order of an agent's points.
func (a *Agents) flushes(t Timeline, agent int) flushes {
	f := flushes{metrics: a.Metrics, seed: a.Seed, lastThatWaits: math.MaxInt}
	d := &a.Disorder
	// No flush is empty.
	f.late = min(int(math.Round(d.Late.Share*float64(a.Metrics))), a.Metrics-1)
	f.twice = min(int(math.Round(d.Twice*float64(a.Metrics))), a.Metrics-f.late)
	f.window = f.late+f.twice > 0
	if f.late > 0 {
		f.lag = max(1, int(int64(d.Late.By)/t.Step))
	}
	if d.Rounds > 0 {
		f.lastThatWaits = max(0, d.Rounds-a.first(agent)-f.lag)
	}
	return f
}

// putOff returns how many points of a round are late.
func (f *flushes) putOff(round int) int {
	if round < f.lastThatWaits {
		return f.late
	}
	return 0
}

// own returns how many points of its own round a flush has, repeats not counted.
func (f *flushes) own(round int) int { return f.metrics - f.putOff(round) }

// size returns how many points a flush has.
func (f *flushes) size(round int) int {
	n := f.own(round) + f.twice
	if f.late > 0 && round >= f.lag {
		n += f.putOff(round - f.lag)
	}
	return n
}

// before returns how many points go before a flush.
func (f *flushes) before(round int) uint64 {
	n := round * (f.metrics + f.twice)
	if f.late > 0 {
		n -= f.late * min(round, f.lastThatWaits)
		n += f.late * min(max(0, round-f.lag), f.lastThatWaits)
	}
	return uint64(n)
}

// reached returns the number of flushes of which anything is among the first n points.
func (f *flushes) reached(n uint64) int {
	most := int(n/uint64(max(1, f.metrics-f.late))) + f.lag + 1
	return sort.Search(most, func(round int) bool { return f.before(round) >= n })
}

// from returns the first metric of the window of a round.
func (f *flushes) from(agent, round int) int {
	if !f.window {
		return 0
	}
	return int(draw(f.seed^saltLate, uint64(agent), uint64(round)) % uint64(f.metrics))
}

// slot returns which point of its flush is of what metric, and whether it is of an earlier round.
func (f *flushes) slot(i, round, from, lateFrom int) (metric int, late bool) {
	own := f.own(round)
	switch {
	case i < own:
		metric = from + f.late + i
	case i < own+f.twice:
		metric = from + f.late + i - own
	default:
		metric, late = lateFrom+i-own-f.twice, true
	}
	if metric >= f.metrics {
		metric -= f.metrics
	}
	if metric >= f.metrics {
		metric -= f.metrics
	}
	return metric, late
}

// sent returns in which flush a metric's point of a round is sent first, and as which of it.
func (f *flushes) sent(agent, metric, round int) (flush, slot int) {
	at := metric - f.from(agent, round)
	if at < 0 {
		at += f.metrics
	}
	if at < f.putOff(round) {
		later := round + f.lag
		return later, f.own(later) + f.twice + at
	}
	if at -= f.late; at < 0 {
		at += f.metrics // its window waits for nothing
	}
	return round, at
}
