package promql

import (
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// grid is the steps at which upstream evaluates an expression, in milliseconds.
type grid struct {
	start, end, step int64
	// first and last are the bounds of samples that upstream reads for a selector without an offset, apart from
	// its width. They may be wider than the steps need.
	first, last int64
	at          bool // the expression has a fixed time (@) and is evaluated once
	inner       bool // the steps are those of a subquery
}

// gridOf returns the grid of a query.
func gridOf(stmt *parser.EvalStmt) grid {
	g := grid{start: millisOf(stmt.Start), end: millisOf(stmt.End), step: max(1, stmt.Interval.Milliseconds())}
	// Before 1970 upstream's other conversion is earlier.
	g.first, g.last = min(g.start, stmt.Start.UnixMilli()), min(g.end, stmt.End.UnixMilli())
	return g
}

// millisOf converts as the engine does.
func millisOf(t time.Time) int64 { return t.UnixNano() / nanosPerMilli }

// once returns the grid of an expression that does not depend on the step. Upstream evaluates it at the
// first one. Within a subquery the offsets of @ follow rules that are not worth repeating.
func (g grid) once() (grid, bool) {
	return grid{start: g.start, end: g.start, step: g.step, first: g.start, last: g.start, at: true}, !g.inner && !g.at
}

// subquery returns the grid of the expression in a subquery, as upstream's subqueryTimeRange does. The
// default is the step of a subquery without one; 0: unknown.
func (g grid) subquery(e *parser.SubqueryExpr, byDefault time.Duration) (grid, bool) {
	step := e.Step
	if step == 0 {
		step = byDefault
	}
	if e.Timestamp != nil || e.StartOrEnd != 0 || g.at || step < time.Millisecond {
		return grid{}, false
	}
	offset, width := e.OriginalOffset.Milliseconds(), e.Range.Milliseconds()
	s := grid{step: step.Milliseconds(), inner: true}
	s.end = g.start + (g.end-g.start)/g.step*g.step - offset
	before := g.start - offset - width
	if s.start = s.step * (before / s.step); s.start <= before {
		s.start += s.step
	}
	s.first, s.last = g.first-offset-width, g.last-offset
	return s, s.start <= s.end
}
