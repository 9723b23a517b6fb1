package syntax

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// Pos is a place in the text of a query. Nodes embed that of their first token; of a binary operation, that
// of its operator. Nodes that were not read from text have the zero Pos.
type Pos struct {
	Offset int // in bytes, from 0
	Line   int // from 1
	Column int // in characters, from 1
}

// Position returns the place itself, so that every node has it.
func (p Pos) Position() Pos { return p }

// Node is a piece of a query. Trees are not changed after they were built, so they can be shared.
type Node interface {
	// String returns the canonical text: on one line, as Loki prints it. Parsed again, it gives the same tree.
	fmt.Stringer
	Position() Pos

	write(p *printer)
}

// Expr is a whole query: a [*LogQuery] or a [MetricExpr].
type Expr interface {
	Node
	// children calls visit for each node right below, in the order of the text.
	children(visit func(Node))
	isExpr()
}

// MetricExpr is a query that gives numbers: a [*RangeAggregation], [*VectorAggregation], [*BinaryExpr],
// [*Literal], [*Vector] or [*LabelReplace].
type MetricExpr interface {
	Expr
	isMetric()
}

// LogQuery is a query that gives lines: those of the streams that satisfy all matchers, run through the
// stages.
type LogQuery struct {
	Pos
	Matchers []*Matcher
	Stages   []Stage
}

// Matcher is a condition on a label with a string: in a selector, in a label filter, in drop and keep.
// Regular expressions are compiled, anchored at both ends, and their dot matches newlines.
type Matcher struct {
	Pos
	model.Matcher
}

// Models returns the matchers as sources take them.
func Models(ms []*Matcher) []model.Matcher {
	out := make([]model.Matcher, len(ms))
	for i, m := range ms {
		out[i] = m.Matcher
	}
	return out
}

// Walk calls visit for the node and all below it, parents first, in the order of the text, left of a node for
// which visit returns false.
func Walk(n Node, visit func(Node) bool) {
	if !visit(n) {
		return
	}
	if e, ok := n.(interface{ children(func(Node)) }); ok {
		e.children(func(c Node) { Walk(c, visit) })
	}
}

func (*LogQuery) isExpr() {}

func (q *LogQuery) children(visit func(Node)) {
	for _, m := range q.Matchers {
		visit(m)
	}
	for _, s := range q.Stages {
		visit(s)
	}
}

// String returns the canonical text.
func (q *LogQuery) String() string { return text(q) }

// String returns the canonical text.
func (m *Matcher) String() string { return text(m) }
