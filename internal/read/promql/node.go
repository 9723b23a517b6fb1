package promql

import (
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/model"
)

// node is a part of an expression that is computed here: a function over the samples of a range, an
// aggregation of such a function, or an aggregation of a selector.
type node struct {
	selector  *parser.VectorSelector
	call      *parser.Call          // the function of the selector's range, or nil
	aggregate *parser.AggregateExpr // the aggregation of the function or selector, or nil

	// All in milliseconds. The window of a step t is (t - offset - width, t - offset]. Of a selector without a
	// function only the last sample counts, and width is the look-back.
	start, end, step int64
	width, offset    int64
	// extent is width plus offset, added as upstream does before it cuts both to milliseconds. Rates are
	// extrapolated to bounds that depend on it. The samples of a window do not.
	extent int64
	last   int64 // the last millisecond of samples to read

	// keepsName says that the values of the function still have the name of the metric.
	keepsName bool
	// usesStarts says that upstream computes something else for samples with start timestamps.
	usesStarts bool
}

// functions lists the functions that depend only on the samples of a window. Those without an own
// implementation (see ownRate and ownOverTime) call upstream's.
var functions = map[string]bool{
	"rate": true, "increase": true, "delta": true, "irate": true, "idelta": true, "deriv": true, "changes": true, "resets": true,
	"avg_over_time": true, "min_over_time": true, "max_over_time": true, "sum_over_time": true, "count_over_time": true,
	"present_over_time": true, "stddev_over_time": true, "stdvar_over_time": true,
}

// replaceNodes replaces nodes of a statement by selectors with one matcher each, and returns the nodes by
// matcher.
func replaceNodes(stmt *parser.EvalStmt, e *Engine) map[*labels.Matcher]*node {
	t := &replacer{stmt: stmt, engine: e}
	stmt.Expr = t.walk(stmt.Expr)
	return t.nodes
}

type replacer struct {
	stmt   *parser.EvalStmt
	engine *Engine
	nodes  map[*labels.Matcher]*node
}

// walk returns the replacement of e. It does not enter subqueries, which have other steps, nor expressions
// that are evaluated once for all steps.
func (t *replacer) walk(e parser.Expr) parser.Expr {
	if n := t.nodeOf(e); n != nil {
		return t.selectorOf(n, e)
	}
	switch e := e.(type) {
	case *parser.ParenExpr:
		e.Expr = t.walk(e.Expr)
	case *parser.UnaryExpr:
		e.Expr = t.walk(e.Expr)
	case *parser.BinaryExpr:
		e.LHS, e.RHS = t.walk(e.LHS), t.walk(e.RHS)
	case *parser.AggregateExpr:
		e.Expr = t.walk(e.Expr)
	case *parser.Call:
		switch e.Func.Name {
		case "absent", "timestamp", "start_timestamp", "info":
			// These look at the expression of their argument, not only at its value.
			return e
		}
		for i := range e.Args {
			e.Args[i] = t.walk(e.Args[i])
		}
	}
	return e
}

// nodeOf returns the node that e is, or nil if it is not computed here.
func (t *replacer) nodeOf(e parser.Expr) *node {
	n := &node{start: millisOf(t.stmt.Start), end: millisOf(t.stmt.End), step: max(1, t.stmt.Interval.Milliseconds())}
	if a, ok := e.(*parser.AggregateExpr); ok {
		switch a.Op {
		case parser.SUM, parser.AVG, parser.COUNT, parser.MIN, parser.MAX, parser.GROUP:
		default:
			return nil
		}
		n.aggregate, e = a, a.Expr
		for {
			p, ok := e.(*parser.ParenExpr)
			if !ok {
				break
			}
			e = p.Expr
		}
	}
	switch e := e.(type) {
	case *parser.VectorSelector:
		if n.aggregate == nil {
			return nil
		}
		if n.selector, n.width = e, t.stmt.LookbackDelta.Milliseconds(); n.width == 0 {
			return nil // upstream then accepts a sample exactly at the step
		}
	case *parser.Call:
		if !functions[e.Func.Name] || len(e.Args) != 1 {
			return nil
		}
		m, ok := e.Args[0].(*parser.MatrixSelector)
		if !ok {
			return nil
		}
		n.call, n.width = e, m.Range.Milliseconds()
		switch e.Func.Name {
		case "rate", "increase", "irate", "resets":
			n.usesStarts = t.engine.UseStartTimestamps
		}
		n.keepsName = t.engine.EnableDelayedNameRemoval
		n.selector = m.VectorSelector.(*parser.VectorSelector)
		if n.name() == "" {
			// Without their names two series might have equal labels, which upstream rejects.
			return nil
		}
		if t.engine.EnableDelayedNameRemoval && n.namesShow() {
			return nil
		}
	default:
		return nil
	}
	s := n.selector
	if s.Timestamp != nil || s.StartOrEnd != 0 || s.Anchored || s.Smoothed {
		return nil
	}
	s.Offset = s.OriginalOffset // as upstream does before it evaluates; functions read it
	n.offset = s.Offset.Milliseconds()
	if n.call != nil {
		n.extent = (n.call.Args[0].(*parser.MatrixSelector).Range + s.Offset).Milliseconds()
	}
	// Before 1970 upstream's other conversion is earlier.
	n.last = min(n.end, t.stmt.End.UnixMilli()) - n.offset
	return n
}

// name returns the name of the metric if the selector matches exactly one, or "".
func (n *node) name() string {
	for _, m := range n.selector.LabelMatchers {
		if m.Name == model.NameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

// namesShow reports whether names whose removal is delayed could show in the result of the node.
func (n *node) namesShow() bool {
	return n.aggregate == nil || !n.aggregate.Without && slices.Contains(n.aggregate.Grouping, model.NameLabel)
}

// oneGroup reports whether the node adds up all series, whatever their labels.
func (n *node) oneGroup() bool {
	return n.aggregate != nil && !n.aggregate.Without && len(n.aggregate.Grouping) == 0
}

// selectorOf returns the selector that replaces a node. It keeps the node's position in the text.
func (t *replacer) selectorOf(n *node, e parser.Expr) parser.Expr {
	m := labels.MustNewMatcher(labels.MatchEqual, model.NameLabel, e.String()) // shown in traces
	if t.nodes == nil {
		t.nodes = make(map[*labels.Matcher]*node)
	}
	t.nodes[m] = n
	return &parser.VectorSelector{Name: m.Value, LabelMatchers: []*labels.Matcher{m}, PosRange: e.PositionRange()}
}

// millisOf converts as the engine does.
func millisOf(t time.Time) int64 { return t.UnixNano() / nanosPerMilli }

// steps returns the number of steps.
func (n *node) steps() int { return int((n.end-n.start)/n.step) + 1 }

// bounds returns the first and last millisecond of the samples in all windows.
func (n *node) bounds() (mint, maxt int64) { return n.start - n.offset - n.width + 1, n.last }

// function returns upstream's implementation.
func (n *node) function() upstream.FunctionCall { return upstream.FunctionCalls[n.call.Func.Name] }
