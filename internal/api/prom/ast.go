package prom

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// parseQuery returns the syntax tree of an expression, in the shape that the tree view of Prometheus reads.
func (h *Handler) parseQuery(r *api.Request) (*api.Response, error) {
	expr, err := h.parse(r, badQuery)
	if err != nil {
		return nil, err
	}
	if err := checkNodes(expr); err != nil {
		return nil, err
	}
	return success(func(b *body) { b.node(expr) }), nil
}

// checkNodes returns an error if the tree has a node of an unknown type, which a newer parser might produce.
func checkNodes(expr parser.Expr) (err error) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node.(type) {
		case nil, parser.Expressions, *parser.AggregateExpr, *parser.BinaryExpr, *parser.Call, *parser.MatrixSelector, *parser.SubqueryExpr,
			*parser.DurationExpr, *parser.NumberLiteral, *parser.ParenExpr, *parser.StringLiteral, *parser.UnaryExpr, *parser.VectorSelector:
		default:
			err = fmt.Errorf("%w: unsupported node type %T", model.ErrInvalid, node)
		}
		return err
	})
	return err
}

// node writes a node of the tree, nil as null.
func (b *body) node(expr parser.Expr) {
	b.Spill()
	switch n := expr.(type) {
	case *parser.AggregateExpr:
		b.kind("aggregation")
		b.member("op", n.Op.String())
		b.children("expr", n.Expr, "param", n.Param)
		b.names("grouping", n.Grouping)
		b.flag("without", n.Without)
	case *parser.BinaryExpr:
		b.kind("binaryExpr")
		b.member("op", n.Op.String())
		b.children("lhs", n.LHS, "rhs", n.RHS)
		b.matching(n.VectorMatching)
		b.flag("bool", n.ReturnBool)
	case *parser.Call:
		b.call(n)
	case *parser.MatrixSelector:
		b.kind("matrixSelector")
		b.number("range", n.Range.Milliseconds())
		b.duration("rangeExpr", n.RangeExpr)
		b.selector(n.VectorSelector.(*parser.VectorSelector))
	case *parser.VectorSelector:
		b.kind("vectorSelector")
		b.selector(n)
	case *parser.SubqueryExpr:
		b.kind("subquery")
		b.children("expr", n.Expr)
		b.number("range", n.Range.Milliseconds())
		b.duration("rangeExpr", n.RangeExpr)
		b.number("step", n.Step.Milliseconds())
		b.duration("stepExpr", n.StepExpr)
		b.shift(n.OriginalOffset, n.OriginalOffsetExpr, n.Timestamp, n.StartOrEnd)
	case *parser.DurationExpr:
		b.durationExpr(n)
		return
	case *parser.NumberLiteral:
		b.kind("numberLiteral")
		b.member("val", strconv.FormatFloat(n.Val, 'f', -1, 64))
	case *parser.ParenExpr:
		b.kind("parenExpr")
		b.children("expr", n.Expr)
	case *parser.StringLiteral:
		b.kind("stringLiteral")
		b.member("val", n.Val)
	case *parser.UnaryExpr:
		b.kind("unaryExpr")
		b.member("op", n.Op.String())
		b.children("expr", n.Expr)
	default:
		b.Raw("null")
		return
	}
	b.Raw("}")
}

// kind begins a node.
func (b *body) kind(name string) { b.Raw(`{"type":"` + name + `"`) }

func (b *body) member(name, value string) {
	b.Raw(`,"` + name + `":`)
	b.Str(value)
}

func (b *body) flag(name string, value bool) {
	b.Raw(`,"` + name + `":`)
	b.Buf = strconv.AppendBool(b.Buf, value)
}

func (b *body) number(name string, value int64) {
	b.Raw(`,"` + name + `":`)
	b.Buf = strconv.AppendInt(b.Buf, value, 10)
}

func (b *body) names(name string, values []string) {
	b.Raw(`,"` + name + `":`)
	b.Texts(values)
}

// children writes members that are nodes. pairs alternates names and expressions.
func (b *body) children(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		b.Raw(`,"` + pairs[i].(string) + `":`)
		expr, _ := pairs[i+1].(parser.Expr)
		b.node(expr)
	}
}

