package policy

import (
	"math"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// secondsPerDay is what the step of an archive must divide to have rollups: blocks are cut between days, and
// a slot must lie in one block.
const secondsPerDay = 86400

// HasRollups reports whether rollups are made for an archive, by its number from 0.
func (p *Policy) HasRollups(archive int) bool {
	return archive > 0 && archive < len(p.Archives) && secondsPerDay%p.Archives[archive].Step == 0
}

// RollupStep returns the step of the rollups that a window is best read from; 0: there are none.
func (p *Policy) RollupStep(w Window) int64 {
	for i := w.archive; i > 0; i-- {
		if p.HasRollups(i) {
			return p.Archives[i].Step
		}
	}
	return 0
}

// RollupSteps returns the steps of all rollups that are made for the policy, in seconds.
func (p *Policy) RollupSteps() []int64 {
	var steps []int64
	for i, a := range p.Archives {
		if p.HasRollups(i) {
			steps = append(steps, a.Step)
		}
	}
	return steps
}

// roller gathers rollups of the archive that is laid out.
type roller struct {
	method Method
	now    model.Rollup
	sum    gathered
	least  gathered
	most   gathered
	own    gathered
	any    bool // the slot has a point, whether or not it has a value
	blob   []byte
	dst    *model.Rows
}

// Roll appends the rollups of an archive to dst, made of rows that are in the order of their times: a row for
// each slot that has a point. A slot with too few points for the archives before has a row without any, so
// that [Conflicts] sees points that come later. [Policy.Slots] makes the same of them as of the rows, but for
// rows of slots of longer steps, which are copied. The archive is named by its step.
func (p *Policy) Roll(step int64, rows, dst *model.Rows) {
	at := slices.IndexFunc(p.Archives, func(a Archive) bool { return a.Step == step })
	if !p.HasRollups(at) {
		return
	}
	g := grid{policy: p, window: Window{Step: step, archive: at}, roll: &roller{method: p.Method, dst: dst}}
	g.roll.now.Step = step
	g.layOut(rows)
}

// add adds a point that stands for so many.
func (r *roller) add(v float64, points int64) {
	sum := Sum
	if r.method == Average || r.method == AvgZero {
		sum = Average // points of longer steps weigh more
	}
	r.sum.add(sum, v, points)
	r.least.add(Min, v, points)
	r.most.add(Max, v, points)
	if r.now.Last = v; r.method == AbsMax || r.method == AbsMin {
		r.own.add(r.method, v, points)
		r.now.HasOwn = true
	}
}

// finish writes the rollup of a slot, if the slot has any point.
func (r *roller) finish(l *level) {
	x := &r.now
	if x.Given = l.direct; l.direct {
		x.Last = l.decided
	}
	if l.direct || r.any {
		x.Count, x.Sum, x.Min, x.Max, x.Own = r.sum.known, r.sum.value, r.least.value, r.most.value, r.own.value
		r.blob = model.AppendRollup(r.blob[:0], x)
		r.dst.AppendBlob(model.RollupTime(l.begin/second, x.Step), model.KindHistogram, r.blob, 0)
	}
	*x = model.Rollup{Step: x.Step}
	r.sum, r.least, r.most, r.own, r.any = gathered{}, gathered{}, gathered{}, gathered{}, false
}

// columns takes a rollup of a slot.
func (g *grid) columns(start int64, r *model.Rollup) {
	if r.Count == 0 && !r.Given {
		return
	}
	m := g.policy.Method
	for i, a := range g.policy.Archives {
		if a.Step != r.Step {
			continue
		}
		switch l := &g.levels[i]; {
		case i > g.top():
		case r.Given:
			l.direct, l.decided = true, r.Last
		case i == 0: // this archive has another step now
			l.direct, l.decided = true, valueOf(m, r)
		default:
			l.addRollup(m, r)
			l.known = min(l.known, l.slots) // points that came again are not counted twice
		}
		return
	}
	g.rollup(start, r.Step, valueOf(m, r))
}

// valueOf returns the value of a slot whose archive is not known any more.
func valueOf(m Method, r *model.Rollup) float64 {
	if r.Given {
		return r.Last
	}
	var g gathered
	g.addRollup(m, r)
	return g.result(m, g.known)
}

// addRollup adds the points of a rollup.
func (g *gathered) addRollup(m Method, r *model.Rollup) {
	switch m {
	case Average, AvgZero, Sum:
		if g.known == 0 {
			g.value = r.Sum
		} else {
			g.value += r.Sum
		}
	case Last:
		g.value = r.Last
	case Max:
		g.add(m, r.Max, 0)
	case Min:
		g.add(m, r.Min, 0)
	case AbsMax, AbsMin:
		g.add(m, ownOf(m, r), 0)
	}
	g.known += r.Count
}

// ownOf returns the value of greatest or least size. It is a guess if the rollup was made for another method.
func ownOf(m Method, r *model.Rollup) float64 {
	switch {
	case r.HasOwn:
		return r.Own
	case m == AbsMax && math.Abs(r.Min) > math.Abs(r.Max), m == AbsMin && math.Abs(r.Min) < math.Abs(r.Max):
		return r.Min
	}
	return r.Max
}

// Conflicts reports whether rows have a point in a slot that also has a rollup. Then the point may be one of
// those that the rollup is made of.
func Conflicts(rows *model.Rows) bool {
	for i := range rows.Kinds {
		step := rows.RollupStep(i)
		if step == 0 {
			continue
		}
		start := rows.Times[i] + 1 - step*second
		for k := i - 1; k >= 0 && rows.Times[k] >= start; k-- {
			if rows.Kind(k) == model.KindFloat && rollupStep(rows.Times[k], rows.Start(k)) <= step && rows.Values[k] != model.StaleNaN {
				return true
			}
		}
	}
	return false
}

// OneStep leaves out rollups where there are some of several steps for the same time: a file that changed has
// made them. Of each day the longest step stays that the slots of the window consist of, else the shortest.
func (p *Policy) OneStep(w Window, rows *model.Rows) *model.Rows {
	if !several(rows) {
		return rows
	}
	steps := map[int64]int64{} // by day
	fits := func(step int64) bool { return step <= w.Step && w.Step%step == 0 }
	dayOf := func(i int) int64 { return floor(rows.Times[i], secondsPerDay*second) }
	for i := range rows.Times {
		step, day := rows.RollupStep(i), dayOf(i)
		if best := steps[day]; step > 0 && (best == 0 || fits(step) && (!fits(best) || step > best) || !fits(step) && !fits(best) && step < best) {
			steps[day] = step
		}
	}
	kept := &model.Rows{}
	from := 0
	for i := range rows.Times {
		if step := rows.RollupStep(i); step > 0 && step != steps[dayOf(i)] {
			kept.AppendRows(rows, from, i)
			from = i + 1
		}
	}
	kept.AppendRows(rows, from, rows.Len())
	return kept
}

// several reports whether rows have rollups of more than one step.
func several(rows *model.Rows) bool {
	first := int64(0)
	for i := range rows.Kinds {
		if step := rows.RollupStep(i); step > 0 && first == 0 {
			first = step
		} else if step > 0 && step != first {
			return true
		}
	}
	return false
}
