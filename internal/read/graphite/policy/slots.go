package policy

import (
	"math"

	"github.com/shaledb/shale/internal/model"
)

const second = int64(1e9)

// Rollup returns the time and the start of the row that stands for a slot of an archive, in Unix
// nanoseconds. The slot begins at a Unix second and has a step in seconds; archive is the number of the
// archive in its file, from 1, as the finest one has no rollups.
//
// The row covers its slot: it starts with it, and has a time some milliseconds before its end, one for each
// archive. So it has the time of no point of the finest archive, which are at whole seconds, and of no other
// archive.
func Rollup(slot, step int64, archive int) (t, start int64) {
	return (slot+step)*second - int64(archive)*1e6, slot * second
}

// maxArchives bounds the archives of a policy, and the milliseconds that Rollup takes from a time.
const maxArchives = 16

// rollupStep returns the step of a row that Rollup made, and 0 of all other rows.
func rollupStep(t, start int64) int64 {
	if start == 0 || t <= start || start%second != 0 {
		return 0
	}
	step := (t - start + second - 1) / second
	if short := start + step*second - t; short == 0 || short%1e6 != 0 || short > maxArchives*1e6 {
		return 0
	}
	return step
}

// level is the current slot of one archive.
type level struct {
	step, slots int64 // slots: of the archive before, that make one
	begin, end  int64 // times are in nanoseconds
	gathered
	direct  bool // a row gives the value as it is
	decided float64
}

// grid lays rows out.
type grid struct {
	policy *Policy
	window Window
	levels [maxArchives]level
	dst    []float64
	roll   *roller // nil: values are laid out
}

// Slots appends the values of a window, which was made by this policy, to dst: NaN where none is known. Rows
// must be in the window's range, in the order of their times; those that are not floats are left out. Of
// several points in one slot of the finest archive the latest counts. A point of another archive is made if
// enough points of the archive before are known, or is a rollup.
func (p *Policy) Slots(w Window, rows *model.Rows, dst []float64) []float64 {
	begin := len(dst)
	for range w.Len() {
		dst = append(dst, math.NaN())
	}
	g := grid{policy: p, window: w, dst: dst[begin:]}
	g.layOut(rows)
	return dst
}

// layOut takes all rows.
func (g *grid) layOut(rows *model.Rows) {
	p := g.policy
	for i := range g.top() + 1 {
		g.levels[i] = level{step: p.Archives[i].Step * second, begin: math.MinInt64, end: math.MinInt64}
		if i > 0 {
			g.levels[i].slots = p.Archives[i].Step / p.Archives[i-1].Step
		}
	}
	for i, t := range rows.Times {
		if rows.Kind(i) != model.KindFloat {
			var r model.Rollup
			if rows.Kind(i) == model.KindHistogram && model.ParseRollup(rows.Blob(i), &r) {
				g.advance(t)
				g.columns((t+1)/second-r.Step, &r)
			}
			continue
		}
		if rows.Values[i] == model.StaleNaN {
			continue
		}
		v := math.Float64frombits(rows.Values[i])
		g.advance(t)
		if step := rollupStep(t, rows.Start(i)); step > p.Archives[0].Step {
			if !g.rollup(rows.Start(i)/second, step, v) {
				if g.roll != nil {
					g.roll.dst.AppendRows(rows, i, i+1)
				}
				continue
			}
			g.touch()
			continue
		}
		g.touch()
		l := &g.levels[0]
		l.direct, l.decided = true, v
	}
	g.advance(math.MaxInt64)
}

// touch notes that the slot of the archive that is laid out has a point.
func (g *grid) touch() {
	if g.roll != nil {
		g.roll.any = true
	}
}

// top returns the number of the archive that is laid out.
func (g *grid) top() int { return g.window.archive }

// advance ends the slots that end before a time. Slots of an archive lie within those of the next.
func (g *grid) advance(t int64) {
	if t < g.levels[0].end {
		return
	}
	for i := 0; i <= g.top(); i++ {
		l := &g.levels[i]
		if t < l.end {
			return
		}
		g.finish(i)
		l.gathered, l.direct = gathered{}, false
		switch {
		case t == math.MaxInt64:
			continue
		case t-l.step < l.end: // the next slot, without a division
			l.begin = l.end
		default:
			l.begin = floor(t, l.step)
		}
		l.end = l.begin + l.step
	}
}

// finish hands the value of a slot to the next archive, or to the result.
func (g *grid) finish(i int) {
	l := &g.levels[i]
	v := l.decided
	if i == g.top() && g.roll != nil {
		g.roll.finish(l)
		return
	}
	if !l.direct {
		if l.known == 0 || float64(l.known)/float64(l.slots) < float64(g.policy.XFilesFactor) {
			return
		}
		v = l.result(g.policy.Method, l.slots)
	}
	if i < g.top() {
		g.add(i+1, v, 1)
		return
	}
	if at := g.at(l.begin / second); at != nil {
		*at = v
	}
}

// add gives an archive a point that stands for so many points of the archive before.
func (g *grid) add(i int, v float64, points int64) {
	g.levels[i].add(g.policy.Method, v, points)
	if g.roll != nil && i == g.top() {
		g.roll.add(v, points)
	}
}

// at returns the place of a slot in the result, or nil outside the window.
func (g *grid) at(slot int64) *float64 {
	if i := (slot - g.window.First) / g.window.Step; slot >= g.window.First && i < int64(len(g.dst)) {
		return &g.dst[i]
	}
	return nil
}

// rollup takes a row that stands for more than a slot of the finest archive. It reports whether the row
// counts only for archives up to the one that is laid out.
func (g *grid) rollup(start, step int64, v float64) bool {
	finer := 0 // the coarsest archive whose slots are not longer
	for i, a := range g.policy.Archives {
		if a.Step == step {
			if i <= g.top() {
				g.levels[i].direct, g.levels[i].decided = true, v
			}
			return true
		}
		if a.Step < step {
			finer = i
		}
	}
	// The file that it is from had other archives.
	if finer < g.top() {
		g.add(finer+1, v, step/g.policy.Archives[finer].Step)
		return true
	}
	if at := g.at(floor(start, g.window.Step)); at != nil && math.IsNaN(*at) {
		*at = v
	}
	return false
}
