package syntax

import "math"

// operators are the tokens between two operands, with how tightly they bind.
var operators = [...]struct {
	kind       kind
	op         BinaryOp
	precedence int
}{
	{kOr, OpOr, 1},
	{kAnd, OpAnd, 2}, {kUnless, OpUnless, 2},
	{kCompareEqual, OpEqual, 3}, {kNotEqual, OpNotEqual, 3}, {kLess, OpLess, 3}, {kLessOrEqual, OpLessOrEqual, 3},
	{kGreater, OpGreater, 3}, {kGreaterOrEqual, OpGreaterOrEqual, 3},
	{kAdd, OpAdd, 4}, {kSub, OpSub, 4},
	{kMul, OpMul, 5}, {kDiv, OpDiv, 5}, {kMod, OpMod, 5},
	{kPow, OpPow, 6},
}

// operator returns the operator of a token and how tightly it binds; 0 if the token is not an operator.
func operator(k kind) (op BinaryOp, precedence int) {
	for _, o := range operators {
		if o.kind == k {
			return o.op, o.precedence
		}
	}
	return "", 0
}

// precedence says how tightly an operator binds.
func precedence(op BinaryOp) int {
	for _, o := range operators {
		if o.op == op {
			return o.precedence
		}
	}
	return 0
}

// binary parses operations whose operators bind at least as tightly as lowest. left, if not nil, is the first
// operand, which was read already. All group from the left, but ^.
func (p *parser) binary(left Expr, lowest int) (Expr, error) {
	var err error
	if left == nil {
		if left, err = p.primary(); err != nil {
			return nil, err
		}
	}
	for {
		op, binds := operator(p.peek())
		if binds == 0 || binds < lowest {
			return left, nil
		}
		e := &BinaryExpr{Pos: p.take().at, Op: op}
		if err := p.modifiers(e); err != nil {
			return nil, err
		}
		if err := p.enter(); err != nil {
			return nil, err
		}
		tighter := binds + 1
		if op == OpPow {
			tighter = binds
		}
		right, err := p.binary(nil, tighter)
		if err != nil {
			return nil, err
		}
		p.leave()
		left = p.combine(e, left, right)
	}
}

// modifiers parses [bool] [on|ignoring (labels) [group_left|group_right [(labels)]]].
func (p *parser) modifiers(e *BinaryExpr) error {
	e.Bool = p.accept(kBool)
	if p.peek() != kOn && p.peek() != kIgnoring {
		return nil
	}
	m := &e.Matching
	m.On = p.take().kind == kOn
	if _, err := p.expect(kOpenParen); err != nil {
		return err
	}
	var err error
	if m.Labels, err = p.labels(); err != nil {
		return err
	}
	switch p.peek() {
	case kGroupLeft:
		m.Card = ManyToOne
	case kGroupRight:
		m.Card = OneToMany
	default:
		return nil
	}
	p.take()
	if p.accept(kOpenParen) {
		m.Include, err = p.labels()
	}
	return err
}

// combine joins both sides, at once if they are numbers. What does not fit together is an error later.
func (p *parser) combine(e *BinaryExpr, left, right Expr) MetricExpr {
	var ok bool
	late := func(bad *ParseError) MetricExpr {
		p.late[e] = bad
		return e
	}
	if e.Left, ok = left.(MetricExpr); !ok {
		return late(wholeError("unexpected type for left leg of binary operation (%s): %s", e.Op, lokiType(left)))
	}
	if e.Right, ok = right.(MetricExpr); !ok {
		return late(wholeError("unexpected type for right leg of binary operation (%s): %s", e.Op, lokiType(right)))
	}
	leftNumber, leftIs := left.(*Literal)
	rightNumber, rightIs := right.(*Literal)
	for _, side := range [...]Expr{left, right} {
		if _, is := side.(*Literal); is && p.late[side] != nil {
			return late(p.late[side])
		}
	}
	switch {
	case e.Op.IsSet() && leftIs:
		return late(wholeError("unexpected literal for left leg of logical/set binary operation (%s): %f", e.Op, leftNumber.Value))
	case e.Op.IsSet() && rightIs:
		return late(wholeError("unexpected literal for right leg of logical/set binary operation (%s): %f", e.Op, rightNumber.Value))
	case leftIs && rightIs:
		return &Literal{Pos: leftNumber.Pos, Value: Calculate(e.Op, leftNumber.Value, rightNumber.Value)}
	}
	return e
}

// lokiType is the name that Loki's error gives to a log query.
func lokiType(e Expr) string {
	if q, ok := e.(*LogQuery); ok && len(q.Stages) == 0 {
		return "*syntax.MatchersExpr"
	}
	return "*syntax.PipelineExpr"
}

// Calculate applies an operator that is not one of sets to two numbers. A comparison gives 1 or 0; division
// by 0 and its remainder give NaN, where Prometheus gives an infinity.
func Calculate(op BinaryOp, left, right float64) float64 {
	switch op {
	case OpAdd:
		return left + right
	case OpSub:
		return left - right
	case OpMul:
		return left * right
	case OpDiv:
		if right == 0 {
			return math.NaN()
		}
		return left / right
	case OpMod:
		if right == 0 {
			return math.NaN()
		}
		return math.Mod(left, right)
	case OpPow:
		return math.Pow(left, right)
	}
	var holds bool
	switch op {
	case OpEqual:
		holds = left == right
	case OpNotEqual:
		holds = left != right
	case OpGreater:
		holds = left > right
	case OpGreaterOrEqual:
		holds = left >= right
	case OpLess:
		holds = left < right
	case OpLessOrEqual:
		holds = left <= right
	}
	if holds {
		return 1
	}
	return 0
}
