package promql

import (
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/model"
)

// node is a part of an expression that is computed here: a function of the samples of a range, an aggregation
// of one, or an aggregation of a selector.
type node struct {
	selector  *parser.VectorSelector
	call      *parser.Call          // of the selector's range, or nil
	aggregate *parser.AggregateExpr // of that, or nil

	// All in milliseconds. A window is (t - offset - span, t - offset] for a step t; of a selector alone, of
	// which the last sample counts, span is how far it looks back.
	start, end, step int64
	span, offset     int64
	// extent is span and offset in one, as upstream adds them before it cuts them to milliseconds. It counts
	// for the bounds to which rates are extrapolated, not for which samples a window has.
	extent int64
	last   int64 // of the samples that are asked for

	// usesStarts says that of samples with start timestamps upstream computes something else.
	usesStarts bool
}

// functions are those that see nothing but the floats of a window. Upstream's own implementation is called
// for those that are not computed here: see ownRate and ownOverTime.
var functions = map[string]bool{
	"rate": true, "increase": true, "delta": true, "irate": true, "idelta": true, "deriv": true, "changes": true, "resets": true,
	"avg_over_time": true, "min_over_time": true, "max_over_time": true, "sum_over_time": true, "count_over_time": true,
	"present_over_time": true, "stddev_over_time": true, "stdvar_over_time": true,
}

// replaceNodes replaces nodes of a statement by selectors, each of one matcher, and returns them by these.
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

// walk returns what stands for e. It does not go below subqueries, whose steps are others, nor below what is
// evaluated once for all steps.
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
			// They look at the expression of their argument, not at its value alone.
			return e
		}
		for i := range e.Args {
			e.Args[i] = t.walk(e.Args[i])
		}
	}
	return e
}

// nodeOf returns the node that e is, or nil if it is none.
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
		if n.selector, n.span = e, t.stmt.LookbackDelta.Milliseconds(); n.span == 0 {
			return nil // then upstream sees a sample that stands at the very step
		}
	case *parser.Call:
		if !functions[e.Func.Name] || len(e.Args) != 1 {
			return nil
		}
		m, ok := e.Args[0].(*parser.MatrixSelector)
		if !ok {
			return nil
		}
		n.call, n.span = e, m.Range.Milliseconds()
		switch e.Func.Name {
		case "rate", "increase", "irate", "resets":
			n.usesStarts = t.engine.UseStartTimestamps
		}
		n.selector = m.VectorSelector.(*parser.VectorSelector)
		if n.name() == "" {
			// Without their names, two series could have the same labels, which upstream refuses.
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
	s.Offset = s.OriginalOffset // as upstream does before it evaluates; functions look at it
	n.offset = s.Offset.Milliseconds()
	if n.call != nil {
		n.extent = (n.call.Args[0].(*parser.MatrixSelector).Range + s.Offset).Milliseconds()
	}
	n.last = min(n.end, t.stmt.End.UnixMilli()) - n.offset // by upstream's other reckoning it is earlier before 1970
	return n
}

// name returns the name of the metric, if the selector has but one.
func (n *node) name() string {
	for _, m := range n.selector.LabelMatchers {
		if m.Name == model.NameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

// namesShow reports whether names that are yet to be removed could be seen in what the node gives.
func (n *node) namesShow() bool {
	return n.aggregate == nil || !n.aggregate.Without && slices.Contains(n.aggregate.Grouping, model.NameLabel)
}

// oneGroup reports whether the node adds up all series, whatever their labels.
func (n *node) oneGroup() bool {
	return n.aggregate != nil && !n.aggregate.Without && len(n.aggregate.Grouping) == 0
}

// selectorOf returns the selector that stands for a node, at the node's place in the text.
func (t *replacer) selectorOf(n *node, e parser.Expr) parser.Expr {
	m := labels.MustNewMatcher(labels.MatchEqual, model.NameLabel, e.String()) // which stands in traces
	if t.nodes == nil {
		t.nodes = make(map[*labels.Matcher]*node)
	}
	t.nodes[m] = n
	return &parser.VectorSelector{Name: m.Value, LabelMatchers: []*labels.Matcher{m}, PosRange: e.PositionRange()}
}

// millisOf is the engine's own reckoning.
func millisOf(t time.Time) int64 { return t.UnixNano() / nanosPerMilli }

// steps returns how many there are.
func (n *node) steps() int { return int((n.end-n.start)/n.step) + 1 }

// bounds returns the first and last millisecond of the samples that all windows together see.
func (n *node) bounds() (mint, maxt int64) { return n.start - n.offset - n.span + 1, n.last }

// function returns upstream's implementation.
func (n *node) function() upstream.FunctionCall { return upstream.FunctionCalls[n.call.Func.Name] }
