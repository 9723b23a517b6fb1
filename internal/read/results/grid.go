package results

import (
	"math"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Steps are the times at which a leaf is evaluated: Start, Start+Step, and so on, Count of them, in Unix
// nanoseconds.
type Steps struct {
	Start, Step int64
	Count       int
}

// leastSteps is the number of steps of an extent at least, unless a leaf says otherwise. An extent costs some
// memory and time of its own.
const leastSteps = 4

// grid is all steps at some distance from each other that a run of steps is a part of. Extent k has the steps
// [k*size, (k+1)*size), and step i is at phase + i*step.
type grid struct {
	step, phase int64
	size        int64
	first       int64 // the step that the run begins with
}

// gridOf returns the grid of steps. It is false where times may overflow.
func gridOf(s Steps, split time.Duration, least int) (g grid, ok bool) {
	const most = math.MaxInt64 / 8 // of spans; times are less than four of it
	if s.Step <= 0 || s.Count < 2 || s.Step > most/int64(s.Count) || s.Start > 4*most || s.Start < -4*most {
		return g, false
	}
	g = grid{step: s.Step, size: max(int64(least), int64(split)/s.Step), first: floorDiv(s.Start, s.Step)}
	g.phase = s.Start - g.first*s.Step
	return g, g.step <= most/g.size
}

func (g *grid) time(step int64) int64 { return g.phase + step*g.step }

// times returns the times of rows that the steps of an extent depend on.
func (g *grid) times(extent int64, l *Leaf) model.TimeRange {
	return model.TimeRange{Min: g.time(extent*g.size) - l.Before, Max: g.time((extent+1)*g.size-1) + l.After}
}

// Leaf is a part of a query that has a value at each step.
type Leaf struct {
	// Tenants are whose rows it depends on.
	Tenants []string
	Signal  model.Signal
	// Text says what is evaluated: leaves of the same text, tenants and signal have the same value at a step.
	Text string
	// Before and After are how far rows that the value at a step depends on are from the step, at most, in
	// nanoseconds. Either may be negative.
	Before, After int64
	// LeastSteps is the number of steps of an extent at least; 0: a few. Values that cost much at few steps
	// have short extents.
	LeastSteps int
}

// name names the values of a leaf on a grid.
func (g *grid) name(l *Leaf) string {
	b := make([]byte, 0, 64+len(l.Text))
	for _, n := range []int64{int64(l.Signal), g.step, g.phase, g.size, l.Before, l.After} {
		b = append(strconv.AppendInt(b, n, 36), ' ')
	}
	return string(append(append(append(b, tenantsOf(l)...), 0), l.Text...))
}

// tenantsOf returns the tenants as one text, for a key and as the owner of memory.
func tenantsOf(l *Leaf) string {
	if len(l.Tenants) == 1 {
		return l.Tenants[0]
	}
	var b []byte
	for i, t := range l.Tenants {
		if i > 0 {
			b = append(b, '|')
		}
		b = append(b, t...)
	}
	return string(b)
}
