package syntax

import (
	"regexp"
	"regexp/syntax"
	"strconv"
)

// expr parses a query or the operand of one.
func (p *parser) expr() (Expr, error) { return p.binary(nil, 1) }

// primary parses an expression in parentheses, or one other than an operation.
func (p *parser) primary() (Expr, error) {
	switch p.peek() {
	case kOpenBrace:
		q, err := p.selector()
		if err == nil {
			_, err = p.pipeline(q, false)
		}
		return q, err
	case kOpenParen:
		p.take()
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		e, err := p.expr()
		if err == nil && !p.accept(kCloseParen) {
			err = p.unexpected()
		}
		return e, err
	case kRangeOp:
		return p.rangeAggregation()
	case kVectorOp:
		return p.vectorAggregation()
	case kNumber, kAdd, kSub:
		return p.literal()
	case kVector:
		return p.vector()
	case kLabelReplace:
		return p.labelReplace()
	}
	return nil, p.unexpected()
}

// metric parses an expression that gives numbers.
func (p *parser) metric(left Expr) (MetricExpr, error) {
	e, err := p.binary(left, 1)
	if err != nil {
		return nil, err
	}
	m, ok := e.(MetricExpr)
	if !ok {
		return nil, p.unexpected()
	}
	return m, nil
}

func (p *parser) literal() (*Literal, error) {
	p.peek()
	e := &Literal{Pos: p.tok.at}
	value, bad, err := p.signedNumber()
	return p.finishLiteral(e, value, bad), err
}

func (p *parser) finishLiteral(e *Literal, value float64, bad *ParseError) *Literal {
	if e.Value = value; bad != nil {
		p.late[e] = bad
	}
	return e
}

// vectorAggregation parses op [grouping] ([k,] expr) or op ([k,] expr) [grouping].
func (p *parser) vectorAggregation() (MetricExpr, error) {
	t := p.take()
	e := &VectorAggregation{Pos: t.at, Op: VectorOp(t.text)}
	var grouping *Grouping
	var err error
	switch p.peek() {
	case kBy, kWithout:
		if grouping, err = p.grouping(); err != nil {
			return nil, err
		}
		_, err = p.expect(kOpenParen)
	default:
		_, err = p.expect(kOpenParen, kBy, kWithout)
	}
	if err != nil {
		return nil, err
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	param, err := p.paramAndMetric(e)
	if err != nil {
		return nil, err
	}
	if !p.accept(kCloseParen) {
		return nil, p.unexpected()
	}
	if grouping == nil && (p.peek() == kBy || p.peek() == kWithout) {
		if grouping, err = p.grouping(); err != nil {
			return nil, err
		}
	}
	if grouping != nil {
		e.Grouping = *grouping
	}
	if bad := e.check(param, grouping); bad != nil {
		p.late[e] = bad
	}
	return e, nil
}

// paramAndMetric parses [k,] expr. The token after a number shows whether the number is the parameter or
// begins the expression.
func (p *parser) paramAndMetric(e *VectorAggregation) (param *string, err error) {
	var left Expr
	if p.peek() == kNumber {
		t := p.take()
		if p.accept(kComma) {
			param = &t.text
		} else {
			value, numErr := strconv.ParseFloat(t.text, 64)
			var bad *ParseError
			if numErr != nil {
				bad = badNumber(numErr)
			}
			left = p.finishLiteral(&Literal{Pos: t.at}, value, bad)
		}
	}
	e.Expr, err = p.metric(left)
	return param, err
}

// check sets k and says what does not fit together.
func (e *VectorAggregation) check(param *string, grouping *Grouping) *ParseError {
	switch e.Op {
	case TopK, BottomK, ApproxTopK:
		if param == nil {
			return wholeError("parameter required for operation %s", e.Op)
		}
		var err error
		if e.K, err = strconv.Atoi(*param); err != nil {
			return wholeError("invalid parameter %s(%s,", e.Op, *param)
		}
		if e.K <= 0 {
			return wholeError("invalid parameter (must be greater than 0) %s(%s", e.Op, *param)
		}
		if e.Op == ApproxTopK && grouping != nil {
			return wholeError("grouping not allowed for %s aggregation", e.Op)
		}
	default:
		if param != nil {
			return wholeError("unsupported parameter for operation %s(%s,", e.Op, *param)
		}
	}
	return nil
}

func (p *parser) vector() (MetricExpr, error) {
	e := &Vector{Pos: p.take().at}
	if _, err := p.expect(kOpenParen); err != nil {
		return nil, err
	}
	t, err := p.expect(kNumber)
	if err != nil {
		return nil, err
	}
	if _, err := p.expect(kCloseParen); err != nil {
		return nil, err
	}
	if e.Value, err = strconv.ParseFloat(t.text, 64); err != nil {
		p.late[e] = wholeError("unable to parse vectorExpr as a float: %s", err)
	}
	return e, nil
}

func (p *parser) labelReplace() (MetricExpr, error) {
	e := &LabelReplace{Pos: p.take().at}
	if _, err := p.expect(kOpenParen); err != nil {
		return nil, err
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var err error
	if e.Expr, err = p.metric(nil); err != nil {
		return nil, err
	}
	if p.peek() != kComma {
		return nil, p.unexpected()
	}
	for _, s := range [...]*string{&e.Dst, &e.Replacement, &e.Src, &e.Pattern} {
		if _, err := p.expect(kComma); err != nil {
			return nil, err
		}
		t, err := p.expect(kString)
		if err != nil {
			return nil, err
		}
		*s = t.text
	}
	if _, err := p.expect(kCloseParen); err != nil {
		return nil, err
	}
	anchored := "^(?:" + e.Pattern + ")$"
	if _, err := p.regexps.Parse(anchored, syntax.Perl); err != nil {
		p.late[e] = wholeError("invalid regex in label_replace: %s", err)
		return e, nil
	}
	if e.Regexp, err = regexp.Compile(anchored); err != nil {
		p.late[e] = wholeError("invalid regex in label_replace: %s", err)
	}
	return e, nil
}
