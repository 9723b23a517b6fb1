package promql

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/slots"
)

// node is a part of an expression that is computed here: a function over the samples of a range, an
// aggregation of such a function, or an aggregation of a selector.
type node struct {
	selector  *parser.VectorSelector
	call      *parser.Call          // the function of the selector's range, or nil
	aggregate *parser.AggregateExpr // the aggregation of the function or selector, or nil
	samples   *parser.MatrixSelector
	scalars   []upstream.Vector // the other arguments of the function

	// All in milliseconds. The window of a step t is (t - offset - width, t - offset]. Of a selector without a
	// function only the last sample counts, and width is the look-back.
	start, end, step int64
	width, offset    int64
	// extent is width plus offset, added as upstream does before it cuts both to milliseconds. Rates are
	// extrapolated to bounds that depend on it. The samples of a window do not.
	extent int64
	// first and last are the bounds of the samples that upstream reads. All windows are in between.
	first, last int64

	// text is the expression, which names kept values.
	text string

	// dropsName says that the function drops the name of the metric, delayed that upstream does so at the end
	// of the query.
	dropsName, delayed bool
	// usesStarts says that upstream computes something else for samples with start timestamps.
	usesStarts bool
}

// functions has the functions that depend only on the samples of a window and on constants. Those without an
// own implementation (see ownRate and ownOverTime) call upstream's. The value says whether the function keeps
// the name of the metric.
var functions = map[string]bool{
	"rate": false, "increase": false, "delta": false, "irate": false, "idelta": false, "deriv": false, "changes": false, "resets": false,
	"avg_over_time": false, "min_over_time": false, "max_over_time": false, "sum_over_time": false, "count_over_time": false,
	"present_over_time": false, "stddev_over_time": false, "stdvar_over_time": false, "quantile_over_time": false, "mad_over_time": false,
	"predict_linear": false, "double_exponential_smoothing": false,
	"last_over_time": true, "first_over_time": true,
}

// maxOffset is about the longest time.Duration, in milliseconds.
const maxOffset = math.MaxInt64/1e6 - 1

// replaceNodes replaces nodes of a statement by selectors with one matcher each, and returns the nodes by
// matcher.
func replaceNodes(stmt *parser.EvalStmt, e *Engine) map[*labels.Matcher]*node {
	t := &replacer{engine: e, lookback: stmt.LookbackDelta.Milliseconds(), grid: gridOf(stmt), nodes: make(map[*labels.Matcher]*node)}
	stmt.Expr = t.walk(stmt.Expr)
	return t.nodes
}

// replacer replaces the nodes of expressions that are evaluated on the same grid.
type replacer struct {
	engine   *Engine
	lookback int64 // ms
	grid     grid
	nodes    map[*labels.Matcher]*node
}

// walk returns the replacement of e.
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
	case *parser.StepInvariantExpr:
		if g, ok := t.grid.once(); ok {
			inner := replacer{engine: t.engine, lookback: t.lookback, grid: g, nodes: t.nodes}
			e.Expr = inner.walk(e.Expr)
		}
	case *parser.SubqueryExpr:
		if g, ok := t.grid.subquery(e, t.engine.SubqueryStep); ok {
			inner := replacer{engine: t.engine, lookback: t.lookback, grid: g, nodes: t.nodes}
			e.Expr = inner.walk(e.Expr)
		}
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
	n := &node{start: t.grid.start, end: t.grid.end, step: t.grid.step, delayed: t.engine.EnableDelayedNameRemoval}
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
		if n.selector, n.width = e, t.lookback; n.width == 0 {
			return nil // upstream then accepts a sample exactly at the step
		}
	case *parser.Call:
		if !n.setCall(e, t.engine) {
			return nil
		}
	default:
		return nil
	}
	s := n.selector
	if s.Anchored || s.Smoothed || (s.Timestamp != nil) != t.grid.at || s.Timestamp == nil && s.StartOrEnd != 0 {
		return nil
	}
	// As upstream does before it evaluates; functions read it.
	if s.Offset = s.OriginalOffset; t.grid.at {
		if offset := float64(s.Offset)/1e6 + float64(n.start) - float64(*s.Timestamp); math.Abs(offset) > maxOffset {
			return nil // the offset overflows: upstream then reads other samples than its windows need
		}
		s.Offset += time.Duration(n.start-*s.Timestamp) * time.Millisecond
	}
	n.offset = s.Offset.Milliseconds()
	if n.call != nil {
		n.extent = (n.samples.Range + s.Offset).Milliseconds()
	}
	n.first, n.last = t.grid.first-n.offset-n.width+1, t.grid.last-n.offset
	if (n.end-n.start)/n.step >= math.MaxInt32 {
		return nil // results and windows count steps in 32 bits
	}
	return n
}

// setCall sets the function of a node. It reports whether that is computed here.
func (n *node) setCall(e *parser.Call, engine *Engine) bool {
	keepsName, ok := functions[e.Func.Name]
	if !ok {
		return false
	}
	for _, arg := range e.Args {
		switch arg := arg.(type) {
		case *parser.MatrixSelector:
			n.samples = arg
		case *parser.NumberLiteral:
			n.scalars = append(n.scalars, upstream.Vector{{F: arg.Val}})
		default:
			return false
		}
	}
	n.call, n.width, n.dropsName = e, n.samples.Range.Milliseconds(), !keepsName
	switch e.Func.Name {
	case "rate", "increase", "irate", "resets":
		n.usesStarts = engine.UseStartTimestamps
	}
	n.selector = n.samples.VectorSelector.(*parser.VectorSelector)
	if n.dropsName && n.name() == "" {
		// Without their names two series might have equal labels, which upstream rejects.
		return false
	}
	return !n.delayed || !n.namesShow()
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
	t.nodes[m], n.text = n, m.Value
	return &parser.VectorSelector{Name: m.Value, LabelMatchers: []*labels.Matcher{m}, PosRange: e.PositionRange()}
}

// steps returns the number of steps.
func (n *node) steps() int { return int((n.end-n.start)/n.step) + 1 }

// function returns upstream's implementation.
func (n *node) function() upstream.FunctionCall { return upstream.FunctionCalls[n.call.Func.Name] }

// fits reports whether the windows of a node consist of slots of a length in seconds. A window has the times
// after its begin, up to its end. So it also fits if it ends a millisecond before a slot begins.
func (n *node) fits(step int64) bool {
	slot := step * 1000
	if n.call == nil || !slots.Functions[n.call.Func.Name] || n.width <= 0 || n.width%slot != 0 || n.steps() > 1 && n.step%slot != 0 {
		return false
	}
	rest := (n.start - n.offset) % slot
	return rest == 0 || rest == slot-1 || rest == -1
}

// what names a node in errors.
func (n *node) what() string {
	if n.call != nil {
		return n.call.String()
	}
	return n.selector.String()
}
