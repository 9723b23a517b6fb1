package plan

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/sample"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Plan is a metric query that was compiled. It never changes and may be evaluated by several goroutines.
type Plan struct {
	// Leaves are the range aggregations of the query, each once.
	Leaves []*Leaf
	// Ordered says that the query sorts. If it asks for one instant, its result keeps the order of its series.
	Ordered bool
	// Scalar says that the query is a number.
	Scalar bool

	root  *node
	nodes map[identity]*node
}

// Leaf is a range aggregation of a query.
type Leaf struct {
	// Text is the canonical text, and that of Outer if there is one.
	Text        string
	Aggregation *syntax.RangeAggregation
	// Outer is the grouping of the sum above the leaf, by which samples are grouped at once; nil: none.
	Outer   *syntax.Grouping
	Program *sample.Program
}

// node is a step of a plan: a leaf, or an operation on the values of other nodes.
type node struct {
	operation operation // nil: a leaf
	leaf      *Leaf
	operands  []*node
	// users is how many operands of other nodes, and the root, it is.
	users int
	// need is how many values are held at one time to evaluate it, in the best order.
	need int
}

// identity tells nodes apart. It has the text of a node with holes for the operands, which are nodes
// themselves: the whole texts of all nodes would take the square of the length of the query.
type identity struct {
	text        string
	left, right *node
}

// hole stands for an operand in the text of an identity.
var hole = &syntax.Vector{}

// unsupported says in Loki's words that an expression cannot stand where it does. It is of class invalid.
type unsupported string

func (e unsupported) Error() string { return string(e) }
func (e unsupported) Unwrap() error { return model.ErrInvalid }

// errLiteral is for a number as the operand of an aggregation or of label_replace.
const errLiteral unsupported = "unexpected expr type (*syntax.LiteralExpr) for Evaluator type (*logql.DefaultEvaluator) "

// Compile makes a plan. Errors are of class invalid or limit and have Loki's texts.
func Compile(e syntax.MetricExpr) (*Plan, error) {
	p := &Plan{nodes: make(map[identity]*node)}
	var err error
	if number, ok := e.(*syntax.Literal); ok {
		p.Scalar = true
		p.root = p.add(e.String(), constant(number.Value), nil, nil)
	} else {
		p.root, err = p.compile(e)
	}
	p.nodes = nil
	return p, err
}

// compile returns the node of an expression.
func (p *Plan) compile(e syntax.MetricExpr) (*node, error) {
	switch e := e.(type) {
	case *syntax.RangeAggregation:
		return p.leaf(e, nil)
	case *syntax.Vector:
		return p.add(e.String(), constant(e.Value), nil, nil), nil
	case *syntax.VectorAggregation:
		p.Ordered = p.Ordered || e.Op == syntax.Sort || e.Op == syntax.SortDesc
		var operand *node
		var err error
		if leaf, ok := e.Expr.(*syntax.RangeAggregation); ok && groupsSamples(e, leaf) {
			operand, err = p.leaf(leaf, &e.Grouping)
		} else {
			operand, err = p.compile(e.Expr)
		}
		if err != nil {
			return nil, err
		}
		shape := *e
		shape.Expr = hole
		return p.add(shape.String(), aggregation{e}, operand, nil), nil
	case *syntax.LabelReplace:
		operand, err := p.compile(e.Expr)
		if err != nil {
			return nil, err
		}
		shape := *e
		shape.Expr = hole
		return p.add(shape.String(), replacement{e}, operand, nil), nil
	case *syntax.BinaryExpr:
		return p.binary(e)
	case *syntax.Literal:
		return nil, errLiteral
	}
	return nil, fmt.Errorf("plan: no case for %T", e)
}

func (p *Plan) binary(e *syntax.BinaryExpr) (*node, error) {
	shape := *e
	if number, ok := e.Left.(*syntax.Literal); ok {
		operand, err := p.compile(e.Right)
		if err != nil {
			return nil, err
		}
		shape.Right = hole
		return p.add(shape.String(), withNumber{e, number}, operand, nil), nil
	}
	shape.Left = hole
	left, err := p.compile(e.Left)
	if err != nil {
		return nil, err
	}
	if number, ok := e.Right.(*syntax.Literal); ok {
		return p.add(shape.String(), withNumber{e, number}, left, nil), nil
	}
	right, err := p.compile(e.Right)
	if err != nil {
		return nil, err
	}
	shape.Right = hole
	return p.add(shape.String(), binary{e}, left, right), nil
}

// groupsSamples reports whether samples may be added up by the labels of a sum at once.
func groupsSamples(e *syntax.VectorAggregation, leaf *syntax.RangeAggregation) bool {
	return e.Op == syntax.Sum && leaf.Grouping == nil && sample.AddsUp(leaf.Op)
}

// leaf returns the node of a range aggregation. With a grouping from outside its text shows that grouping.
func (p *Plan) leaf(e *syntax.RangeAggregation, outer *syntax.Grouping) (*node, error) {
	text := e.String()
	if outer != nil {
		text += outer.String()
	}
	if n := p.nodes[identity{text: text}]; n != nil {
		return n, nil
	}
	program, err := sample.Compile(e, outer)
	if err != nil {
		return nil, err
	}
	n := p.add(text, nil, nil, nil)
	n.leaf = &Leaf{text, e, outer, program}
	p.Leaves = append(p.Leaves, n.leaf)
	return n, nil
}

// add returns the node of that identity, which it makes if there is none.
func (p *Plan) add(text string, op operation, left, right *node) *node {
	id := identity{text, left, right}
	if n := p.nodes[id]; n != nil {
		return n
	}
	n := &node{operation: op, need: 1}
	for _, operand := range [...]*node{left, right} {
		if operand == nil {
			continue
		}
		operand.users++
		if len(n.operands) > 0 && operand.need == n.need {
			n.need++
		} else {
			n.need = max(n.need, operand.need)
		}
		n.operands = append(n.operands, operand)
	}
	p.nodes[id] = n
	return n
}