func (b *body) call(n *parser.Call) {
	b.kind("call")
	b.Raw(`,"func":{"argTypes":[`)
	for i, t := range n.Func.ArgTypes {
		if i > 0 {
			b.Raw(",")
		}
		b.Str(string(t))
	}
	b.Raw("]")
	b.member("name", n.Func.Name)
	b.member("returnType", string(n.Func.ReturnType))
	b.number("variadic", int64(n.Func.Variadic))
	b.Raw(`},"args":[`)
	for i, arg := range n.Args {
		if i > 0 {
			b.Raw(",")
		}
		b.node(arg)
	}
	b.Raw("]")
}

func (b *body) matching(m *parser.VectorMatching) {
	b.Raw(`,"matching":`)
	if m == nil {
		b.Raw("null")
		return
	}
	b.Raw("{")
	b.Raw(`"card":`)
	b.Str(m.Card.String())
	b.names("labels", m.MatchingLabels)
	b.flag("on", m.On)
	b.names("include", m.Include)
	b.Raw(`,"fillValues":{"lhs":`)
	b.fill(m.FillValues.LHS)
	b.Raw(`,"rhs":`)
	b.fill(m.FillValues.RHS)
	b.Raw("}}")
}

func (b *body) fill(v *float64) {
	switch {
	case v == nil:
		b.Raw("null")
	case math.IsNaN(*v) || math.IsInf(*v, 0):
		b.float(*v) // JSON has no number for it
	default:
		b.Buf = strconv.AppendFloat(b.Buf, *v, 'g', -1, 64)
	}
}

// selector writes the members that instant and range selectors share.
func (b *body) selector(n *parser.VectorSelector) {
	b.member("name", n.Name)
	b.shift(n.OriginalOffset, n.OriginalOffsetExpr, n.Timestamp, n.StartOrEnd)
	b.matchers(n.LabelMatchers)
	b.flag("anchored", n.Anchored)
	b.flag("smoothed", n.Smoothed)
}

// shift writes the modifiers offset and @.
func (b *body) shift(offset time.Duration, offsetExpr *parser.DurationExpr, at *int64, startOrEnd parser.ItemType) {
	b.number("offset", offset.Milliseconds())
	b.duration("offsetExpr", offsetExpr)
	if at != nil {
		b.number("timestamp", *at)
	} else {
		b.Raw(`,"timestamp":null`)
	}
	if startOrEnd != 0 {
		b.member("startOrEnd", startOrEnd.String())
	} else {
		b.Raw(`,"startOrEnd":null`)
	}
}

func (b *body) matchers(ms []*labels.Matcher) {
	b.Raw(`,"matchers":[`)
	for i, m := range ms {
		if i > 0 {
			b.Raw(",")
		}
		b.Raw(`{"name":`)
		b.Str(m.Name)
		b.member("value", m.Value)
		b.member("type", m.Type.String())
		b.Raw("}")
		b.Spill()
	}
	b.Raw("]")
}

// duration writes a member that is a computed duration.
func (b *body) duration(name string, n *parser.DurationExpr) {
	b.Raw(`,"` + name + `":`)
	b.durationExpr(n)
}

func (b *body) durationExpr(n *parser.DurationExpr) {
	if n == nil {
		b.Raw("null")
		return
	}
	b.kind("durationExpr")
	b.member("op", n.Op.String())
	b.Raw(`,"lhs":`)
	b.durationPart(n.LHS)
	b.Raw(`,"rhs":`)
	b.durationPart(n.RHS)
	b.flag("wrapped", n.Wrapped)
	b.Raw("}")
}

// durationPart writes an operand of a computed duration. A number says whether it was written as a duration.
func (b *body) durationPart(expr parser.Expr) {
	switch n := expr.(type) {
	case *parser.DurationExpr:
		b.durationExpr(n)
	case *parser.NumberLiteral:
		b.kind("numberLiteral")
		b.member("val", strconv.FormatFloat(n.Val, 'f', -1, 64))
		b.flag("duration", n.Duration)
		b.Raw("}")
	default:
		b.node(expr)
	}
}
