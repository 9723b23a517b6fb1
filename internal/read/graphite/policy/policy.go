package policy

import (
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
)

// Archive is one resolution of a policy.
type Archive struct {
	Step   int64 // seconds
	Points int64
}

// Retention returns for how many seconds the archive has points.
func (a Archive) Retention() int64 { return a.Step * a.Points }

// Policy is what applies to a name. It never changes.
type Policy struct {
	// Archives are in the order of their steps, each of which divides the next.
	Archives []Archive
	// Method makes one point of an archive from points of the archive before.
	Method Method
	// XFilesFactor is the share of these points that must be known. Whisper keeps it as a float32.
	XFilesFactor float32
	// Schema and Aggregation are the names of the sections that apply; empty: the defaults.
	Schema, Aggregation string
}

// Window is the part of an archive that a query sees: the slots that begin in [First, End), in Unix seconds.
type Window struct {
	First, End, Step int64
	archive          int
}

// Window returns the window that whisper selects at a time for a query of (from, until]: in the finest
// archive that reaches back to from, in one archive for all of it. It reports false if nothing of it is kept.
// All times are Unix seconds.
func (p *Policy) Window(from, until, now int64) (Window, bool) {
	oldest := now - p.Archives[len(p.Archives)-1].Retention()
	if from > until || from > now || until < oldest {
		return Window{}, false
	}
	from, until = max(from, oldest), min(until, now)
	for i, a := range p.Archives {
		if a.Retention() < now-from {
			continue
		}
		w := Window{First: floor(from, a.Step) + a.Step, End: floor(until, a.Step) + a.Step, Step: a.Step, archive: i}
		if w.First == w.End {
			w.End += a.Step
		}
		return w, true
	}
	panic("BUG: the coarsest archive does not reach back to its own end")
}

// Len returns the number of slots.
func (w Window) Len() int { return int((w.End - w.First) / w.Step) }

// Range returns the times of the rows that Slots needs.
func (w Window) Range() model.TimeRange {
	return model.TimeRange{Min: w.First * second, Max: w.End*second - 1}
}

// floor returns the greatest multiple of step that is not after t.
func floor(t, step int64) int64 {
	if m := t % step; m < 0 {
		return t - m - step
	} else {
		return t - m
	}
}

// Validate applies the rules of whisper to archives in the order of their steps.
func Validate(archives []Archive) error {
	for i, a := range archives {
		if a.Step <= 0 || a.Points <= 0 {
			return fmt.Errorf("step and number of points must be positive, found %ds and %d", a.Step, a.Points)
		}
		if a.Points > maxSeconds/a.Step {
			return fmt.Errorf("%d points of %ds are too long: must be at most %d years", a.Points, a.Step, maxSeconds/(365*86400))
		}
		if i == 0 {
			continue
		}
		finer := archives[i-1]
		switch {
		case finer.Step == a.Step:
			return fmt.Errorf("two archives have the step %ds", a.Step)
		case a.Step%finer.Step != 0:
			return fmt.Errorf("step %ds is not a multiple of %ds, the step of the archive before", a.Step, finer.Step)
		case a.Retention() <= finer.Retention():
			return fmt.Errorf("the archive of step %ds must reach back further than that of step %ds, which has %ds", a.Step, finer.Step, finer.Retention())
		case finer.Points < a.Step/finer.Step:
			return fmt.Errorf("the archive of step %ds has %s: must have at least the %d that make one point of step %ds", finer.Step, english.Plural(int(finer.Points), "point", ""), a.Step/finer.Step, a.Step)
		}
	}
	return nil
}
